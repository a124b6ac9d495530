// The circle: who owns which part of it, who stands beside whom, and where a key goes.
import { useMemo, useState } from 'preact/hooks';
import { model } from '../api/live';
import { ask } from '../api/client';
import type { Ring, RingMember, RouteAnswer, RoutedKey } from '../api/types';
import { arcsOf } from '../draw/ring';
import { useWords } from '../i18n';
import { useValue } from '../lib/value';
import { CanvasRing } from '../ui/canvas_ring';
import { useIndexes } from '../ui/colours';
import { Dot, Facts, Fault, Loading, Section, useGet } from '../ui/parts';
import { Table, type Column } from '../ui/table';

type RingRow = Ring['members'][number];

function ChosenMember({ ring, id, indexOf }: { ring: Ring; id: string; indexOf: (id: string) => number | undefined }) {
  const { t, format } = useWords();
  const member = ring.members.find((one) => one.id === id);
  const exact = useGet<RingMember>(ring.of === 'now' ? `/ring/members/${encodeURIComponent(id)}` : null, ring.version);
  if (!member) return <p class="empty">{t('ring.gone', { id })}</p>;
  const heirs = exact.answer?.id === id ? exact.answer.heirs : null;
  return (
    <>
      <h3><Dot index={indexOf(id)} /> {id}</h3>
      <Facts facts={[
        [t('fact.share'), format.percent(member.share, 2)],
        [t('fact.weight'), format.decimal(member.weight)],
        member.zone ? [t('fact.zone'), member.zone] : null,
        [t('ring.neighbours'), member.neighbours.length ? format.list(member.neighbours) : t('ring.noNeighbours')],
      ]} />
      {heirs && heirs.length > 0 && (
        <>
          <p class="note">{t('ring.heirs')}</p>
          <ol class="heirs">
            {heirs.slice(0, 8).map((heir) => (
              <li key={heir.id}><Dot index={indexOf(heir.id)} /> {heir.id} <span class="number">{format.percent(heir.share, 2)}</span></li>
            ))}
          </ol>
          {heirs.length > 8 && <p class="note">{t('ring.heirsMore', { count: format.count(heirs.length - 8) })}</p>}
        </>
      )}
    </>
  );
}

function KeyAnswer({ routed, indexOf }: { routed: RoutedKey; indexOf: (id: string) => number | undefined }) {
  const { t } = useWords();
  return (
    <div aria-live="polite">
      <Facts facts={[
        [t('key.owner'), <><Dot index={indexOf(routed.member)} /> {routed.member}</>],
        routed.source && routed.state !== 'settled' ? [t('key.from'), routed.source] : null,
        [t('key.slice'), t('key.sliceOf', { slice: routed.slice })],
        [t('key.state'), t(`keyState.${routed.state}`)],
        [t('key.replicas'), routed.replicas.length ? <ol class="chain">{routed.replicas.map((id) => <li key={id}>{id}</li>)}</ol> : '–'],
      ]} />
      <p class="note">{t('key.walk')}</p>
      <ol class="walk" lang="en">
        {routed.walk.map((line, index) => <li key={index}><code>{line}</code></li>)}
      </ol>
    </div>
  );
}

export function RingPage() {
  const { t, n, format } = useWords();
  const version = useValue(model, (now) => now.topology?.version ?? now.overview?.version ?? '');
  const resizing = useValue(model, (now) => now.topology?.resize !== null && now.topology?.resize !== undefined);
  const [wanted, setOf] = useState<'now' | 'target'>('now');
  const of = resizing ? wanted : 'now';
  const { answer: ring, error, again } = useGet<Ring>(`/ring?of=${of}&arcs=4096`, version);
  const [chosen, setChosen] = useState<string | null>(null);
  const [hovered, setHovered] = useState<string | null>(null);
  const [typed, setTyped] = useState('');
  const [routed, setRouted] = useState<RoutedKey | null>(null);
  const [routeError, setRouteError] = useState<unknown>(null);
  const ids = useMemo(() => ring?.members.map((member) => member.id) ?? [], [ring]);
  const indexOf = useIndexes(ids);
  const arcs = useMemo(() => (ring ? arcsOf(ring.starts, ring.owners, ids) : []), [ring, ids]);
  if (error && !ring) return <Fault error={error} again={again} />;
  if (!ring) return <Loading />;

  const byId = new Map(ring.members.map((member) => [member.id, member]));
  const shown = hovered ?? chosen;
  const shownMember = shown === null ? undefined : byId.get(shown);
  const look = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const answer = await ask<RouteAnswer>('/route', { keys: [typed], replicas: 3 });
      const first = answer.keys[0] ?? null;
      setRouted(first);
      setRouteError(null);
      if (first) setChosen(first.member);
    } catch (fault) {
      setRouted(null);
      setRouteError(fault);
    }
  };
  const columns: Column<RingRow>[] = [
    { name: 'id', title: t('column.member'), sort: (row) => row.id,
      show: (row) => <button type="button" class="link" aria-pressed={row.id === chosen} onClick={() => setChosen(row.id)}
                             onFocus={() => setHovered(row.id)} onBlur={() => setHovered(null)}>
        <Dot index={indexOf(row.id)} />{row.id}</button> },
    { name: 'share', title: t('fact.share'), numeric: true, sort: (row) => row.share, show: (row) => format.percent(row.share, 2) },
    { name: 'weight', title: t('fact.weight'), numeric: true, sort: (row) => row.weight, show: (row) => format.decimal(row.weight) },
    { name: 'neighbours', title: t('ring.neighbours'), show: (row) => row.neighbours.join(', ') || '–' },
  ];
  const shares = ring.members.map((member) => member.share);
  const label = t('ring.words', { members: ring.members.length, algorithm: ring.algorithm,
    low: format.percent(Math.min(...shares), 2), high: format.percent(Math.max(...shares), 2) });
  return (
    <>
      {error !== null && <Fault error={error} again={again} />}
      <div class="ring-page">
        <div class="card ring-card">
          {resizing && (
            <fieldset class="switch">
              <legend class="unseen">{t('ring.which')}</legend>
              {(['now', 'target'] as const).map((one) => (
                <label key={one}><input type="radio" name="of" checked={of === one} onChange={() => setOf(one)} /> <span>{t(`ring.${one}`)}</span></label>
              ))}
            </fieldset>
          )}
          <CanvasRing arcs={arcs} indexOf={indexOf} chosen={chosen} hovered={hovered} needle={routed?.position ?? null} label={label}
                      centre={shownMember ? [shownMember.id, format.percent(shownMember.share, 2)] : [n('ring.members', ring.members.length), ring.algorithm]}
                      onHover={setHovered} onChoose={setChosen} />
          <p class="note">
            {ring.points_total !== null ? t('ring.points', { points: format.count(ring.points_total), algorithm: ring.algorithm }) : t('ring.noCircle', { algorithm: ring.algorithm })}
            {!ring.exact_arcs && ring.points_total !== null && ` ${t('ring.sampled')}`}
            {!ring.exact_shares && ` ${t('ring.sharesSampled')}`}
          </p>
        </div>
        <div class="ring-side">
          <Section title={t('key.title')}>
            <div class="card">
              <form class="inline" onSubmit={(event) => void look(event)}>
                <label class="field grow">
                  <span>{t('key.label')}</span>
                  <input type="text" value={typed} maxLength={4096} spellcheck={false} autoCapitalize="off" autoComplete="off"
                         onInput={(event) => setTyped(event.currentTarget.value)} placeholder="user:1000" />
                </label>
                <button type="submit" class="primary">{t('key.look')}</button>
              </form>
              {routeError !== null && <Fault error={routeError} />}
              {routed ? <KeyAnswer routed={routed} indexOf={indexOf} /> : routeError === null && <p class="note">{t('key.hint')}</p>}
            </div>
          </Section>
          <Section title={t('ring.member')}>
            <div class="card">
              {chosen ? <ChosenMember ring={ring} id={chosen} indexOf={indexOf} /> : <p class="note">{t('ring.choose')}</p>}
            </div>
          </Section>
        </div>
      </div>
      <Section title={t('ring.table')}>
        <Table caption={t('ring.table')} columns={columns} rows={ring.members} keyOf={(row) => row.id} empty={t('members.none')}
               order={{ column: 'id', descending: false }} selected={chosen ?? undefined} />
      </Section>
    </>
  );
}
