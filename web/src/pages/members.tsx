// Every member with its state and figures; what can be done with it is behind a plan, a confirmation and the token.
import { useMemo, useState } from 'preact/hooks';
import { model } from '../api/live';
import type { Member } from '../api/types';
import { useWords, wordsOf } from '../i18n';
import { language } from '../lib/settings';
import { useValue } from '../lib/value';
import { useIndexes } from '../ui/colours';
import { showDialog } from '../ui/dialog';
import { Chip, Dot, Facts, Loading, Meter, Said, type Tone } from '../ui/parts';
import { propose } from '../ui/propose';
import { Table, type Column } from '../ui/table';
import { MembershipSections } from './membership';

const STATES: Record<Member['state'], Tone> = {
  active: 'good', warmup: 'info', draining: 'warning', joining: 'info', leaving: 'warning', lost: 'critical',
};

function memoryShare(member: Member): number | null {
  const { info } = member;
  if (!info?.memory_max_bytes || info.memory_used_bytes === null) return null;
  return info.memory_used_bytes / info.memory_max_bytes;
}

const memoryTone = (share: number | null): Tone => (share === null ? 'quiet' : share > 0.95 ? 'critical' : share > 0.85 ? 'warning' : 'info');

function Memory({ member }: { member: Member }) {
  const { t, format } = useWords();
  const share = memoryShare(member);
  if (!member.info) return <>–</>;
  return (
    <span class="with-meter">
      {format.bytes(member.info.memory_used_bytes)}
      {share !== null ? <><span class="of"> {t('memory.of', { max: format.bytes(member.info.memory_max_bytes) })}</span> <Meter share={share} tone={memoryTone(share)} /></>
                      : member.info.memory_max_bytes === 0 && <span class="of"> {t('memory.noLimit')}</span>}
    </span>
  );
}

// Keys that a member still holds while it goes: they fall to 0.
const residue = (member: Member): number | null =>
  member.state === 'leaving' || member.state === 'draining' ? member.info?.keys ?? null : null;

function WeightForm({ member, close }: { member: Member; close: (answer: boolean) => void }) {
  const { t } = useWords();
  const [typed, setTyped] = useState(String(member.weight));
  const weight = Number(typed.replace(',', '.'));
  const good = typed.trim() !== '' && Number.isFinite(weight) && weight > 0;
  const same = weight === member.weight;
  return (
    <form onSubmit={(event) => {
      event.preventDefault();
      if (!good || same) return;
      close(true);
      const { t: say } = wordsOf(language.get());
      void propose({
        title: say('weight.title', { id: member.id }),
        intro: say('weight.intro', { id: member.id, from: member.weight, to: weight }),
        change: { edit: { weights: { [member.id]: weight }, retire: false } },
        path: `/members/${encodeURIComponent(member.id)}/weight`,
        body: { weight },
        confirm: say('weight.confirm'),
      });
    }}>
      <label class="field">
        <span>{t('weight.label')}</span>
        <input type="text" inputMode="decimal" value={typed} autofocus onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      <p class="form-fault" role="alert">{good ? '' : t('fault.weight')}</p>
      <div class="buttons">
        <button type="button" onClick={() => close(false)}>{t('dialog.cancel')}</button>
        <button type="submit" class="primary" disabled={!good || same}>{t('plan.preview')}</button>
      </div>
    </form>
  );
}

function AddForm({ close }: { close: (answer: boolean) => void }) {
  const { t } = useWords();
  const [id, setId] = useState('');
  const [address, setAddress] = useState('');
  const [weight, setWeight] = useState('1');
  const [zone, setZone] = useState('');
  const number = Number(weight.replace(',', '.'));
  const good = id.trim() !== '' && address.trim() !== '' && Number.isFinite(number) && number > 0;
  return (
    <form onSubmit={(event) => {
      event.preventDefault();
      if (!good) return;
      close(true);
      const { t: say } = wordsOf(language.get());
      const added = { id: id.trim(), address: address.trim(), weight: number, ...(zone.trim() ? { zone: zone.trim() } : {}) };
      void propose({
        title: say('add.title'), intro: say('add.intro', { id: added.id, address: added.address }),
        change: { edit: { add: [added], retire: false } }, path: '/members', body: { members: [added] }, confirm: say('add.confirm'),
      });
    }}>
      <p>{t('add.hint')}</p>
      <label class="field"><span>{t('column.id')}</span>
        <input type="text" required value={id} autofocus spellcheck={false} autoCapitalize="off" placeholder="cache-5" onInput={(event) => setId(event.currentTarget.value)} /></label>
      <label class="field"><span>{t('column.address')}</span>
        <input type="text" required value={address} spellcheck={false} autoCapitalize="off" placeholder="10.0.0.5:6379" onInput={(event) => setAddress(event.currentTarget.value)} /></label>
      <label class="field"><span>{t('fact.weight')}</span>
        <input type="text" inputMode="decimal" value={weight} onInput={(event) => setWeight(event.currentTarget.value)} /></label>
      <label class="field"><span>{t('add.zone')}</span>
        <input type="text" value={zone} spellcheck={false} onInput={(event) => setZone(event.currentTarget.value)} /></label>
      <div class="buttons">
        <button type="button" onClick={() => close(false)}>{t('dialog.cancel')}</button>
        <button type="submit" class="primary" disabled={!good}>{t('plan.preview')}</button>
      </div>
    </form>
  );
}

function leave(member: Member, how: 'drain' | 'remove'): void {
  const { t } = wordsOf(language.get());
  void propose({
    title: t(`${how}.title`, { id: member.id }),
    intro: t(`${how}.intro`, { id: member.id }),
    change: { edit: { remove: [member.id], retire: how === 'remove' } },
    path: `/members/${encodeURIComponent(member.id)}/${how}`,
    body: {},
    confirm: t(`${how}.confirm`),
    danger: how === 'remove',
  });
}

// Follows the member while the dialog is open.
function MemberDetails({ id, close }: { id: string; close: (answer: boolean) => void }) {
  const { t, format } = useWords();
  const member = useValue(model, (now) => now.members?.members.find((one) => one.id === id));
  if (!member) return <p class="empty">{t('ring.gone', { id })}</p>;
  const { info } = member;
  return (
    <>
      <p><Chip tone={STATES[member.state]}>{t(`memberState.${member.state}`)}</Chip>{' '}
        {member.reachable === false && <span class="critical-text">{t('members.unreachable')}: <Said>{member.unreachable_why}</Said></span>}</p>
      <Facts facts={[
        [t('column.address'), <code>{member.address}</code>],
        [t('fact.weight'), format.decimal(member.weight)],
        member.zone ? [t('fact.zone'), member.zone] : null,
        member.host ? [t('fact.host'), member.host] : null,
        [t('fact.share'), format.percent(member.share, 2)],
        member.share_after !== null ? [t('members.shareAfter'), format.percent(member.share_after, 2)] : null,
        member.factor !== 1000 ? [t('fact.factor'), format.percent(member.factor / 1000)] : null,
        [t('members.load'), `${format.rate(member.requests_per_second)} (${format.percent(member.requests_share)})`],
        [t('column.hitRate'), format.percent(member.hit_rate)],
        [t('column.p99'), format.milliseconds(member.p99_ms)],
        [t('column.errors'), format.rate(member.errors_per_second)],
        [t('members.timeouts'), format.rate(member.timeouts_per_second)],
        [t('members.inFlight'), format.count(member.in_flight)],
        [residue(member) === null ? t('column.keys') : t('members.residue'), format.count(info?.keys)],
        [t('column.memory'), <Memory member={member} />],
        info ? [t('members.evicted'), format.rate(info.evicted_keys_per_second)] : null,
        info ? [t('members.clients'), format.count(info.clients)] : null,
        info ? [t('members.server'), `${info.server_version} · ${info.role}`] : null,
        info ? [t('members.uptime'), format.duration(info.uptime_seconds)] : null,
      ]} />
      <div class="buttons start">
        <button type="button" onClick={() => {
          close(true);
          void showDialog(t('weight.title', { id }), (end) => <WeightForm member={member} close={end} />);
        }}>{t('weight.action')}</button>
        <button type="button" onClick={() => { close(true); leave(member, 'drain'); }}>{t('drain.action')}</button>
        <button type="button" class="danger" onClick={() => { close(true); leave(member, 'remove'); }}>{t('remove.action')}</button>
      </div>
      <p class="note">{t('members.actionsHint')}</p>
    </>
  );
}

export function MembersPage() {
  const words = useWords();
  const { t, n, format } = words;
  const members = useValue(model, (now) => now.members);
  const [filter, setFilter] = useState('');
  const indexOf = useIndexes();
  const resizing = members?.members.some((member) => member.share_after !== null) ?? false;
  const columns = useMemo((): Column<Member>[] => [
    { name: 'id', title: t('column.member'), sort: (row) => row.id, show: (row) => (
      <button type="button" class="link" aria-label={t('members.open', { id: row.id })}
              onClick={() => void showDialog(row.id, (close) => <MemberDetails id={row.id} close={close} />, true)}>
        <Dot index={indexOf(row.id)} />{row.id}
      </button>) },
    { name: 'state', title: t('column.state'), sort: (row) => row.state, show: (row) => (
      <>
        <Chip tone={STATES[row.state]}>{t(`memberState.${row.state}`)}</Chip>
        {row.reachable === false && <> <Chip tone="critical">{t('members.unreachable')}</Chip></>}
      </>) },
    { name: 'share', title: t('fact.share'), numeric: true, hint: t('members.shareHint'), sort: (row) => row.share, show: (row) => format.percent(row.share, 2) },
    ...(resizing ? [{ name: 'after', title: t('members.shareAfter'), numeric: true, sort: (row: Member) => row.share_after, show: (row: Member) => format.percent(row.share_after, 2) }] : []),
    { name: 'load', title: t('members.load'), numeric: true, sort: (row) => row.requests_per_second, show: (row) => format.rate(row.requests_per_second) },
    { name: 'loadShare', title: t('members.loadShare'), numeric: true, hint: t('members.loadHint'), sort: (row) => row.requests_share, show: (row) => format.percent(row.requests_share) },
    { name: 'hitRate', title: t('column.hitRate'), numeric: true, sort: (row) => row.hit_rate, show: (row) => format.percent(row.hit_rate) },
    { name: 'p99', title: t('column.p99'), numeric: true, sort: (row) => row.p99_ms, show: (row) => format.milliseconds(row.p99_ms) },
    { name: 'errors', title: t('column.errors'), numeric: true, sort: (row) => row.errors_per_second, show: (row) => format.rate(row.errors_per_second) },
    { name: 'memory', title: t('column.memory'), numeric: true, sort: (row) => row.info?.memory_used_bytes, show: (row) => <Memory member={row} /> },
    { name: 'keys', title: t('column.keys'), numeric: true, sort: (row) => row.info?.keys, show: (row) => format.count(row.info?.keys) },
    { name: 'residue', title: t('members.residue'), numeric: true, hint: t('members.residueHint'), sort: (row) => residue(row),
      show: (row) => format.count(residue(row)) },
    { name: 'address', title: t('column.address'), sort: (row) => row.address, show: (row) => <code>{row.address}</code> },
  ], [words, indexOf, resizing]);
  const wanted = filter.trim().toLowerCase();
  const rows = useMemo(() => (members?.members ?? []).filter((member) =>
    wanted === '' || [member.id, member.address, member.zone, member.host, t(`memberState.${member.state}`)].some((text) => text.toLowerCase().includes(wanted))),
    [members, wanted, words]);
  if (!members) return <Loading />;
  return (
    <>
      <div class="toolbar">
        <label class="field grow">
          <span>{t('members.filter')}</span>
          <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} placeholder={t('members.filterHint')} />
        </label>
        <button type="button" class="primary" onClick={() => void showDialog(t('add.title'), (close) => <AddForm close={close} />)}>{t('add.action')}</button>
      </div>
      <p class="note" role="status">
        {wanted === '' ? n('members.count', rows.length) : t('members.found', { shown: format.count(rows.length), total: format.count(members.members.length) })}
        {!members.exact_shares && ` ${t('ring.sharesSampled')}`}
      </p>
      <Table caption={t('nav.members')} columns={columns} rows={rows} keyOf={(row) => row.id} order={{ column: 'id', descending: false }}
             empty={members.members.length === 0 ? t('members.none') : t('members.noneFound', { filter })} />
      <MembershipSections />
    </>
  );
}
