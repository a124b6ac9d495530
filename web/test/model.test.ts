import { describe, expect, it } from 'vitest';
import { apply, nothing, POINTS_MAX, type Model } from '../src/api/model';
import type { Member, Series, SeriesMark, SeriesPoint, Snapshot } from '../src/api/types';

const member = (id: string, more: Partial<Member> = {}): Member => ({
  id, address: `${id}:1`, weight: 1, zone: '', host: '', label: '', factor: 1000, state: 'active', share: 0.5, share_after: null,
  requests_share: null, requests_per_second: null, hits_per_second: null, misses_per_second: null, hit_rate: null,
  errors_per_second: null, timeouts_per_second: null, in_flight: null, p99_ms: null, reachable: true, unreachable_why: '', info: null, ...more,
});
const point = (at: number): SeriesPoint => ({
  at_ms: at, qps: at, hit_rate: null, misses_per_second: 0, origin_qps: 0, p99_ms: 1, errors_per_second: 0, clients: 1, keys_per_second: 0, share_done: null,
});
const empty: Series = { interval_ms: 1000, marks: [], columns: Object.fromEntries(Object.keys(point(0)).map((name) => [name, []])) as unknown as Series['columns'] };
const snapshot: Snapshot = { members: { version: '1.1', exact_shares: true, members: [member('a'), member('b')] }, series: empty, audit: { entries: [] } };
const begun: Model = apply(nothing, 'snapshot', snapshot);

describe('the model', () => {
  it('is what the last snapshot says, and nothing of before', () => {
    const later = apply(begun, 'snapshot', { hot_keys: { at_ms: 1, keys: [] } });
    expect(later.members).toBeNull();
    expect(later.hotKeys).toEqual({ at_ms: 1, keys: [] });
    expect(later).not.toHaveProperty('hot_keys');
  });

  it('merges members that changed, in their places, and leaves the others as they are', () => {
    const later = apply(begun, 'members', { changed: [{ id: 'b', share: 0.25 }, member('c')], removed: ['a'] });
    expect(later.members!.members.map((one) => [one.id, one.share])).toEqual([['b', 0.25], ['c', 0.5]]);
    expect(later.members!.members[0]!.address).toBe('b:1');
    expect(begun.members!.members).toHaveLength(2);
    const same = apply(begun, 'members', { changed: [{ id: 'b', share: 0.1 }], removed: [] });
    expect(same.members!.members[0]).toBe(begun.members!.members[0]);
  });

  it('does not take a part of a member for a whole one', () => {
    expect(apply(begun, 'members', { changed: [{ id: 'x', share: 1 }], removed: [] }).members!.members.map((one) => one.id)).toEqual(['a', 'b']);
    expect(apply(nothing, 'members', { changed: [member('x')], removed: [] }).members).toBeNull();
  });

  it('keeps columns of equal length within their bound', () => {
    let now = begun;
    for (let at = 1; at <= POINTS_MAX + 50; at += 1) now = apply(now, 'series', point(at));
    for (const column of Object.values(now.series!.columns)) expect(column).toHaveLength(POINTS_MAX);
    expect(now.series!.columns.at_ms![0]).toBe(51);
    expect(now.series!.columns.qps![POINTS_MAX - 1]).toBe(POINTS_MAX + 50);
    expect(begun.series!.columns.at_ms).toHaveLength(0);
  });

  it('adds marks and log lines, and begins a new log with a new resize', () => {
    const mark: SeriesMark = { at_ms: 5, resize: 'r1', event: 'begin', step: 0, phase: '', text: 'begin' };
    expect(apply(begun, 'mark', mark).series!.marks).toEqual([mark]);
    const entry = (resize: string, text: string) => ({ resize, at: '', at_ms: 1, event: 'phase', text, by: '' });
    let now = apply(begun, 'log', entry('r1', 'one'));
    now = apply(now, 'log', entry('r1', 'two'));
    expect(now.log!.entries.map((one) => one.text)).toEqual(['one', 'two']);
    now = apply(now, 'log', entry('r2', 'three'));
    expect(now.log).toEqual({ resize: 'r2', entries: [entry('r2', 'three')] });
  });

  it('has the newest action first', () => {
    const action = (id: string) => ({ id, at_ms: 1, who: '', action: '', subject: '', from: '', to: '', result: 'accepted' });
    const now = apply(apply(begun, 'audit', action('1')), 'audit', action('2'));
    expect(now.audit!.entries.map((one) => one.id)).toEqual(['2', '1']);
  });
});
