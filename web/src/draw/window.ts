// Which rows of a long table are drawn: those in view and some beside them.
export interface Window {
  first: number;
  last: number; // Past the end.
  before: number; // Height of what is left out above.
  after: number; // And below.
}

export function windowOf(rows: number, rowHeight: number, scroll: number, view: number, beside = 8): Window {
  const first = Math.max(0, Math.min(rows, Math.floor(scroll / rowHeight) - beside));
  const last = Math.min(rows, Math.ceil((scroll + view) / rowHeight) + beside);
  return { first, last: Math.max(first, last), before: first * rowHeight, after: (rows - Math.max(first, last)) * rowHeight };
}
