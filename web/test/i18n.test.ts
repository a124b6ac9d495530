// Both languages have the same keys and the same placeholders; every key is used, and every key that is used exists.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fill, wordsOf, type Key } from '../src/i18n';
import { en } from '../src/i18n/en';
import { zh } from '../src/i18n/zh';
import { model } from './sources';

const root = join(__dirname, '../src');

function sources(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return name === 'i18n' ? [] : sources(path);
    return /\.tsx?$/.test(name) && !name.endsWith('.d.ts') ? [path] : [];
  });
}

const text = sources(root).map((path) => readFileSync(path, 'utf8')).join('\n');
const placeholders = (words: string): string[] => [...words.matchAll(/\{(\w+)\}/g)].map((found) => found[1]!).sort();

describe('the two languages', () => {
  it('have the same keys', () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
  });

  it('have the same placeholders, and no empty text', () => {
    for (const key of Object.keys(en) as Key[]) {
      expect(placeholders(zh[key]), key).toEqual(placeholders(en[key]));
      expect(zh[key].trim(), key).not.toBe('');
      expect(en[key].trim(), key).not.toBe('');
    }
  });

  it('have no key that is not used', () => {
    // Keys that are put together in the source: t(`nav.${page}`) uses all that begin with "nav.", and t(`${how}.title`)
    // those that end so for a value of `how` that stands in the source as a word.
    const prefixes = [...text.matchAll(/`(\w+(?:\.\w+)*\.)\$\{/g)].map((found) => found[1]!);
    const given = [...text.matchAll(/given\('(\w+)'/g)].map((found) => `${found[1]}.`);
    const suffixes = [...text.matchAll(/`\$\{\w+\}(\.\w+)`/g)].map((found) => found[1]!);
    const unused = Object.keys(en).filter((key) => {
      if (text.includes(`'${key}'`)) return false;
      const base = key.replace(/\.(one|other)$/, '');
      if (base !== key && text.includes(`'${base}'`)) return false;
      if ([...prefixes, ...given].some((prefix) => key.startsWith(prefix))) return false;
      return !suffixes.some((suffix) => key.endsWith(suffix) && text.includes(`'${key.slice(0, -suffix.length)}'`));
    });
    expect(unused).toEqual([]);
  });

  it('have no key without its plural', () => {
    for (const key of Object.keys(en)) {
      if (key.endsWith('.one')) expect(en).toHaveProperty([key.replace(/one$/, 'other')]);
    }
  });

  it('translate every value of the contract that is shown by name', () => {
    for (const [prefix, values] of Object.entries(model.enums)) {
      for (const value of values) expect(Object.keys(en), `${prefix}.${value}`).toContain(`${prefix}.${value}`);
    }
  });
});

describe('filling in', () => {
  it('replaces what is given and leaves what is not', () => {
    expect(fill('{a} of {b}', { a: 1 })).toBe('1 of {b}');
    expect(wordsOf('en').n('ring.members', 1)).toBe('1 member');
    expect(wordsOf('en').n('ring.members', 1200)).toBe('1,200 members');
    expect(wordsOf('zh').given('event', 'pause')).toBe('暂停');
    expect(wordsOf('zh').given('event', 'something new')).toBe('something new');
  });
});
