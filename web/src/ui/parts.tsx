// Small things that several pages show.
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, get } from '../api/client';
import { colourOf } from '../draw/colour';
import { useWords, type Words } from '../i18n';

export type Tone = 'good' | 'warning' | 'critical' | 'info' | 'quiet';

export function Chip({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`chip ${tone}`}>{children}</span>;
}

export function Dot({ index }: { index: number | undefined }) {
  return <span class="dot" aria-hidden="true" style={{ background: index === undefined ? 'var(--muted)' : colourOf(index) }} />;
}

export function Meter({ share, tone = 'info' }: { share: number | null | undefined; tone?: Tone }) {
  const width = Math.max(0, Math.min(1, share ?? 0)) * 100;
  return <span class={`meter ${tone}`} aria-hidden="true"><span style={{ width: `${width}%` }} /></span>;
}

export function Section(props: { title: string; children: ComponentChildren; aside?: ComponentChildren; class?: string }) {
  return (
    <section class={`section ${props.class ?? ''}`}>
      <div class="section-head">
        <h2>{props.title}</h2>
        {props.aside}
      </div>
      {props.children}
    </section>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren] | null)[] }) {
  return (
    <dl class="facts">
      {facts.map((fact) => fact && (
        <div key={fact[0]}>
          <dt>{fact[0]}</dt>
          <dd>{fact[1]}</dd>
        </div>
      ))}
    </dl>
  );
}

// The server speaks English; where the page does not, its sentences are marked so.
export function Said({ children }: { children: string }) {
  const { language } = useWords();
  return language === 'en' ? <>{children}</> : <span lang="en">{children}</span>;
}

export function wordsOfError(error: unknown, { t }: Words): string {
  if (!(error instanceof ApiError)) return String(error);
  return error.status === 0 ? t('error.noAnswer') : error.message;
}

export function Fault({ error, again }: { error: unknown; again?: () => void }) {
  const words = useWords();
  const fix = error instanceof ApiError ? error.fix : '';
  return (
    <div class="fault" role="alert">
      <p><strong>{words.t('error.title')}</strong> <Said>{wordsOfError(error, words)}</Said></p>
      {fix && <p><Said>{fix}</Said></p>}
      {again && <button type="button" onClick={again}>{words.t('error.again')}</button>}
    </div>
  );
}

export function Loading() {
  const { t } = useWords();
  return <p class="empty" role="status">{t('loading')}</p>;
}

export interface Asked<T> {
  answer: T | null;
  error: unknown;
  again(): void;
}

// One GET, asked again whenever `path` or `when` changes; what was there is shown until the new answer is.
export function useGet<T>(path: string | null, when: unknown = ''): Asked<T> {
  const [state, setState] = useState<{ answer: T | null; error: unknown }>({ answer: null, error: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === null) {
      setState({ answer: null, error: null });
      return undefined;
    }
    let current = true;
    get<T>(path).then(
      (answer) => current && setState({ answer, error: null }),
      (error: unknown) => current && setState((now) => ({ answer: now.answer, error })),
    );
    return () => {
      current = false;
    };
  }, [path, when, round]);
  return { ...state, again: () => setRound((now) => now + 1) };
}

export function shortDigest(digest: string): string {
  return digest.slice(0, 12);
}
