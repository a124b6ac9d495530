// Actions: what will happen is said, confirmed, and only then done, with the admin token. The token is asked for once
// and kept for this tab; one that the server does not take is forgotten.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { act, ApiError, getWithToken } from '../api/client';
import type { Session } from '../api/types';
import { useWords, wordsOf, type Words } from '../i18n';
import { keepToken, language, token } from '../lib/settings';
import { value } from '../lib/value';
import { showDialog } from './dialog';
import { Said, wordsOfError } from './parts';

// What screen readers are told, and what stands at the top of the page for a while.
export interface Notice {
  tone: 'good' | 'critical';
  text: string;
  english: boolean;
}
export const notice = value<Notice | null>(null);

const words = (): Words => wordsOf(language.get());

function TokenForm({ how, close }: { how: string; close: (answer: boolean) => void }) {
  const all = useWords();
  const { t } = all;
  const [typed, setTyped] = useState('');
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const session = await getWithToken<Session>('/session', typed.trim());
      if (!session.actions) setFault(t('token.actionsOff'));
      else if (!session.authenticated) setFault(t('token.wrong'));
      else {
        keepToken(typed.trim());
        close(true);
        return;
      }
    } catch (error) {
      setFault(wordsOfError(error, all));
    }
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void send(event)}>
      <p>{t('token.why')}</p>
      {how && <p class="note"><Said>{how}</Said></p>}
      <label class="field">
        <span>{t('token.label')}</span>
        <input type="password" name="token" autoComplete="off" spellcheck={false} required value={typed} autofocus
               aria-describedby="token-fault" onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      <p id="token-fault" class="form-fault" role="alert">{fault}</p>
      <div class="buttons">
        <button type="button" onClick={() => close(false)}>{t('dialog.cancel')}</button>
        <button type="submit" class="primary" disabled={busy || typed.trim() === ''}>{t('token.use')}</button>
      </div>
    </form>
  );
}

async function haveToken(): Promise<boolean> {
  if (token.get()) return true;
  let how = '';
  try {
    how = (await getWithToken<Session>('/session', '')).how;
  } catch {
    // The form says what is wrong when it is sent.
  }
  return showDialog(words().t('token.title'), (close) => <TokenForm how={how} close={close} />);
}

export async function askForToken(): Promise<void> {
  keepToken(null);
  await haveToken();
}

export interface Confirmation {
  title: string;
  what: ComponentChildren; // What will happen.
  confirm: string; // The button's words: what is done.
  danger?: boolean;
  wide?: boolean;
}

export function confirmed(question: Confirmation): Promise<boolean> {
  const { t } = words();
  return showDialog(question.title, (close) => (
    <>
      <div class="what">{question.what}</div>
      <div class="buttons">
        <button type="button" autofocus onClick={() => close(false)}>{t('dialog.cancel')}</button>
        <button type="button" class={question.danger ? 'danger' : 'primary'} onClick={() => close(true)}>{question.confirm}</button>
      </div>
    </>
  ), question.wide);
}

// Does it, and says how it went. True when the server accepted.
export async function perform(path: string, body: unknown, done: string): Promise<boolean> {
  if (!(await haveToken())) return false;
  try {
    await act(path, body);
    notice.set({ tone: 'good', text: done, english: false });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      keepToken(null);
      notice.set({ tone: 'critical', text: words().t('token.refused'), english: false });
      return false;
    }
    const text = wordsOfError(error, words());
    const fix = error instanceof ApiError && error.fix ? ` ${error.fix}` : '';
    notice.set({ tone: 'critical', text: text + fix, english: error instanceof ApiError && error.status !== 0 });
    return false;
  }
}
