// The circle of a placement as geometry: pure functions over arcs, so that they are tested without a canvas.
//
// An arc [begin, end) in 0..1 of the circle belongs to the member at its end (the first point at or after a key's
// position). Invariant of every list here: sorted by begin, covering the circle without a gap, starting at 0.
export interface Arc {
  member: string;
  begin: number;
  end: number;
}

export interface Heir {
  member: string;
  share: number; // Of the whole circle.
}

// Sorts, cuts the one that wraps past the end, and joins neighbours of one member.
export function normalise(arcs: readonly Arc[]): Arc[] {
  const cut: Arc[] = [];
  for (const arc of arcs) {
    if (arc.end < arc.begin) {
      if (arc.begin < 1) cut.push({ ...arc, end: 1 });
      if (arc.end > 0) cut.push({ ...arc, begin: 0 });
    } else if (arc.end > arc.begin) {
      cut.push({ ...arc });
    }
  }
  cut.sort((a, b) => a.begin - b.begin);
  const out: Arc[] = [];
  for (const arc of cut) {
    const last = out[out.length - 1];
    if (last && last.member === arc.member && arc.begin - last.end < 1e-12) last.end = arc.end;
    else out.push(arc);
  }
  return out;
}

// One arc a member, in the order given: for placements that have no circle, the shares as parts of one.
export function fromShares(shares: readonly { id: string; share: number }[]): Arc[] {
  const total = shares.reduce((sum, one) => sum + one.share, 0);
  if (total <= 0) return [];
  let at = 0;
  const arcs: Arc[] = [];
  for (const { id, share } of shares) {
    if (share <= 0) continue;
    arcs.push({ member: id, begin: at, end: at + share / total });
    at += share / total;
  }
  const last = arcs[arcs.length - 1];
  if (last) last.end = 1;
  return arcs;
}

// The arc at a position; -1 when there is none. O(log n).
export function arcAt(arcs: readonly Arc[], position: number): number {
  let low = 0;
  let high = arcs.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const arc = arcs[middle]!;
    if (position < arc.begin) high = middle - 1;
    else if (position >= arc.end) low = middle + 1;
    else return middle;
  }
  return -1;
}

// Who would take over the member's part if it left: the owner of the next arc after each of its own. Largest first.
export function heirsOf(arcs: readonly Arc[], member: string): Heir[] {
  const shares = new Map<string, number>();
  for (let i = 0; i < arcs.length; i += 1) {
    const arc = arcs[i]!;
    if (arc.member !== member) continue;
    for (let step = 1; step < arcs.length; step += 1) {
      const next = arcs[(i + step) % arcs.length]!;
      if (next.member === member) continue;
      shares.set(next.member, (shares.get(next.member) ?? 0) + arc.end - arc.begin);
      break;
    }
  }
  return [...shares]
    .map(([id, share]) => ({ member: id, share }))
    .sort((a, b) => b.share - a.share || (a.member < b.member ? -1 : 1));
}

export function shareOf(arcs: readonly Arc[], member: string): number {
  return arcs.reduce((sum, arc) => (arc.member === member ? sum + arc.end - arc.begin : sum), 0);
}

// Position 0 is at twelve o'clock, and positions run clockwise, as on a watch.
export function angleOf(position: number): number {
  return position * 2 * Math.PI - Math.PI / 2;
}

export interface Circle {
  x: number;
  y: number;
  inner: number;
  outer: number;
}

// The position on the circle under a point of the drawing; null outside the band (with some pixels to spare).
export function positionAt(circle: Circle, x: number, y: number, spare = 8): number | null {
  const dx = x - circle.x;
  const dy = y - circle.y;
  const radius = Math.hypot(dx, dy);
  if (radius < circle.inner - spare || radius > circle.outer + spare) return null;
  const turn = (Math.atan2(dy, dx) + Math.PI / 2) / (2 * Math.PI);
  return turn - Math.floor(turn);
}

export function circleIn(width: number, height: number, band: number): Circle {
  const outer = Math.max(0, Math.min(width, height) / 2 - 22);
  return { x: width / 2, y: height / 2, outer, inner: Math.max(0, outer - band) };
}
