// The registry and who registered in it: connection, the controller's lock, routers, instances, and what was done here.
import { model } from '../api/live';
import type { AuditEntry, RegistryState, Router } from '../api/types';
import { useWords } from '../i18n';
import { useValue } from '../lib/value';
import { Chip, Facts, Loading, Said, Section, shortDigest } from '../ui/parts';
import { Table, type Column } from '../ui/table';

function RouterTable({ routers }: { routers: readonly Router[] }) {
  const { t, format } = useWords();
  const columns: Column<Router>[] = [
    { name: 'id', title: t('column.router'), sort: (row) => row.id, show: (row) => <code>{row.id}</code> },
    { name: 'listen', title: t('registry.listen'), sort: (row) => row.listen, show: (row) => <code>{row.listen || '–'}</code> },
    { name: 'agrees', title: t('registry.obeys'), sort: (row) => row.agrees, show: (row) => (
      <><Chip tone={row.agrees ? 'good' : 'warning'}>{row.agrees ? t('registry.agrees') : t('registry.behind', { time: format.duration(row.behind_ms / 1000) })}</Chip>{' '}
        <code title={row.digest}>{row.version ? `${row.version} · ${shortDigest(row.digest)}` : '–'}</code></>) },
    { name: 'rate', title: t('members.load'), numeric: true, sort: (row) => row.requests_per_second, show: (row) => format.rate(row.requests_per_second) },
    { name: 'hitRate', title: t('column.hitRate'), numeric: true, sort: (row) => row.hit_rate, show: (row) => format.percent(row.hit_rate) },
    { name: 'p50', title: t('column.p50'), numeric: true, sort: (row) => row.p50_ms, show: (row) => format.milliseconds(row.p50_ms) },
    { name: 'p99', title: t('column.p99'), numeric: true, sort: (row) => row.p99_ms, show: (row) => format.milliseconds(row.p99_ms) },
    { name: 'errors', title: t('column.errors'), numeric: true, sort: (row) => row.errors_per_second, show: (row) => format.rate(row.errors_per_second) },
    { name: 'clients', title: t('members.clients'), numeric: true, sort: (row) => row.clients, show: (row) =>
      row.max_clients ? t('registry.clientsOf', { clients: format.count(row.clients), max: format.count(row.max_clients) }) : format.count(row.clients) },
    { name: 'in', title: t('registry.bytesIn'), numeric: true, sort: (row) => row.bytes_in_per_second, show: (row) => format.byteRate(row.bytes_in_per_second) },
    { name: 'out', title: t('registry.bytesOut'), numeric: true, sort: (row) => row.bytes_out_per_second, show: (row) => format.byteRate(row.bytes_out_per_second) },
    { name: 'unreachable', title: t('registry.cannotReach'), sort: (row) => row.unreachable.length, show: (row) =>
      row.unreachable.length === 0 ? t('registry.reachesAll')
        : <span class="critical-text" title={row.unreachable.map((one) => `${one.member}: ${one.why}`).join('\n')}>{row.unreachable.map((one) => one.member).join(', ')}</span> },
    { name: 'heard', title: t('registry.heard'), sort: (row) => row.updated_at_ms, show: (row) => format.time(row.updated_at_ms / 1000) },
  ];
  return <Table caption={t('registry.routers')} columns={columns} rows={routers} keyOf={(row) => row.id} empty={t('registry.noRouters')}
                order={{ column: 'id', descending: false }} />;
}

type Lease = { id: string; kind: 'controller' | 'router' | 'instance'; lease: string; revision: number | null };

function leasesOf(state: RegistryState): Lease[] {
  return [
    ...(state.controller ? [{ id: state.controller.id, kind: 'controller' as const, lease: state.controller.lease, revision: state.controller.revision }] : []),
    ...state.routers.map((one) => ({ id: one.id, kind: 'router' as const, lease: one.lease, revision: one.revision })),
    ...state.instances.map((one) => ({ id: one.id, kind: 'instance' as const, lease: one.lease, revision: null })),
  ];
}

export function RegistryPage() {
  const { t, format } = useWords();
  const state = useValue(model, (now) => now.registry);
  const routers = useValue(model, (now) => now.routers);
  const audit = useValue(model, (now) => now.audit);
  if (!state) return <Loading />;
  const instances: Column<RegistryState['instances'][number]>[] = [
    { name: 'id', title: t('column.id'), sort: (row) => row.id, show: (row) => <code>{row.id}</code> },
    { name: 'lease', title: t('registry.lease'), show: (row) => <code>{row.lease || '–'}</code> },
    { name: 'value', title: t('registry.value'), show: (row) => <code class="wrap">{typeof row.value === 'string' ? row.value : JSON.stringify(row.value)}</code> },
  ];
  const leases: Column<Lease>[] = [
    { name: 'lease', title: t('registry.lease'), sort: (row) => row.lease, show: (row) => <code>{row.lease || t('registry.noLease')}</code> },
    { name: 'kind', title: t('registry.kind'), sort: (row) => row.kind, show: (row) => t(`leaseKind.${row.kind}`) },
    { name: 'id', title: t('column.id'), sort: (row) => row.id, show: (row) => <code>{row.id}</code> },
    { name: 'revision', title: t('registry.revision'), numeric: true, sort: (row) => row.revision, show: (row) => format.count(row.revision) },
  ];
  const entries: Column<AuditEntry>[] = [
    { name: 'at', title: t('column.at'), show: (row) => <time>{format.time(row.at_ms / 1000)}</time> },
    { name: 'who', title: t('column.by'), show: (row) => row.who },
    { name: 'action', title: t('column.action'), show: (row) => <code>{row.action}</code> },
    { name: 'subject', title: t('column.subject'), show: (row) => row.subject || '–' },
    { name: 'change', title: t('column.what'), show: (row) => <span class="wrap">{row.from || '–'} → {row.to || '–'}</span> },
    { name: 'result', title: t('column.result'), show: (row) => (
      <span class="wrap"><Chip tone={row.result === 'accepted' ? 'good' : 'critical'}>{row.result === 'accepted' ? t('audit.accepted') : t('audit.refused')}</Chip>{' '}
        {row.result !== 'accepted' && <Said>{row.result}</Said>}</span>) },
  ];
  const keys = Object.entries(state.keys).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <>
      <div class="card">
        <p>
          <Chip tone={state.connected ? 'good' : 'critical'}>{state.connected ? t('registry.connected') : t('registry.disconnected')}</Chip>{' '}
          {t('registry.since', { time: format.time(state.since_ms / 1000) })} {state.error && <span class="critical-text"><Said>{state.error}</Said></span>}
        </p>
        <Facts facts={[
          [t('registry.url'), <code>{state.url}</code>],
          [t('registry.prefix'), <code>{state.prefix}</code>],
          [t('registry.revision'), format.count(state.revision)],
          [t('registry.keys'), keys.map(([name, count]) => `${name} ${format.count(count)}`).join(' · ') || '–'],
          [t('fact.controller'), state.controller ? <code>{state.controller.id}</code> : <span class="critical-text">{t('fact.noController')}</span>],
          state.controller?.since_ms ? [t('registry.lockSince'), format.time(state.controller.since_ms / 1000)] : null,
          [t('registry.cluster'), <code>{state.cluster_id || '–'}</code>],
        ]} />
      </div>
      <Section title={t('registry.routers')}><RouterTable routers={routers?.routers ?? []} /></Section>
      <Section title={t('registry.instances')}>
        <Table caption={t('registry.instances')} columns={instances} rows={state.instances} keyOf={(row) => row.id} empty={t('registry.noInstances')} />
      </Section>
      <Section title={t('registry.leases')}>
        <Table caption={t('registry.leases')} columns={leases} rows={leasesOf(state)} keyOf={(row) => `${row.kind} ${row.id}`} empty={t('registry.noLeases')} />
      </Section>
      <Section title={t('registry.audit')}>
        <Table caption={t('registry.audit')} columns={entries} rows={audit?.entries ?? []} keyOf={(row) => row.id} empty={t('audit.none')} />
      </Section>
    </>
  );
}
