import { describe, expect, it } from 'vitest';
import { formatter, UNKNOWN } from '../src/lib/format';

const en = formatter('en');
const zh = formatter('zh');

describe('numbers for people', () => {
  it('carry their unit', () => {
    expect(en.count(1234567)).toBe('1,234,567');
    expect(en.rate(12345.6)).toBe('12,346/s');
    expect(en.rate(2.34)).toBe('2.3/s');
    expect(zh.rate(12345.6)).toBe('12,346/秒');
    expect(en.percent(0.98765)).toBe('98.8%');
    expect(en.percent(0.212113, 2)).toBe('21.21%');
    expect(en.bytes(512)).toBe('512 B');
    expect(en.bytes(1536)).toBe('1.5 KiB');
    expect(en.bytes(50 * 1024 * 1024)).toBe('50 MiB');
    expect(en.byteRate(2048)).toBe('2 KiB/s');
    expect(en.milliseconds(0.25)).toBe('0.25 ms');
    expect(en.milliseconds(1234)).toBe('1,234 ms');
    expect(en.milliseconds(15_000)).toBe('15 s');
    expect(zh.milliseconds(15_000)).toMatch(/^15 秒$/);
  });

  it('say a time by its two largest parts', () => {
    expect(en.duration(0)).toBe('0 s');
    expect(en.duration(2.5)).toBe('2.5 s');
    expect(en.duration(59.6)).toBe('1 min');
    expect(en.duration(3725)).toBe('1 h 2 min');
    expect(en.duration(90_000)).toBe('1 d 1 h');
    expect(zh.duration(3725)).toBe('1 小时 2 分钟');
  });

  it('are a dash when nobody knows', () => {
    for (const value of [null, undefined, Number.NaN, Infinity]) {
      for (const show of [en.count, en.rate, en.percent, en.bytes, en.milliseconds, en.duration, en.decimal]) {
        expect(show(value)).toBe(UNKNOWN);
      }
    }
    expect(en.time(0)).toBe(UNKNOWN);
  });

  it('lists words as the language does', () => {
    expect(en.list(['a', 'b', 'c'])).toBe('a, b and c');
    expect(zh.list(['a', 'b', 'c'])).toBe('a、b和c');
  });
});
