// The two languages of the page. Every text is looked up by a key of `en`; the compiler and a test see to it that both
// have the same keys and that none is unused. `{name}` is replaced; a key with ".one" beside ".other" has a singular.
import { en } from './en';
import { zh } from './zh';
import { formatter, type Formatter } from '../lib/format';
import { language } from '../lib/settings';
import { useValue } from '../lib/value';

export type Language = 'en' | 'zh';
export type Key = keyof typeof en;
export type Params = Record<string, string | number>;
export type Translate = (key: Key, params?: Params) => string;

// Keys that come in a singular and a plural, named without the ending.
type Counted<K> = K extends `${infer Base}.one` ? Base : never;
export type CountedKey = Counted<Key>;

const texts: Record<Language, Record<Key, string>> = { en, zh };

export function fill(text: string, params: Params = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in params ? String(params[name]) : whole));
}

export interface Words {
  language: Language;
  t: Translate;
  n(key: CountedKey, count: number, params?: Params): string;
  // A text whose key is made from a value of the server's; the value itself when there is none.
  given(prefix: string, name: string, params?: Params): string;
  has(key: string): key is Key;
  format: Formatter;
}

function make(lang: Language): Words {
  const table = texts[lang];
  const format = formatter(lang);
  const t: Translate = (key, params) => fill(table[key], params);
  const has = (key: string): key is Key => Object.hasOwn(table, key);
  return {
    language: lang,
    t,
    has,
    n: (key, count, params) =>
      fill(table[`${key}.${count === 1 ? 'one' : 'other'}` as Key], { count: format.count(count), ...params }),
    given: (prefix, name, params) => {
      const key = `${prefix}.${name}`;
      return has(key) ? t(key, params) : name;
    },
    format,
  };
}

const made: Record<Language, Words> = { en: make('en'), zh: make('zh') };

export const wordsOf = (lang: Language): Words => made[lang];
export const useWords = (): Words => made[useValue(language)];
