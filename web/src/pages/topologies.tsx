// The topologies that were: what changed when, the difference of any two, one of them whole, and the way back.
import { useState } from 'preact/hooks';
import { model } from '../api/live';
import type { StoredTopology, Topologies, TopologyDiff, TopologySummary } from '../api/types';
import { useWords, wordsOf } from '../i18n';
import { language } from '../lib/settings';
import { useValue } from '../lib/value';
import { useIndexes } from '../ui/colours';
import { showDialog } from '../ui/dialog';
import { FlowDiagram } from '../ui/flow';
import { Chip, Facts, Fault, Loading, Said, Section, shortDigest, useGet } from '../ui/parts';
import { propose } from '../ui/propose';
import { Table, type Column } from '../ui/table';

function Document({ revision }: { revision: number }) {
  const { answer, error, again } = useGet<StoredTopology>(`/topologies/${revision}`);
  if (error) return <Fault error={error} again={again} />;
  if (!answer) return <Loading />;
  return <pre class="document" tabIndex={0}>{JSON.stringify(answer.topology, null, 2)}</pre>;
}

function Difference({ from, to }: { from: number; to: number }) {
  const { t, format } = useWords();
  const { answer, error, again } = useGet<TopologyDiff>(`/topologies/diff?from=${from}&to=${to}`);
  const indexOf = useIndexes((answer?.pairs ?? []).flatMap((pair) => [pair.from, pair.to]));
  if (error) return <Fault error={error} again={again} />;
  if (!answer) return <Loading />;
  const columns: Column<TopologyDiff['pairs'][number]>[] = [
    { name: 'from', title: t('flow.gives'), sort: (row) => row.from, show: (row) => row.from },
    { name: 'to', title: t('flow.takes'), sort: (row) => row.to, show: (row) => row.to },
    { name: 'share', title: t('fact.share'), numeric: true, sort: (row) => row.share, show: (row) => format.percent(row.share, 4) },
  ];
  return (
    <div class="card">
      <Facts facts={[
        [t('diff.from'), <code>{answer.from}</code>],
        [t('diff.to'), <code>{answer.to}</code>],
        [t('plan.moved'), format.percent(answer.moved_share, 2)],
        [t('diff.least'), format.percent(answer.minimum_share, 2)],
      ]} />
      {!answer.exact && <p class="note">{t('ring.sharesSampled')}</p>}
      {answer.changes.length > 0 ? <ul class="changes">{answer.changes.map((one) => <li key={one}><Said>{one}</Said></li>)}</ul>
                                 : <p class="note">{t('diff.noChange')}</p>}
      {answer.pairs.length > 0 && (
        <>
          <FlowDiagram pairs={answer.pairs} indexOf={indexOf} show={(share) => format.percent(share, 2)} total={format.percent(answer.moved_share, 2)} />
          <details class="more"><summary>{t('flow.table')}</summary>
            <Table caption={t('flow.table')} columns={columns} rows={answer.pairs} keyOf={(row) => `${row.from}>${row.to}`} empty={t('flow.none')} />
          </details>
        </>
      )}
    </div>
  );
}

export function TopologiesPage() {
  const words = useWords();
  const { t, n, format } = words;
  const newest = useValue(model, (now) => now.topology?.revision ?? 0);
  const { answer, error, again } = useGet<Topologies>('/topologies?limit=200', newest);
  const [from, setFrom] = useState<number | null>(null);
  const [to, setTo] = useState<number | null>(null);
  if (error && !answer) return <Fault error={error} again={again} />;
  if (!answer) return <Loading />;
  const list = answer.topologies;
  const older = from ?? list[1]?.revision ?? null;
  const newer = to ?? list[0]?.revision ?? null;

  const goBack = (row: TopologySummary): void => {
    const { t: say } = wordsOf(language.get());
    void propose({
      title: say('restore.title', { version: row.version }), intro: say('restore.intro', { version: row.version }),
      change: { topology: row.revision }, path: `/topologies/${row.revision}/restore`, body: {}, confirm: say('restore.confirm'), danger: true,
    });
  };
  const columns: Column<TopologySummary>[] = [
    { name: 'version', title: t('fact.version'), show: (row) => (
      <span class="version"><code>{row.version}</code> {row.in_force && <Chip tone="good">{t('topologies.inForce')}</Chip>}</span>) },
    { name: 'pick', title: t('topologies.compare'), show: (row) => (
      <span class="picks">
        <label class="check"><input type="radio" name="from" checked={older === row.revision} aria-label={t('topologies.pickFrom', { version: row.version })}
          onChange={() => setFrom(row.revision)} /><span>{t('diff.from')}</span></label>
        <label class="check"><input type="radio" name="to" checked={newer === row.revision} aria-label={t('topologies.pickTo', { version: row.version })}
          onChange={() => setTo(row.revision)} /><span>{t('diff.to')}</span></label>
      </span>) },
    { name: 'seen', title: t('column.at'), show: (row) => <time>{row.seen_at_ms === null ? t('topologies.before') : format.time(row.seen_at_ms / 1000)}</time> },
    { name: 'members', title: t('nav.members'), numeric: true, show: (row) => format.count(row.members) },
    { name: 'algorithm', title: t('fact.placement'), show: (row) => row.algorithm },
    { name: 'changes', title: t('topologies.changes'), show: (row) => (
      <span class="wrap">
        {row.resize && <Chip tone="info">{row.resize.rollback ? t('state.rolling_back') : t('topologies.resizing')} · {t(`phase.${row.resize.phase}`)}</Chip>}{' '}
        <Said>{row.changes.join('; ') || '–'}</Said>
      </span>) },
    { name: 'digest', title: t('fact.digest'), show: (row) => <code title={row.digest}>{shortDigest(row.digest)}</code> },
    { name: 'do', title: t('column.actions'), show: (row) => (
      <span class="row-buttons">
        <button type="button" class="small" aria-label={t('topologies.showOf', { version: row.version })}
                onClick={() => void showDialog(t('topologies.document', { version: row.version }), () => <Document revision={row.revision} />, true)}>{t('topologies.show')}</button>
        {!row.in_force && !row.resize && (
          <button type="button" class="small" aria-label={t('restore.title', { version: row.version })} onClick={() => goBack(row)}>{t('restore.action')}</button>
        )}
      </span>) },
  ];
  return (
    <>
      {error !== null && <Fault error={error} again={again} />}
      <Section title={t('topologies.history')}>
        <p class="note">{n('topologies.count', list.length)}</p>
        <Table caption={t('topologies.history')} columns={columns} rows={list} keyOf={(row) => String(row.revision)} empty={t('topologies.none')} />
      </Section>
      <Section title={t('topologies.difference')}>
        {older === null || newer === null ? <p class="empty">{t('topologies.onlyOne')}</p>
          : older === newer ? <p class="empty">{t('topologies.same')}</p> : <Difference from={older} to={newer} />}
      </Section>
    </>
  );
}
