// Short names for the contract's schemas. `schema.d.ts` is generated from docs/openapi.yaml (`npm run api`); a test sees
// to it that it is in step.
import type { components } from './schema';

type Schemas = components['schemas'];
export type Session = Schemas['Session'];
export type Overview = Schemas['Overview'];
export type Alert = Schemas['Alert'];
export type Member = Schemas['Member'];
export type Members = Schemas['Members'];
export type MembersDelta = Schemas['MembersDelta'];
export type Router = Schemas['Router'];
export type Routers = Schemas['Routers'];
export type RoutersDelta = Schemas['RoutersDelta'];
export type Ring = Schemas['Ring'];
export type RingMember = Schemas['RingMember'];
export type RouteAnswer = Schemas['RouteAnswer'];
export type RoutedKey = RouteAnswer['keys'][number];
export type ResizeStatus = Schemas['ResizeStatus'];
export type ResizeLog = Schemas['ResizeLog'];
export type Resizes = Schemas['Resizes'];
export type LogEntry = Schemas['LogEntry'];
export type Change = Schemas['Change'];
export type NewMember = Schemas['NewMember'];
export type StartOptions = Schemas['StartOptions'];
export type Plan = Schemas['Plan'];
export type TopologySummary = Schemas['TopologySummary'];
export type Topologies = Schemas['Topologies'];
export type TopologyDiff = Schemas['TopologyDiff'];
export type StoredTopology = Schemas['StoredTopology'];
export type StoredSpec = Schemas['StoredSpec'];
export type HotKeys = Schemas['HotKeys'];
export type RegistryState = Schemas['RegistryState'];
export type AuditEntry = Schemas['AuditEntry'];
export type Audit = Schemas['Audit'];
export type Series = Schemas['Series'];
export type SeriesPoint = Schemas['SeriesPoint'];
export type SeriesMark = Schemas['SeriesMark'];
export type Snapshot = Schemas['Snapshot'];
