// The wish: members added, removed and weighed in a form, or a whole spec as text; with the options of a start.
import { useEffect, useRef, useState } from 'preact/hooks';
import { model } from '../api/live';
import { get } from '../api/client';
import type { Change, Plan, StoredSpec } from '../api/types';
import { useWords } from '../i18n';
import { changeOf, emptyDraft, noOptions, optionsOf, type Draft, type OptionText } from '../lib/change';
import { useValue } from '../lib/value';
import { Fault } from '../ui/parts';
import { planOf } from '../ui/plan';

interface Props {
  onPlan: (plan: { plan: Plan; body: Record<string, unknown> } | null) => void;
}

const SHOWN_MAX = 50; // Rows of the form; a filter finds the others.

function MemberForm({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const { t, n } = useWords();
  const members = useValue(model, (now) => now.members?.members ?? null) ?? [];
  const [filter, setFilter] = useState('');
  const wanted = filter.trim().toLowerCase();
  const touched = (id: string): boolean => draft.removed.includes(id) || draft.weights[id] !== undefined;
  const matching = members.filter((member) => touched(member.id) || member.id.toLowerCase().includes(wanted) || member.address.includes(wanted));
  const shown = matching.slice(0, SHOWN_MAX);
  const setAdded = (at: number, part: Partial<Draft['added'][number]>): void =>
    onChange({ ...draft, added: draft.added.map((one, index) => (index === at ? { ...one, ...part } : one)) });
  return (
    <>
      {members.length > SHOWN_MAX && (
        <label class="field"><span>{t('members.filter')}</span>
          <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /></label>
      )}
      <div class="edit-list">
        {shown.map((member) => {
          const leaves = draft.removed.includes(member.id);
          return (
            <div key={member.id} class={`edit-row${leaves ? ' leaves' : ''}`}>
              <span class="edit-name"><strong>{member.id}</strong> <code>{member.address}</code></span>
              <label class="field small"><span>{t('fact.weight')}</span>
                <input type="text" inputMode="decimal" disabled={leaves} value={draft.weights[member.id] ?? String(member.weight)}
                       aria-label={t('planner.weightOf', { id: member.id })}
                       onInput={(event) => onChange({ ...draft, weights: { ...draft.weights, [member.id]: event.currentTarget.value } })} /></label>
              <label class="check">
                <input type="checkbox" checked={leaves} aria-label={t('planner.removeOf', { id: member.id })} onChange={() => onChange({
                  ...draft, removed: leaves ? draft.removed.filter((id) => id !== member.id) : [...draft.removed, member.id] })} />
                <span>{t('planner.leaves')}</span>
              </label>
            </div>
          );
        })}
        {draft.added.map((one, index) => (
          <div key={index} class="edit-row joins">
            <label class="field small"><span>{t('column.id')}</span>
              <input type="text" value={one.id} spellcheck={false} autoCapitalize="off" placeholder="cache-5" onInput={(event) => setAdded(index, { id: event.currentTarget.value })} /></label>
            <label class="field"><span>{t('column.address')}</span>
              <input type="text" value={one.address} spellcheck={false} autoCapitalize="off" placeholder="10.0.0.5:6379" onInput={(event) => setAdded(index, { address: event.currentTarget.value })} /></label>
            <label class="field small"><span>{t('fact.weight')}</span>
              <input type="text" inputMode="decimal" value={one.weight} onInput={(event) => setAdded(index, { weight: event.currentTarget.value })} /></label>
            <button type="button" class="quiet" aria-label={t('planner.dropOf', { id: one.id || String(index + 1) })}
                    onClick={() => onChange({ ...draft, added: draft.added.filter((_, at) => at !== index) })}>✕</button>
          </div>
        ))}
      </div>
      {matching.length > shown.length && <p class="note">{n('planner.hidden', matching.length - shown.length)}</p>}
      <div class="buttons start">
        <button type="button" onClick={() => onChange({ ...draft, added: [...draft.added, { id: '', address: '', weight: '1', zone: '' }] })}>{t('planner.add')}</button>
        {draft.removed.length > 0 && (
          <label class="check"><input type="checkbox" checked={draft.retire} onChange={() => onChange({ ...draft, retire: !draft.retire })} />
            <span>{t('planner.retire')}</span></label>
        )}
      </div>
    </>
  );
}

function SpecForm({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const { t } = useWords();
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (text !== '') return;
    get<StoredSpec>('/spec').then((stored) => onChange(JSON.stringify(stored.spec, null, 2)), setError);
  }, []);
  return (
    <>
      {error !== null && <Fault error={error} />}
      <label class="field">
        <span>{t('planner.specLabel')}</span>
        <textarea rows={16} spellcheck={false} value={text} onInput={(event) => onChange(event.currentTarget.value)} />
      </label>
      <p class="note">{t('planner.specHint')}</p>
    </>
  );
}

function Options({ options, onChange }: { options: OptionText; onChange: (options: OptionText) => void }) {
  const { t } = useWords();
  const field = (name: 'steps' | 'keysPerSecond' | 'soak' | 'abortIf' | 'originBudget', hint: string) => (
    <label class="field"><span>{t(`option.${name}`)}</span>
      <input type="text" value={options[name]} placeholder={hint} spellcheck={false} autoCapitalize="off"
             onInput={(event) => onChange({ ...options, [name]: event.currentTarget.value })} /></label>
  );
  return (
    <details class="more">
      <summary>{t('planner.options')}</summary>
      <div class="grid">
        {field('steps', '1, 10, 50, 100')}
        {field('keysPerSecond', '5000')}
        {field('soak', '60s')}
        {field('abortIf', 'hit_rate<0.9,p99_ms>20')}
        {field('originBudget', '500')}
      </div>
      <label class="check"><input type="checkbox" checked={options.allowForeign} onChange={() => onChange({ ...options, allowForeign: !options.allowForeign })} />
        <span>{t('option.allowForeign')}</span></label>
    </details>
  );
}

export function Planner({ onPlan }: Props) {
  const { t } = useWords();
  const members = useValue(model, (now) => now.members?.members ?? null);
  const [way, setWay] = useState<'members' | 'spec'>('members');
  const [draft, setDraft] = useState<Draft>(emptyDraft);
  const [spec, setSpec] = useState('');
  const [options, setOptions] = useState<OptionText>(noOptions);
  const [fault, setFault] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const round = useRef(0);
  // A plan belongs to what is in the form: it goes when that changes.
  const changed = <T,>(set: (next: T) => void) => (next: T): void => {
    set(next);
    setFault('');
    setError(null);
    round.current += 1;
    onPlan(null);
  };
  const preview = async (event: Event): Promise<void> => {
    event.preventDefault();
    const change: Change | string = way === 'spec' ? { spec } : changeOf(draft, members ?? []);
    if (typeof change === 'string') {
      setFault(t(`fault.${change as 'nothing' | 'weight' | 'incomplete'}`));
      return;
    }
    const start = optionsOf(options);
    if (typeof start === 'string') {
      setFault(t(`fault.${start}`));
      return;
    }
    setBusy(true);
    setError(null);
    const mine = (round.current += 1);
    try {
      const plan = await planOf(change, start);
      if (mine === round.current) onPlan({ plan, body: { change, options: start } });
    } catch (failure) {
      if (mine === round.current) setError(failure);
    }
    setBusy(false);
  };
  return (
    <form class="card planner" onSubmit={(event) => void preview(event)}>
      <fieldset class="switch">
        <legend class="unseen">{t('planner.way')}</legend>
        {(['members', 'spec'] as const).map((one) => (
          <label key={one}><input type="radio" name="way" checked={way === one} onChange={() => changed(setWay)(one)} /> <span>{t(`planner.${one}`)}</span></label>
        ))}
      </fieldset>
      {way === 'members' ? <MemberForm draft={draft} onChange={changed(setDraft)} /> : <SpecForm text={spec} onChange={changed(setSpec)} />}
      <Options options={options} onChange={changed(setOptions)} />
      <p class="form-fault" role="alert">{fault}</p>
      {error !== null && <Fault error={error} />}
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy}>{busy ? t('plan.planning') : t('plan.preview')}</button>
      </div>
      <p class="note">{t('planner.free')}</p>
    </form>
  );
}
