// A resize from wish to end: the change, its plan, the start; then how it goes, what the cluster feels, and the levers.
import { useState } from 'preact/hooks';
import { model } from '../api/live';
import type { LogEntry, Plan, ResizeStatus } from '../api/types';
import { useWords } from '../i18n';
import { positionOf, rateAt } from '../lib/rate';
import { useValue } from '../lib/value';
import { confirmed, perform } from '../ui/actions';
import { useIndexes } from '../ui/colours';
import { FlowDiagram } from '../ui/flow';
import { Chip, Facts, Loading, Said, Section } from '../ui/parts';
import { PlanSummary, PlanView } from '../ui/plan';
import { Progress, underWay } from '../ui/progress';
import { SeriesCharts } from '../ui/series';
import { Planner } from './planner';
import { Table, type Column } from '../ui/table';

function RateSlider({ status }: { status: ResizeStatus }) {
  const { t, format } = useWords();
  const [position, setPosition] = useState<number | null>(null);
  const rate = position === null ? status.rate : rateAt(position);
  const changed = position !== null && rate !== status.rate;
  const send = async (): Promise<void> => {
    const agreed = await confirmed({
      title: t('rate.title'), confirm: t('rate.confirm'),
      what: <p>{t('rate.what', { from: format.rate(status.rate), to: format.rate(rate) })}</p>,
    });
    if (agreed && (await perform('/resize/rate', { keys_per_second: rate }, t('done.rate', { rate: format.rate(rate) })))) setPosition(null);
  };
  return (
    <div class="rate">
      <label class="field grow">
        <span>{t('rate.label')} <output>{format.rate(rate)}</output></span>
        <input type="range" min="0" max="1000" step="1" value={position ?? positionOf(status.rate)} aria-valuetext={format.rate(rate)}
               onInput={(event) => setPosition(Number(event.currentTarget.value))} />
      </label>
      <button type="button" disabled={!changed} onClick={() => void send()}>{t('rate.set')}</button>
      {changed && <button type="button" class="quiet" onClick={() => setPosition(null)}>{t('rate.undo')}</button>}
    </div>
  );
}

function Levers({ status }: { status: ResizeStatus }) {
  const { t } = useWords();
  const [busy, setBusy] = useState(false);
  const lever = async (name: 'pause' | 'resume' | 'rollback'): Promise<void> => {
    const agreed = await confirmed({ title: t(`${name}.title`), confirm: t(`${name}.confirm`), danger: name === 'rollback', what: <p>{t(`${name}.what`)}</p> });
    if (!agreed) return;
    setBusy(true);
    await perform(`/resize/${name}`, {}, t(`done.${name}`));
    setBusy(false);
  };
  const canResume = status.state === 'paused' || status.waiting !== '';
  return (
    <div class="buttons start">
      {(status.state === 'running' || status.state === 'preparing') && status.waiting !== 'pause' && (
        <button type="button" disabled={busy} onClick={() => void lever('pause')}>{t('pause.action')}</button>
      )}
      {canResume && <button type="button" class="primary" disabled={busy} onClick={() => void lever('resume')}>{t('resume.action')}</button>}
      {status.state !== 'rolling_back' && (
        <button type="button" class="danger" disabled={busy} onClick={() => void lever('rollback')}>{t('rollback.action')}</button>
      )}
    </div>
  );
}

function Waits({ status }: { status: ResizeStatus }) {
  const { t, n, format } = useWords();
  return (
    <ul class="warnings">
      {status.waiting !== '' && status.waiting !== 'pause' && (
        <li>{t(`waiting.${status.waiting}`)}{status.waiting_until && ` ${t('waiting.until', { time: status.waiting_until })}`}</li>
      )}
      {status.waits_for && <li>{t('waits.for')} <Said>{status.waits_for}</Said></li>}
      {status.held_back.map((why) => <li key={why}>{t('waits.slower')} <Said>{why}</Said></li>)}
      {(status.big_keys_waiting ?? 0) > 0 && (
        <li>{n('waits.bigKeys', status.big_keys_waiting ?? 0)}{' '}
          {(status.waiting_big_keys ?? []).slice(0, 5).map((one) => `${one.key} (${format.bytes(one.bytes)})`).join(', ')}
        </li>
      )}
      {(status.lost ?? []).length > 0 && <li>{t('waits.lost', { members: format.list(status.lost ?? []) })}</li>}
      {status.aborted && <li>{t('waits.aborted')} <Said>{status.aborted}</Said></li>}
      {status.last_error && <li class="critical-text"><Said>{status.last_error}</Said></li>}
    </ul>
  );
}

function LiveResize({ status }: { status: ResizeStatus }) {
  const { t, format } = useWords();
  const indexOf = useIndexes(status.pairs.flatMap((pair) => [pair.from, pair.to]));
  const total = status.pairs.reduce((sum, pair) => sum + pair.moved, 0);
  const pairs = status.pairs.map((pair) => ({ from: pair.from, to: pair.to, share: pair.moved }));
  const active = underWay(status);
  const rows: Column<ResizeStatus['pairs'][number]>[] = [
    { name: 'from', title: t('flow.gives'), sort: (row) => row.from, show: (row) => row.from },
    { name: 'to', title: t('flow.takes'), sort: (row) => row.to, show: (row) => row.to },
    { name: 'moved', title: t('resize.keysMoved'), numeric: true, sort: (row) => row.moved, show: (row) => format.count(row.moved) },
  ];
  return (
    <>
      <div class="card live">
        <Progress status={status} />
        <Waits status={status} />
        <Facts facts={[
          [t('resize.speed'), format.rate(active ? status.keys_per_second : null)],
          active ? [t('resize.allowed'), format.rate(status.rate_in_force)] : null,
          [t('resize.hold'), format.milliseconds(status.hold_ms_max)],
          [t('resize.fences'), format.count(status.fences)],
          [t('resize.verified'), format.count(status.keys_verified)],
          [t('resize.id'), <code>{status.id || '–'}</code>],
          status.abort_if ? [t('option.abortIf'), <code>{status.abort_if}</code>] : null,
        ]} />
        {active && <RateSlider status={status} />}
        {active && <Levers status={status} />}
      </div>
      <Section title={t('resize.feels')}><SeriesCharts resize /></Section>
      <Section title={t('resize.flow')}>
        <div class="card">
          {total > 0 ? <FlowDiagram pairs={pairs} indexOf={indexOf} show={(moved) => t('resize.keys', { keys: format.count(moved) })}
                                    total={t('resize.keys', { keys: format.count(total) })} />
                     : <p class="empty">{active ? t('resize.noneYet') : t('resize.noneMoved')}</p>}
        </div>
        {total > 0 && (
          <details class="more"><summary>{t('flow.table')}</summary>
            <Table caption={t('flow.table')} columns={rows} rows={status.pairs} keyOf={(row) => `${row.from}>${row.to}`} empty={t('flow.none')} />
          </details>
        )}
      </Section>
    </>
  );
}

function Log() {
  const { t, given, format } = useWords();
  const log = useValue(model, (now) => now.log);
  const columns: Column<LogEntry & { key: string }>[] = [
    { name: 'time', title: t('column.at'), show: (row) => <time dateTime={row.at}>{format.time(row.at_ms / 1000)}</time> },
    { name: 'event', title: t('column.event'), show: (row) => <Chip tone={row.event === 'error' || row.event === 'abort' ? 'critical' : 'quiet'}>{given('event', row.event)}</Chip> },
    { name: 'text', title: t('column.what'), show: (row) => <span class="wrap"><Said>{row.text}</Said></span> },
    { name: 'by', title: t('column.by'), show: (row) => row.by || t('log.controller') },
  ];
  const rows = (log?.entries ?? []).map((entry, index) => ({ ...entry, key: `${entry.resize} ${index}` })).reverse();
  return <Table caption={t('resize.log')} columns={columns} rows={rows} keyOf={(row) => row.key} empty={t('log.none')} />;
}

export function ResizePage() {
  const { t } = useWords();
  const status = useValue(model, (now) => now.resize);
  const [plan, setPlan] = useState<{ plan: Plan; body: Record<string, unknown> } | null>(null);
  const [busy, setBusy] = useState(false);
  if (!status) return <Loading />;
  const active = underWay(status);
  const ended = status.state === 'finished' || status.state === 'failed';
  const start = async (): Promise<void> => {
    if (!plan) return;
    const agreed = await confirmed({ title: t('start.title'), confirm: t('start.confirm'), what: <PlanSummary plan={plan.plan} />, wide: true });
    if (!agreed) return;
    setBusy(true);
    if (await perform('/resize/start', { ...plan.body, if_version: plan.plan.version }, t('done.started'))) setPlan(null);
    setBusy(false);
  };
  return (
    <>
      {active && <LiveResize status={status} />}
      {!active && (
        <>
          <Section title={t('planner.title')}>
            <Planner onPlan={(next) => setPlan(next)} />
          </Section>
          {plan && (
            <Section title={t('plan.title')}>
              <PlanView plan={plan.plan} />
              <div class="buttons">
                <button type="button" onClick={() => setPlan(null)}>{t('plan.discard')}</button>
                <button type="button" class="primary" disabled={busy || !plan.plan.can_resize_live} onClick={() => void start()}>{t('start.action')}</button>
              </div>
              {!plan.plan.can_resize_live && <p class="critical-text">{t('plan.cannot')}</p>}
            </Section>
          )}
          {ended && !plan && <Section title={t('resize.last')}><LiveResize status={status} /></Section>}
        </>
      )}
      <Section title={t('resize.log')}><Log /></Section>
    </>
  );
}
