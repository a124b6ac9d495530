// A cluster made up, of any size and in any state: what the API would answer about it, served over the built page. For
// looking at the pages with a thousand members, or in states that are hard to bring about; nothing is proved with it.
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const wave = (i, low, high, length = 60) => low + ((high - low) * (1 + Math.sin((i * 2 * Math.PI) / length))) / 2;

export function generate(count, { state = 'running' } = {}) {
  const now = Date.now();
  const ids = Array.from({ length: count }, (_, i) => `cache-${i + 1}`);
  const weights = ids.map((_, i) => 0.8 + ((i * 37) % 40) / 100);
  const total = weights.reduce((a, b) => a + b, 0);
  const members = ids.map((id, i) => ({
    id, address: `10.${i >> 8}.${i & 255}.7:6379`, weight: 1, zone: `zone-${'abc'[i % 3]}`, host: `rack${i % 40}`, label: '', factor: 1000,
    state: i === count - 1 && state === 'running' ? 'joining' : i === 2 && state === 'running' && count > 8 ? 'leaving' : 'active', share: weights[i] / total,
    share_after: state === 'running' ? (weights[i] / total) * 0.99 : null, requests_share: weights[i] / total, requests_per_second: wave(i, 400, 5200, 17),
    hits_per_second: wave(i, 380, 5000, 17), misses_per_second: wave(i, 20, 200, 17), hit_rate: wave(i, 0.94, 0.985, 29),
    errors_per_second: i === 5 ? 3.2 : 0, timeouts_per_second: 0, in_flight: (i * 7) % 13, p99_ms: wave(i, 0.4, 2.6, 23), reachable: i !== 5,
    unreachable_why: i === 5 ? 'connection refused' : '',
    info: { at_ms: now, server_version: '7.0.15', keys: Math.round(wave(i, 90_000, 250_000, 31)), memory_used_bytes: Math.round(wave(i, 2e9, 7.9e9, 13)),
      memory_max_bytes: 8 * 2 ** 30, evicted_keys_per_second: 0, ops_per_second: wave(i, 400, 5200, 17), clients: 8, uptime_seconds: 86_400 * 12, role: 'master' },
  }));
  const routers = Array.from({ length: 6 }, (_, i) => ({
    id: `proxy-${i + 1}@host${i}`, listen: `10.1.0.${i}:6380`, version: i === 4 ? '1.41' : '1.42', digest: 'a3f1'.repeat(16), agrees: i !== 4, behind_ms: i === 4 ? 4200 : 0,
    started_at_ms: now - 4e6, applied_at_ms: now - 9000, updated_at_ms: now - 300, requests_per_second: wave(i, 30_000, 52_000, 5), hits_per_second: 1, misses_per_second: 1,
    hit_rate: 0.973, errors_per_second: 0, bytes_in_per_second: 3.1e6, bytes_out_per_second: 4.2e7, clients: 812 + i, max_clients: 10_000, p50_ms: 0.21, p99_ms: wave(i, 1, 2, 4),
    p999_ms: 4.4, keys_pulled_per_second: 12, unreachable: i === 1 ? [{ member: 'cache-6', why: 'connection refused' }] : [], lease: `694d7${i}f2a`,
  }));
  const length = 600;
  const column = (make) => Array.from({ length }, (_, i) => make(i));
  const columns = {
    at_ms: column((i) => now - (length - i) * 1000), qps: column((i) => wave(i, 230_000, 260_000, 220) + ((i * 7919) % 9000)),
    hit_rate: column((i) => 0.965 + ((i * 31) % 11) / 1000), misses_per_second: column((i) => wave(i, 6000, 7400, 300)), origin_qps: column((i) => wave(i, 6000, 7400, 300) + ((i * 17) % 300)),
    p99_ms: column((i) => wave(i, 1.1, 1.9, 150) + (i % 97 === 0 ? 2 : 0)), errors_per_second: column(() => 0), clients: column(() => 4872),
    keys_per_second: column((i) => (i < 200 ? 0 : wave(i, 4200, 5000, 40))), share_done: column((i) => (i < 200 ? null : (i - 200) / 700)),
  };
  const mark = (i, event, step, phase) => ({ at_ms: now - (length - i) * 1000, resize: 'r-7', event, step, phase, text: event });
  const marks = state === 'running' ? [mark(200, 'begin', 0, 'prep'), mark(212, 'phase', 1, 'hold'), mark(213, 'phase', 1, 'dual'), mark(260, 'phase', 2, 'hold'),
    mark(261, 'phase', 2, 'dual'), mark(380, 'pause', 2, 'dual'), mark(420, 'resume', 2, 'dual'), mark(470, 'phase', 3, 'hold'), mark(471, 'phase', 3, 'dual')] : [];
  const newcomer = ids[count - 1];
  const pairs = ids.slice(0, count - 1).map((from, i) => ({ from, to: newcomer, share: weights[i] / total / count, keys: 180 + i, bytes: (180 + i) * 1200, between_unchanged: false }));
  const active = state === 'running';
  const resize = {
    state, id: 'r-7', version: '1.42', step: 3, steps: 4, phase: active ? 'dual' : '', keys_moved: active ? 118_204 : 212_113, keys_to_move: 212_113, bytes_moved: 148_204_112, keys_per_second: active ? 4811 : 0,
    eta_seconds: active ? 19.5 : 0, hold_ms_max: 3.4, fences: 0, pairs: pairs.map(({ from, to, keys }) => ({ from, to, moved: keys })), big_keys: [], last_error: '', rolled_back: false, request_id: 'q', request_error: '',
    rate_in_force: active ? 4000 : 0, held_back: active ? ['cache-3: its p99 is above 10 ms'] : [], keys_verified: 118_000, retries: 2, big_keys_waiting: active ? 2 : 0,
    waiting_big_keys: active ? [{ key: 'report:2026:q3', bytes: 52_428_800, from: 'cache-1', to: newcomer }, { key: 'export:all', bytes: 71_303_168, from: 'cache-2', to: newcomer }] : [], lost: [], waiting: '', waiting_until: '', waits_for: '',
    aborted: '', abort_if: 'hit_rate<0.9', rate: 5000, byte_rate: 52_428_800, queued: false, hit_rate: 0.967, p99_ms: 1.3, origin_qps: 6800,
  };
  const log = { resize: 'r-7', entries: [
    ['accepted', 'a resize to 5 members was asked for: steps 1, 10, 50, 100 %', 'ann@host1'], ['phase', 'step 1 of 4: HOLD of 10 slices', ''], ['phase', 'step 1 of 4: DUAL; 2,121 keys to move', ''],
    ['rate', 'at most 5000 keys a second', 'ann@host1'], ['pause', 'paused', 'bob@host2'], ['resume', 'goes on', 'bob@host2'],
  ].map(([event, text, by], i) => ({ resize: 'r-7', at: new Date(now - 1e5 + i * 9000).toISOString(), at_ms: now - 1e5 + i * 9000, event, text, by })) };
  const topology = { revision: 42, version: '1.42', digest: 'a3f1'.repeat(16), in_force: true, members: count, algorithm: 'ring',
    resize: active ? { id: 'r-7', rollback: false, phase: 'dual', done: 112, active: 400, members: count } : null, changes: ['step 3: 400 slices in DUAL'], seen_at_ms: now - 9000 };
  const overview = {
    cluster: 'cache', namespace: 'default', protocol: 'redis', consistency: 'strict', placement: 'ring', health: active ? 'warning' : 'ok',
    health_text: active ? 'One member cannot be reached; the rest serves.' : 'All is as it should be.', version: '1.42', digest: 'a3f1'.repeat(16),
    members: { total: count, reachable: count - 1, unreachable: 1, joining: 1, leaving: 1 }, routers: { total: 6, agree: 5, behind: ['proxy-5@host4'], other_digest: [] },
    qps: 247_811.2, hit_rate: 0.9731, misses_per_second: 6702, errors_per_second: 3.2, p99_ms: 1.42, clients: 4872, keys: 168_000 * count, memory_used_bytes: 4.9e9 * count,
    memory_max_bytes: 8 * 2 ** 30 * count, origin: { qps: 6702, source: 'misses' },
    alerts: active ? [
      { severity: 'critical', code: 'member_unreachable', subject: 'cache-6', values: {}, text: 'cache-6 (10.0.5.7:6379) cannot be reached: connection refused; its keys answer errors.', since_ms: now - 65_000 },
      { severity: 'warning', code: 'resize_big_keys', subject: 'r-7', values: { count: 2 }, text: '2 keys above 32 MiB wait for your word: ringshift resize big-keys move.', since_ms: now - 20_000 },
      { severity: 'info', code: 'resize_held_back', subject: 'r-7', values: {}, text: 'The resize is slower than configured: cache-3: its p99 is above 10 ms.', since_ms: now - 8000 },
    ] : [],
    resize: { state, id: 'r-7', phase: resize.phase, step: 3, steps: 4, share_done: active ? 0.56 : null, eta_seconds: resize.eta_seconds }, controller: 'controller@host1', registry_connected: true, at_ms: now,
  };
  const registry = { url: 'http://127.0.0.1:7379', connected: true, since_ms: now - 4e6, error: '', cluster_id: '1407281', revision: 88_211, prefix: '/ringshift/default/cache/', keys: { history: 42, log: 61, routers: 6 },
    controller: { id: 'controller@host1', lease: '694d70', revision: 12, since_ms: now - 4e6 }, instances: [], routers: routers.map((one, i) => ({ id: one.id, lease: one.lease, revision: 88_200 + i })) };
  const candidate = (id, more) => ({ id, address: `10.9.0.${id.length}:6379`, state: 'ready', weight: 1, zone: 'zone-a', host: '', admissible: true, why_not: '', waits_for: 'an operator admits it: ringshift member admit', code: 'operator', ...more });
  const cannot = (code, why) => ({ admissible: false, why_not: why, waits_for: why, code });
  const membership = { active: true, reported: true, rules: { source: 'registry', admit: 'manual', cooldown_seconds: 600, remove_after_seconds: 1800, at_most: 1, floor: 3 },
    source: active ? { name: 'registry', state: 'held', error: 'it shows 1 instance, without 4 of the 5 before (cache-1, cache-2, cache-3, cache-4): held until that stays so', since_ms: now - 45_000 } : { name: 'registry', state: 'ok', error: '', since_ms: null },
    cooldown_until_ms: active ? null : now + 240_000, last_change: { member: 'cache-4', joins: true, at_ms: now - 4e6, error: active ? '' : 'instance cache-4 is admitted by policy: refused: other clients are connected to it' },
    candidates: [candidate('cache-new'), candidate('cache-old', cannot('retired', 'its id is retired')), candidate('memcached-1', cannot('protocol', 'it speaks memcached, the cluster redis')), candidate('cache-x', { state: 'unhealthy', admissible: false })],
    candidates_more: 0, gone: active ? [] : [{ id: ids[1], since_ms: now - 9e4, leaves_at_ms: now + 1.7e6, ejected: false, waits_for: '1709 s more', code: 'counting' }],
    elsewhere: [{ id: ids[0], member_address: members[0].address, instance_address: '10.0.9.9:6379' }] };
  const audit = { entries: [
    { id: '2', at_ms: now - 6e4, who: 'admin, 127.0.0.1', action: 'resize/rate', subject: 'r-7', from: '2000 keys/s', to: '5000 keys/s', result: 'accepted' },
    { id: '1', at_ms: now - 1e5, who: 'admin, 127.0.0.1', action: 'resize/start', subject: 'r-7', from: '1.40', to: `${count} members`, result: 'refused: other clients are connected to cache-2' },
  ] };
  const hot = { at_ms: now, keys: Array.from({ length: 24 }, (_, i) => ({ key: i === 3 ? `session:${'0123456789abcdef'.repeat(5)}` : `user:${1000 + i * 13}:profile`, key_base64: `k${i}`,
    requests_per_second: 9000 / (i + 1), share: 0.036 / (i + 1), member: ids[(i * 7) % count], slice: (i * 97) % 1024, routers: 6 - (i % 3) })) };
  const arcs = Math.min(4096, count * 24);
  const starts = Array.from({ length: arcs }, (_, i) => (i + 0.3 + (((i * 7919) % 1000) / 1000) * 0.6) / arcs);
  const owners = starts.map((_, i) => (i * 2654435761) % count);
  const ring = { version: '1.42', of: 'now', algorithm: 'ring', hash: 'xxh3', points_total: count * 256, exact_arcs: count * 256 <= 4096, exact_shares: true, starts, owners,
    members: members.map((one, i) => ({ id: one.id, weight: 1, zone: one.zone, share: one.share, neighbours: [1, 5, 9].map((step) => ids[(i + step) % count]).filter((id) => id !== one.id).slice(0, 4) })) };
  const plan = { version: '1.42', spec: {}, not_asked: '', moved_share: 0.2121, minimum_share: 0.2, exact: true, keys_to_move: 212_113, bytes_to_move: 262_144_000, duration_seconds: 42.4, duration_bound_by: 'keys', pairs,
    members: members.map((one) => ({ id: one.id, share_before: one.id === newcomer ? 0 : one.share, share_after: one.share, keys_before: 1e5, keys_after: 9e4, bytes_in: one.id === newcomer ? 262_144_000 : 0, bytes_out: 4e7,
      used_memory: 4e9, maxmemory: 8e9, memory_peak: 4.2e9, memory_after: 4e9, has_room: true })),
    steps: [1, 10, 50, 100].map((percent) => ({ percent, slices: percent * 10, keys: percent * 2121, bytes: percent * 2.6e6, seconds: percent / 2.4, cold_origin_qps: 6700 + percent * 500, live_origin_qps: 6702 })),
    origin_qps: { now: 6702, cold_switch: 54_000, live_resize: 6702, limit: null }, inputs: {}, sources: { keys: 'measured', qps: 'assumed' }, warnings: [], can_resize_live: true,
    cold_switch: { verdict: 'unsafe', reason: '' }, live_resize: { verdict: 'safe', reason: '' }, verdict: 'safe', reason: 'A live resize moves 21.2 % of the keyspace and adds no load to the origin.' };
  const version = (i) => ({ ...topology, revision: 42 - i, version: `1.${42 - i}`, digest: `${i}b7e`.repeat(16), in_force: i === 0, resize: i % 4 === 0 ? topology.resize : null, members: count - (i > 6 ? 1 : 0),
    changes: [i % 4 === 0 ? 'step: 400 slices in DUAL' : `${ids[i % count]} joined`], seen_at_ms: i > 8 ? null : now - i * 60_000 });
  const diff = { from: '1.41', to: '1.42', moved_share: 0.2121, minimum_share: 0.2, exact: true, pairs: pairs.map(({ from, to, share }) => ({ from, to, share })), changes: [`${newcomer} joined`] };
  return {
    snapshot: { overview, members: { version: '1.42', exact_shares: true, members }, routers: { version: '1.42', digest: topology.digest, routers }, resize, log, topology, series: { interval_ms: 1000, columns, marks }, hot_keys: hot, registry, membership, audit },
    answers: {
      'GET /session': { cluster: 'cache', role: 'serve', program_version: '0.1.0', actions: true, authenticated: false, token_name: null, how: 'The token is in DATA/admin.token.' },
      'GET /ring': ring,
      'POST /route': { version: '1.42', keys: [{ key: 'user:1000', member: ids[0], slice: 512, version: '1.42', state: 'settled', walk: ['hash 0x8f0c5e11a2b3c4d5', 'point 0x8f10aa00c0ffee00', `owner ${ids[0]}`], position: 0.5588, replicas: ids.slice(0, 3) }] },
      'POST /resize/plan': plan,
      'GET /spec': { revision: 3, spec: { cluster: 'cache', placement: { algorithm: 'ring' }, members: members.slice(0, 5).map(({ id, address }) => ({ id, address })) } },
      'GET /topologies': { current: 42, topologies: Array.from({ length: 14 }, (_, i) => version(i)) },
      'GET /topologies/diff': diff,
    },
    heirs: (id) => ({ id, share: members.find((one) => one.id === id)?.share ?? 0, exact: true, heirs: ids.filter((one) => one !== id).slice(0, 12).map((one, i) => ({ id: one, share: 0.02 / (i + 1) })) }),
    point: (i) => ({ ...Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[i % length]])), at_ms: Date.now() }),
  };
}

// Serves `site` and the answers; gives the address, and a way to end it.
export async function serveGenerated(site, cluster, port = 0) {
  const streams = new Set();
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (url.pathname === '/api/v1/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
      let i = 0;
      const send = (event, data) => response.write(`id: ${(i += 1)}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      send('snapshot', cluster.snapshot);
      const timer = setInterval(() => send('series', cluster.point(i)), 1000);
      streams.add(response);
      response.on('close', () => { clearInterval(timer); streams.delete(response); });
      return;
    }
    if (url.pathname.startsWith('/api/v1/')) {
      const path = url.pathname.slice('/api/v1'.length);
      const member = /^\/ring\/members\/(.+)$/.exec(path);
      const answer = member ? cluster.heirs(decodeURIComponent(member[1])) : cluster.answers[`${request.method} ${path}`];
      response.writeHead(answer ? 200 : 404, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(answer ?? { error: { code: 'not_found', message: `nothing is at ${path}` } }));
      return;
    }
    const file = join(site, url.pathname === '/' ? 'index.html' : url.pathname.slice(1));
    if (!existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'Content-Type': TYPES[file.split('.').pop()] ?? 'text/plain', 'Content-Security-Policy': "default-src 'self'" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => { for (const one of streams) one.destroy(); server.close(); server.closeAllConnections?.(); },
  };
}
