// Is all well: health and alerts, whether all routers agree, what the cluster does now, and the last minutes as curves.
import type { ComponentChildren } from 'preact';
import { model } from '../api/live';
import type { Alert, Overview as OverviewData } from '../api/types';
import { useWords } from '../i18n';
import { hrefOf } from '../lib/router';
import { useValue } from '../lib/value';
import { HEALTH_TONES } from '../app';
import { Chip, Facts, Said, Section, shortDigest, type Tone } from '../ui/parts';
import { Progress, underWay } from '../ui/progress';
import { SeriesCharts, useColumns } from '../ui/series';
import { Spark } from '../ui/spark';

const SEVERITY: Record<Alert['severity'], Tone> = { critical: 'critical', warning: 'warning', info: 'info' };

function Tile(props: { title: string; figure: string; note?: ComponentChildren; values?: readonly (number | null)[] }) {
  return (
    <div class="tile card">
      <h2>{props.title}</h2>
      <p class="figure">{props.figure}</p>
      {props.note !== undefined && <p class="note">{props.note}</p>}
      {props.values && <Spark values={props.values} />}
    </div>
  );
}

function Alerts({ alerts }: { alerts: readonly Alert[] }) {
  const { t, format, language } = useWords();
  if (alerts.length === 0) return <p class="empty">{t('alerts.none')}</p>;
  return (
    <ul class="alerts">
      {alerts.map((alert) => (
        <li key={`${alert.code} ${alert.subject}`} class={`card alert-${alert.severity}`}>
          <Chip tone={SEVERITY[alert.severity]}>{t(`severity.${alert.severity}`)}</Chip>
          <div>
            <p>
              {language !== 'en' && <strong>{t(`alert.${alert.code}`)}{alert.subject && `（${alert.subject}）`} </strong>}
              <Said>{alert.text}</Said>
            </p>
            <p class="note">{t('alerts.since', { time: format.time(alert.since_ms / 1000) })}</p>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Agreement({ overview }: { overview: OverviewData }) {
  const { t, n, format } = useWords();
  const { total, agree, behind, other_digest: other } = overview.routers;
  const tone: Tone = total === 0 ? 'warning' : other.length > 0 ? 'critical' : agree < total ? 'warning' : 'good';
  const sentence = total === 0 ? t('agreement.noRouter')
    : agree === total ? n('agreement.all', total) : t('agreement.some', { agree, total });
  return (
    <div class="card agreement">
      <p><Chip tone={tone}>{t(tone === 'good' ? 'agreement.yes' : total === 0 ? 'agreement.unknown' : 'agreement.no')}</Chip> {sentence}</p>
      {behind.length > 0 && <p>{t('agreement.behind', { routers: format.list(behind) })}</p>}
      {other.length > 0 && <p class="critical-text">{t('agreement.other', { routers: format.list(other) })}</p>}
      <Facts facts={[
        [t('fact.version'), overview.version === '' ? t('fact.noTopology') : <code>{overview.version}</code>],
        [t('fact.digest'), overview.digest === '' ? '–' : <code title={overview.digest}>{shortDigest(overview.digest)}…</code>],
        [t('fact.placement'), overview.placement || '–'],
        [t('fact.consistency'), overview.consistency || '–'],
        [t('fact.controller'), overview.controller ?? t('fact.noController')],
        [t('fact.registry'), overview.registry_connected ? t('registry.connected') : t('registry.disconnected')],
      ]} />
      <a href={hrefOf('registry')}>{t('agreement.more')}</a>
    </div>
  );
}

export function Overview() {
  const { t, n, format, language } = useWords();
  const overview = useValue(model, (now) => now.overview);
  const status = useValue(model, (now) => now.resize);
  const columns = useColumns();
  if (!overview) return null;
  const members = overview.members;
  const memory = overview.memory_max_bytes
    ? t('tile.memoryOf', { max: format.bytes(overview.memory_max_bytes) }) : t('tile.memoryNoLimit');
  return (
    <>
      <div class={`health card ${HEALTH_TONES[overview.health]}`}>
        <strong>{t(`health.${overview.health}`)}</strong>
        <span>{language === 'en' ? overview.health_text : t(`healthText.${overview.health}`)}</span>
      </div>
      {status && (underWay(status) || status.state === 'failed') && (
        <Section title={t('nav.resize')} aside={<a href={hrefOf('resize')}>{t('overview.toResize')}</a>}>
          <div class="card"><Progress status={status} /></div>
        </Section>
      )}
      <div class="tiles">
        <Tile title={t('tile.qps')} figure={format.rate(overview.qps)} values={columns?.qps} note={t('tile.clients', { count: format.count(overview.clients) })} />
        <Tile title={t('tile.hitRate')} figure={format.percent(overview.hit_rate)} values={columns?.hitRate}
              note={overview.hit_rate === null ? t('tile.noReads') : t('tile.misses', { rate: format.rate(overview.misses_per_second) })} />
        <Tile title={t('tile.p99')} figure={format.milliseconds(overview.p99_ms)} values={columns?.p99} note={t('tile.p99Note')} />
        <Tile title={t('tile.origin')} figure={format.rate(overview.origin.qps)} values={columns?.origin} note={t(`origin.${overview.origin.source}`)} />
        <Tile title={t('tile.errors')} figure={format.rate(overview.errors_per_second)} values={columns?.errors} />
        <Tile title={t('tile.members')} figure={format.count(members.total)}
              note={members.unreachable > 0 ? <span class="critical-text">{n('tile.unreachable', members.unreachable)}</span> : t('tile.allReachable')} />
        <Tile title={t('tile.keys')} figure={format.count(overview.keys)} />
        <Tile title={t('tile.memory')} figure={format.bytes(overview.memory_used_bytes)} note={memory} />
      </div>
      <div class="two">
        <Section title={t('overview.alerts')}><Alerts alerts={overview.alerts} /></Section>
        <Section title={t('overview.agreement')}><Agreement overview={overview} /></Section>
      </div>
      <Section title={t('overview.lately')}><SeriesCharts /></Section>
    </>
  );
}
