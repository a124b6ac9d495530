// The circle of a placement as geometry: pure functions over arcs, so that they are tested without a canvas.
//
// An arc [begin, end) in 0..1 of the circle belongs to the member at its end (the first point at or after a key's
// position). Invariant of every list here: sorted by begin, covering the circle without a gap, starting at 0.
export interface Arc {
  member: string;
  begin: number;
  end: number;
}

// The server's circle: where arcs begin, ascending, and whose they are. The last one ends where the first one begins,
// past the top; it is cut there, so that the list covers 0..1. Neighbours of one member are joined.
export function arcsOf(starts: readonly number[], owners: readonly number[], ids: readonly string[]): Arc[] {
  const out: Arc[] = [];
  const add = (member: string, begin: number, end: number): void => {
    if (end <= begin) return;
    const last = out[out.length - 1];
    if (last && last.member === member) last.end = end;
    else out.push({ member, begin, end });
  };
  const first = starts[0];
  if (first === undefined) return out;
  const nameOf = (index: number): string => ids[owners[index] ?? -1] ?? '';
  add(nameOf(starts.length - 1), 0, first);
  starts.forEach((begin, index) => add(nameOf(index), begin, starts[index + 1] ?? 1));
  return out;
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
