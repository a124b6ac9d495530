// What the page knows of the cluster, and how each event of the stream changes it. Pure: an event makes a new model of
// which only the parts that it speaks of are new, so that only what shows those is drawn again.
import type {
  AuditEntry, Audit, HotKeys, LogEntry, Member, Members, MembersDelta, Membership, Overview, RegistryState, ResizeLog,
  ResizeStatus, Router, Routers, RoutersDelta, Series, SeriesMark, SeriesPoint, Snapshot, TopologySummary,
} from './types';

export const POINTS_MAX = 900; // As the server keeps.
export const MARKS_MAX = 200;
export const LOG_MAX = 500;
export const AUDIT_MAX = 500;

export interface Model {
  overview: Overview | null;
  members: Members | null;
  routers: Routers | null;
  resize: ResizeStatus | null;
  log: ResizeLog | null;
  topology: TopologySummary | null;
  series: Series | null;
  hotKeys: HotKeys | null;
  registry: RegistryState | null;
  membership: Membership | null;
  audit: Audit | null;
}

export const nothing: Model = {
  overview: null, members: null, routers: null, resize: null, log: null, topology: null, series: null, hotKeys: null,
  registry: null, membership: null, audit: null,
};

export const EVENTS = [
  'snapshot', 'overview', 'members', 'routers', 'resize', 'log', 'topology', 'series', 'mark', 'hot_keys', 'registry',
  'membership', 'audit',
] as const;
export type EventName = (typeof EVENTS)[number];

interface Identified {
  id: string;
}

// Rows that changed are merged into those with the same id; what is new goes to the end, unless it is no whole row (its
// beginning was missed: the next snapshot brings it).
function patch<Row extends Identified>(rows: readonly Row[], changed: readonly Identified[], removed: readonly string[],
                                       whole: (row: object) => boolean): Row[] {
  const byId = new Map(changed.map((row) => [row.id, row]));
  const gone = new Set(removed);
  const out: Row[] = [];
  for (const row of rows) {
    if (gone.has(row.id)) continue;
    const change = byId.get(row.id);
    out.push(change ? { ...row, ...change } : row);
    byId.delete(row.id);
  }
  for (const row of byId.values()) {
    if (!gone.has(row.id) && whole(row)) out.push(row as Row);
  }
  return out;
}

function append(series: Series, point: SeriesPoint): Series {
  const columns: Series['columns'] = { ...series.columns };
  for (const [name, column] of Object.entries(series.columns)) {
    const next = column.length >= POINTS_MAX ? column.slice(column.length - POINTS_MAX + 1) : column.slice();
    next.push((point as Record<string, number | null>)[name] ?? null);
    columns[name] = next;
  }
  return { ...series, columns };
}

export function apply(model: Model, event: EventName, data: unknown): Model {
  switch (event) {
    case 'snapshot': {
      const { hot_keys: hotKeys, ...rest } = data as Snapshot;
      return { ...nothing, ...rest, hotKeys: hotKeys ?? null };
    }
    case 'overview':
      return { ...model, overview: data as Overview };
    case 'members': {
      const delta = data as MembersDelta;
      if (!model.members) return model;
      const members = patch<Member>(model.members.members, delta.changed, delta.removed, (row) => 'address' in row);
      return { ...model, members: { ...model.members, members } };
    }
    case 'routers': {
      const delta = data as RoutersDelta;
      if (!model.routers) return model;
      const routers = patch<Router>(model.routers.routers, delta.changed, delta.removed, (row) => 'digest' in row);
      return { ...model, routers: { ...model.routers, routers } };
    }
    case 'resize':
      return { ...model, resize: data as ResizeStatus };
    case 'log': {
      const entry = data as LogEntry;
      const entries = model.log && model.log.resize === entry.resize ? model.log.entries : [];
      return { ...model, log: { resize: entry.resize, entries: [...entries, entry].slice(-LOG_MAX) } };
    }
    case 'topology':
      return { ...model, topology: data as TopologySummary };
    case 'series':
      return model.series ? { ...model, series: append(model.series, data as SeriesPoint) } : model;
    case 'mark': {
      if (!model.series) return model;
      const marks = [...model.series.marks, data as SeriesMark].slice(-MARKS_MAX);
      return { ...model, series: { ...model.series, marks } };
    }
    case 'hot_keys':
      return { ...model, hotKeys: data as HotKeys };
    case 'registry':
      return { ...model, registry: data as RegistryState };
    case 'membership':
      return { ...model, membership: data as Membership };
    case 'audit':
      return { ...model, audit: { entries: [data as AuditEntry, ...(model.audit?.entries ?? [])].slice(0, AUDIT_MAX) } };
  }
}
