// Questions to the reader, one at a time: a native modal dialog, which keeps the focus inside, closes with Escape and
// gives the focus back. `ask...` functions return a promise of the answer.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { value, useValue } from '../lib/value';
import { useWords } from '../i18n';

interface Open {
  title: string;
  body: (close: (answer: boolean) => void) => ComponentChildren;
  wide: boolean;
  answer: (answer: boolean) => void;
}

const open = value<Open | null>(null);

// Shows `body` until it, or the reader, closes it; false when it was dismissed.
export function showDialog(title: string, body: Open['body'], wide = false): Promise<boolean> {
  open.get()?.answer(false);
  return new Promise((resolve) => {
    const mine: Open = {
      title, body, wide,
      answer: (answer) => {
        if (open.get() === mine) open.set(null);
        resolve(answer);
      },
    };
    open.set(mine);
  });
}

export function DialogHost() {
  const { t } = useWords();
  const shown = useValue(open);
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (shown && dialog && !dialog.open) dialog.showModal();
  }, [shown]);
  if (!shown) return null;
  return (
    <dialog ref={element} class={shown.wide ? 'wide' : undefined} aria-labelledby="dialog-title"
            onClose={() => shown.answer(false)}
            onClick={(event) => event.target === event.currentTarget && shown.answer(false)}>
      <div class="dialog-body">
        <div class="dialog-head">
          <h2 id="dialog-title">{shown.title}</h2>
          <button type="button" class="quiet" aria-label={t('dialog.close')} onClick={() => shown.answer(false)}>✕</button>
        </div>
        {shown.body(shown.answer)}
      </div>
    </dialog>
  );
}
