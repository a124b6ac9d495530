// A plan as people read it: the verdict, what moves, who gives to whom, and what the origin would feel.
import { ask } from '../api/client';
import type { Change, Plan, StartOptions } from '../api/types';
import { useWords } from '../i18n';
import { useIndexes } from './colours';
import { FlowDiagram } from './flow';
import { Chip, Facts, Said, Section, type Tone } from './parts';
import { Table, type Column } from './table';

const VERDICTS: Record<Plan['verdict'], Tone> = { safe: 'good', caution: 'warning', unsafe: 'critical' };

export const planOf = (change: Change, options: StartOptions = {}): Promise<Plan> => ask<Plan>('/resize/plan', { change, options });

export function worstOrigin(plan: Plan): number {
  return plan.steps.reduce((most, step) => Math.max(most, step.live_origin_qps), plan.origin_qps.live_resize);
}

// What will happen, in a few lines: for confirmations.
export function PlanSummary({ plan }: { plan: Plan }) {
  const { t, format } = useWords();
  const joins = plan.members.filter((one) => one.share_before === 0 && one.share_after > 0).map((one) => one.id);
  const leaves = plan.members.filter((one) => one.share_after === 0 && one.share_before > 0).map((one) => one.id);
  const some = (ids: string[]): string => (ids.length > 8 ? format.list([...ids.slice(0, 8), t('list.more', { count: ids.length - 8 })]) : format.list(ids));
  return (
    <>
      <p><Chip tone={VERDICTS[plan.verdict]}>{t(`verdict.${plan.verdict}`)}</Chip> <Said>{plan.reason}</Said></p>
      <ul class="effects">
        {joins.length > 0 && <li>{t('effect.joins', { members: some(joins) })}</li>}
        {leaves.length > 0 && <li>{t('effect.leaves', { members: some(leaves) })}</li>}
        <li>{t('effect.moves', { share: format.percent(plan.moved_share, 2), keys: format.count(plan.keys_to_move), bytes: format.bytes(plan.bytes_to_move) })}</li>
        <li>{t('effect.time', { time: format.duration(plan.duration_seconds), steps: plan.steps.map((step) => `${format.decimal(step.percent)} %`).join(', ') })}</li>
        <li>{t('effect.origin', { now: format.rate(plan.origin_qps.now), live: format.rate(worstOrigin(plan)) })}</li>
        <li>{t('effect.back')}</li>
      </ul>
      {plan.warnings.length > 0 && <ul class="warnings">{plan.warnings.map((one) => <li key={one}><Said>{one}</Said></li>)}</ul>}
      {plan.not_asked !== '' && <p class="note">{t('plan.notAsked')} <Said>{plan.not_asked}</Said></p>}
    </>
  );
}

export function PlanView({ plan }: { plan: Plan }) {
  const { t, format } = useWords();
  const indexOf = useIndexes(plan.members.map((member) => member.id));
  const assumed = Object.entries(plan.sources).filter(([, source]) => source === 'assumed').map(([name]) => name);
  const steps: Column<Plan['steps'][number]>[] = [
    { name: 'percent', title: t('plan.step'), show: (row) => t('plan.upTo', { percent: `${format.decimal(row.percent)} %` }) },
    { name: 'keys', title: t('column.keys'), numeric: true, show: (row) => format.count(row.keys) },
    { name: 'bytes', title: t('column.bytes'), numeric: true, show: (row) => format.bytes(row.bytes) },
    { name: 'seconds', title: t('column.time'), numeric: true, show: (row) => format.duration(row.seconds) },
    { name: 'live', title: t('plan.live'), numeric: true, show: (row) => format.rate(row.live_origin_qps) },
    { name: 'cold', title: t('plan.cold'), numeric: true, hint: t('plan.coldHint'), show: (row) => format.rate(row.cold_origin_qps) },
  ];
  const pairs: Column<Plan['pairs'][number]>[] = [
    { name: 'from', title: t('flow.gives'), sort: (row) => row.from, show: (row) => row.from },
    { name: 'to', title: t('flow.takes'), sort: (row) => row.to, show: (row) => row.to },
    { name: 'share', title: t('fact.share'), numeric: true, sort: (row) => row.share, show: (row) => format.percent(row.share, 2) },
    { name: 'keys', title: t('column.keys'), numeric: true, sort: (row) => row.keys, show: (row) => format.count(row.keys) },
    { name: 'bytes', title: t('column.bytes'), numeric: true, sort: (row) => row.bytes, show: (row) => format.bytes(row.bytes) },
  ];
  const members: Column<Plan['members'][number]>[] = [
    { name: 'id', title: t('column.member'), sort: (row) => row.id, show: (row) => row.id },
    { name: 'before', title: t('plan.before'), numeric: true, sort: (row) => row.share_before, show: (row) => format.percent(row.share_before, 2) },
    { name: 'after', title: t('plan.after'), numeric: true, sort: (row) => row.share_after, show: (row) => format.percent(row.share_after, 2) },
    { name: 'in', title: t('plan.arrives'), numeric: true, sort: (row) => row.bytes_in, show: (row) => format.bytes(row.bytes_in) },
    { name: 'out', title: t('plan.goes'), numeric: true, sort: (row) => row.bytes_out, show: (row) => format.bytes(row.bytes_out) },
    { name: 'peak', title: t('plan.peak'), numeric: true, sort: (row) => row.memory_peak, show: (row) => format.bytes(row.memory_peak) },
    { name: 'room', title: t('plan.room'), show: (row) => (row.has_room ? t('yes') : <span class="critical-text">{t('no')}</span>) },
  ];
  return (
    <div class="plan">
      <div class="card"><PlanSummary plan={plan} /></div>
      <div class="card">
        <Facts facts={[
          [t('plan.moved'), `${format.percent(plan.moved_share, 2)} (${t('plan.minimum', { share: format.percent(plan.minimum_share, 2) })})`],
          [t('column.keys'), format.count(plan.keys_to_move)],
          [t('column.bytes'), format.bytes(plan.bytes_to_move)],
          [t('column.time'), `${format.duration(plan.duration_seconds)} (${t(`plan.bound.${plan.duration_bound_by}`)})`],
          [t('plan.worstOrigin'), format.rate(worstOrigin(plan))],
          [t('plan.coldSwitch'), format.rate(plan.origin_qps.cold_switch)],
        ]} />
        {assumed.length > 0 && <p class="note">{t('plan.assumed')} <Said>{assumed.join(', ')}</Said></p>}
      </div>
      <Section title={t('flow.title')}>
        <div class="card">
          <FlowDiagram pairs={plan.pairs} indexOf={indexOf} show={(share) => format.percent(share, 2)} total={format.percent(plan.moved_share, 2)} />
        </div>
        <details class="more"><summary>{t('flow.table')}</summary>
          <Table caption={t('flow.table')} columns={pairs} rows={plan.pairs} keyOf={(row) => `${row.from}>${row.to}`} empty={t('flow.none')} />
        </details>
      </Section>
      <Section title={t('plan.steps')}>
        <Table caption={t('plan.steps')} columns={steps} rows={plan.steps} keyOf={(row) => String(row.percent)} empty={t('flow.none')} />
      </Section>
      <details class="more"><summary>{t('plan.members')}</summary>
        <Table caption={t('plan.members')} columns={members} rows={plan.members} keyOf={(row) => row.id} empty={t('members.none')} />
      </details>
    </div>
  );
}
