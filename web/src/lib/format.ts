// Numbers for people: every figure with its unit, in the language of the page. What is not known is a dash.
import type { Language } from '../i18n';

export const UNKNOWN = '–';

type Maybe = number | null | undefined;
const known = (value: Maybe): value is number => typeof value === 'number' && Number.isFinite(value);

const localeOf = (language: Language): string => (language === 'zh' ? 'zh-CN' : 'en-GB');

export interface Formatter {
  count(value: Maybe): string;
  decimal(value: Maybe, digits?: number): string;
  rate(value: Maybe): string;
  percent(value: Maybe, digits?: number): string;
  bytes(value: Maybe): string;
  byteRate(value: Maybe): string;
  milliseconds(value: Maybe): string;
  duration(seconds: Maybe): string;
  time(unixSeconds: Maybe): string;
  clock(unixSeconds: Maybe): string;
  list(words: readonly string[]): string;
}

const UNITS = {
  day: { en: 'd', zh: '天' },
  hour: { en: 'h', zh: '小时' },
  minute: { en: 'min', zh: '分钟' },
  second: { en: 's', zh: '秒' },
} as const;
const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

// Digits after the point so that about three digits count, and none are noise.
function digitsFor(value: number): number {
  const size = Math.abs(value);
  if (size === 0 || size >= 100) return 0;
  if (size >= 10) return 1;
  return 2;
}

function makeFormatter(language: Language): Formatter {
  const locale = localeOf(language);
  const cache = new Map<string, Intl.NumberFormat>();
  const number = (value: number, options: Intl.NumberFormatOptions): string => {
    const key = JSON.stringify(options);
    let format = cache.get(key);
    if (!format) cache.set(key, (format = new Intl.NumberFormat(locale, options)));
    return format.format(value);
  };
  const plain = (value: number, digits: number): string => number(value, { maximumFractionDigits: digits });
  // Words of our own for units of time: what Intl calls them differs from one browser's data to the next.
  const unit = (value: number, name: keyof typeof UNITS, digits: number): string => `${plain(value, digits)} ${UNITS[name][language]}`;
  const perSecond = language === 'zh' ? '/秒' : '/s';
  const dateTime = new Intl.DateTimeFormat(locale, { dateStyle: language === 'zh' ? 'short' : 'medium', timeStyle: 'medium' });
  const clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
  const list = new Intl.ListFormat(locale, { style: 'long', type: 'conjunction' });

  const bytes = (value: Maybe): string => {
    if (!known(value)) return UNKNOWN;
    let scaled = value;
    let index = 0;
    while (Math.abs(scaled) >= 1024 && index < BYTE_UNITS.length - 1) {
      scaled /= 1024;
      index += 1;
    }
    return `${plain(scaled, index === 0 ? 0 : digitsFor(scaled))} ${BYTE_UNITS[index]}`;
  };

  return {
    count: (value) => (known(value) ? plain(value, 0) : UNKNOWN),
    decimal: (value, digits = 2) => (known(value) ? plain(value, digits) : UNKNOWN),
    rate: (value) => (known(value) ? plain(value, value < 10 ? 1 : 0) + perSecond : UNKNOWN),
    percent: (value, digits = 1) =>
      known(value)
        ? number(value, { style: 'percent', minimumFractionDigits: digits, maximumFractionDigits: digits })
        : UNKNOWN,
    bytes,
    byteRate: (value) => (known(value) ? bytes(value) + perSecond : UNKNOWN),
    milliseconds: (value) => {
      if (!known(value)) return UNKNOWN;
      return value >= 10_000 ? unit(value / 1000, 'second', 1) : `${plain(value, digitsFor(value))} ms`;
    },
    duration: (seconds) => {
      if (!known(seconds)) return UNKNOWN;
      const total = Math.max(0, seconds);
      if (total < 10) return unit(total, 'second', 1);
      const whole = Math.round(total);
      const parts: [number, keyof typeof UNITS][] = [
        [Math.floor(whole / 86_400), 'day'],
        [Math.floor((whole % 86_400) / 3600), 'hour'],
        [Math.floor((whole % 3600) / 60), 'minute'],
        [whole % 60, 'second'],
      ];
      const first = parts.findIndex(([value]) => value > 0);
      // The two largest parts say enough.
      return parts
        .slice(first, first + 2)
        .filter(([value]) => value > 0)
        .map(([value, name]) => unit(value, name, 0))
        .join(' ');
    },
    time: (unixSeconds) => (known(unixSeconds) && unixSeconds > 0 ? dateTime.format(unixSeconds * 1000) : UNKNOWN),
    clock: (unixSeconds) => (known(unixSeconds) && unixSeconds > 0 ? clock.format(unixSeconds * 1000) : UNKNOWN),
    list: (words) => list.format(words),
  };
}

const made = new Map<Language, Formatter>();

export function formatter(language: Language): Formatter {
  let found = made.get(language);
  if (!found) made.set(language, (found = makeFormatter(language)));
  return found;
}
