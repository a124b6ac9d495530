// Sorting of tables: numbers by size, text as people count ("cache-2" before "cache-10"); what is not known comes last,
// in either direction.
export type Cell = string | number | boolean | null | undefined;

export interface Order {
  column: string;
  descending: boolean;
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

export function compareCells(a: Cell, b: Cell, descending: boolean): number {
  const missing = (cell: Cell): boolean => cell === null || cell === undefined;
  if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
  const order = typeof a === 'string' || typeof b === 'string' ? collator.compare(String(a), String(b)) : Number(a) - Number(b);
  return descending ? -order : order;
}

export function sorted<Row>(rows: readonly Row[], cell: (row: Row) => Cell, descending: boolean): Row[] {
  return rows
    .map((row, index) => ({ row, index, cell: cell(row) }))
    .sort((a, b) => compareCells(a.cell, b.cell, descending) || a.index - b.index)
    .map((one) => one.row);
}
