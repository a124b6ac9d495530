// A sortable table. Up to WHOLE_MAX rows it is an ordinary one; a longer one has a scroll bar of its own and draws only
// the rows in view, with their true numbers for screen readers (aria-rowcount, aria-rowindex).
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { windowOf } from '../draw/window';
import { sorted, type Cell, type Order } from '../lib/sort';

export const WHOLE_MAX = 80;
const ROW_HEIGHT = 41;
const VIEW_HEIGHT = 640;

export interface Column<Row> {
  name: string;
  title: string;
  show(row: Row): ComponentChildren;
  sort?(row: Row): Cell;
  numeric?: boolean;
  hint?: string;
}

interface Props<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf(row: Row): string;
  order?: Order;
  empty: string;
  selected?: string | undefined;
}

export function Table<Row>(props: Props<Row>) {
  const { columns, rows, keyOf } = props;
  const [order, setOrder] = useState<Order | null>(props.order ?? null);
  const [scroll, setScroll] = useState(0);
  const [view, setView] = useState(VIEW_HEIGHT);
  const region = useRef<HTMLDivElement>(null);
  const column = order ? columns.find((one) => one.name === order.column) : undefined;
  const inOrder = useMemo(() => (column?.sort && order ? sorted(rows, column.sort, order.descending) : [...rows]),
                          [rows, order, column?.name]);
  const partial = inOrder.length > WHOLE_MAX;
  const shown = partial ? windowOf(inOrder.length, ROW_HEIGHT, scroll, view) : { first: 0, last: inOrder.length, before: 0, after: 0 };

  useEffect(() => {
    if (partial && region.current) setView(region.current.clientHeight);
  }, [partial]);

  const choose = (name: string, numeric: boolean): void =>
    setOrder((now) => (now?.column === name ? { column: name, descending: !now.descending } : { column: name, descending: numeric }));

  if (inOrder.length === 0) return <p class="empty">{props.empty}</p>;
  return (
    <div class={`table-region${partial ? ' partial' : ''}`} ref={region} role="region" aria-label={props.caption} tabIndex={0}
         onScroll={partial ? (event) => setScroll(event.currentTarget.scrollTop) : undefined}>
      <table aria-rowcount={inOrder.length + 1}>
        <caption class="unseen">{props.caption}</caption>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((one) => (
              <th key={one.name} scope="col" class={one.numeric ? 'number' : undefined} title={one.hint}
                  aria-sort={order?.column === one.name ? (order.descending ? 'descending' : 'ascending') : undefined}>
                {one.sort ? (
                  <button type="button" class="sorter" onClick={() => choose(one.name, one.numeric ?? false)}>
                    {one.title}
                    <span class={`arrow${order?.column === one.name ? '' : ' off'}`} aria-hidden="true">{order?.column === one.name && order.descending ? '▾' : '▴'}</span>
                  </button>
                ) : (
                  one.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.before > 0 && <tr aria-hidden="true" class="gap"><td colSpan={columns.length} style={{ height: `${shown.before}px` }} /></tr>}
          {inOrder.slice(shown.first, shown.last).map((row, index) => {
            const key = keyOf(row);
            return (
              <tr key={key} aria-rowindex={shown.first + index + 2} class={props.selected === key ? 'selected' : undefined}>
                {columns.map((one, at) =>
                  at === 0 ? (
                    <th key={one.name} scope="row">{one.show(row)}</th>
                  ) : (
                    <td key={one.name} class={one.numeric ? 'number' : undefined}>{one.show(row)}</td>
                  ),
                )}
              </tr>
            );
          })}
          {shown.after > 0 && <tr aria-hidden="true" class="gap"><td colSpan={columns.length} style={{ height: `${shown.after}px` }} /></tr>}
        </tbody>
      </table>
    </div>
  );
}
