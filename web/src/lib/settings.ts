// What the reader chose: language and theme, kept in localStorage; and the admin token, kept in sessionStorage alone, so
// that it is gone with the tab.
import { value } from './value';
import type { Language } from '../i18n';

export type Theme = 'system' | 'light' | 'dark';

function stored(storage: () => Storage, key: string): string | null {
  try {
    return storage().getItem(key);
  } catch {
    return null; // Storage is switched off: what is chosen lasts as long as the page.
  }
}

function store(storage: () => Storage, key: string, text: string | null): void {
  try {
    if (text === null) storage().removeItem(key);
    else storage().setItem(key, text);
  } catch {
    // As above.
  }
}

const local = (): Storage => localStorage;
const session = (): Storage => sessionStorage;

function firstLanguage(): Language {
  const chosen = stored(local, 'ringshift.language');
  if (chosen === 'en' || chosen === 'zh') return chosen;
  const asked = typeof navigator === 'undefined' ? [] : navigator.languages;
  const first = asked.find((tag) => /^(en|zh)\b/i.test(tag));
  return first !== undefined && /^zh/i.test(first) ? 'zh' : 'en';
}

function firstTheme(): Theme {
  const chosen = stored(local, 'ringshift.theme');
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system';
}

export const language = value<Language>(firstLanguage());
export const theme = value<Theme>(firstTheme());
export const token = value<string | null>(stored(session, 'ringshift.token'));

export function chooseLanguage(next: Language): void {
  store(local, 'ringshift.language', next);
  language.set(next);
}

export function chooseTheme(next: Theme): void {
  store(local, 'ringshift.theme', next === 'system' ? null : next);
  theme.set(next);
}

export function keepToken(next: string | null): void {
  store(session, 'ringshift.token', next);
  token.set(next);
}

// Puts both on the document: style sheets and screen readers look there.
export function applySettings(root: HTMLElement): void {
  root.lang = language.get() === 'zh' ? 'zh-CN' : 'en';
  if (theme.get() === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme.get();
}
