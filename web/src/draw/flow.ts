// Who gives to whom, as a flow between two columns: givers left, takers right, a band for each pair. Pure geometry.
//
// Heights are proportional to shares, with a floor that keeps small ones visible. Beyond `nodes_max` on a side the
// smallest are drawn as one ("others"), so that a thousand members stay readable; the table beside it has all.
export interface Pair {
  from: string;
  to: string;
  share: number;
}

export interface FlowNode {
  id: string | null; // null: the others, `count` of them.
  count: number;
  share: number;
  x: number;
  y: number;
  height: number;
}

export interface FlowLink {
  from: string | null;
  to: string | null;
  share: number;
  path: string;
}

export interface Flow {
  width: number;
  height: number;
  nodeWidth: number;
  left: FlowNode[];
  right: FlowNode[];
  links: FlowLink[];
}

export interface FlowOptions {
  width: number;
  nodesMax?: number;
  labelSpace?: number;
  rowHeight?: number;
}

const NODE_WIDTH = 12;
const GAP = 10;

interface Side {
  ids: string[]; // Drawn by name, largest first.
  others: Set<string>;
  shares: Map<string | null, number>;
}

function sideOf(pairs: readonly Pair[], of: (pair: Pair) => string, most: number): Side {
  const sums = new Map<string, number>();
  for (const pair of pairs) sums.set(of(pair), (sums.get(of(pair)) ?? 0) + pair.share);
  const sorted = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const named = sorted.length <= most ? sorted : sorted.slice(0, most - 1);
  const rest = sorted.slice(named.length);
  const shares = new Map<string | null, number>(named);
  if (rest.length > 0) shares.set(null, rest.reduce((sum, [, share]) => sum + share, 0));
  return { ids: named.map(([id]) => id), others: new Set(rest.map(([id]) => id)), shares };
}

export function layoutFlow(pairs: readonly Pair[], options: FlowOptions): Flow {
  const moving = pairs.filter((pair) => pair.share > 0);
  const most = Math.max(2, options.nodesMax ?? 12);
  const labels = Math.min(options.labelSpace ?? 130, options.width * 0.34);
  const left = sideOf(moving, (pair) => pair.from, most);
  const right = sideOf(moving, (pair) => pair.to, most);
  const total = moving.reduce((sum, pair) => sum + pair.share, 0);
  const rows = Math.max(left.shares.size, right.shares.size, 1);
  const height = Math.max(rows * (options.rowHeight ?? 36), 120);

  // A node is as high as its share, but a name needs its line; what is left after the floors is dealt by share.
  const place = (side: Side, x: number): FlowNode[] => {
    const entries = [...side.shares];
    const floor = 14;
    const free = Math.max(0, height - GAP * (entries.length - 1) - floor * entries.length);
    let y = 0;
    const nodes = entries.map(([id, share]): FlowNode => {
      const size = floor + (total > 0 ? (free * share) / total : 0);
      const node = { id, count: id === null ? side.others.size : 1, share, x, y, height: size };
      y += size + GAP;
      return node;
    });
    // The shorter column is centred.
    const shift = (height - (y - GAP)) / 2;
    for (const node of nodes) node.y += Math.max(0, shift);
    return nodes;
  };
  const leftX = labels;
  const rightX = options.width - labels - NODE_WIDTH;
  const leftNodes = place(left, leftX);
  const rightNodes = place(right, rightX);

  const sums = new Map<string, { from: string | null; to: string | null; share: number }>();
  for (const pair of moving) {
    const from = left.others.has(pair.from) ? null : pair.from;
    const to = right.others.has(pair.to) ? null : pair.to;
    const key = JSON.stringify([from, to]);
    const found = sums.get(key);
    if (found) found.share += pair.share;
    else sums.set(key, { from, to, share: pair.share });
  }
  const leftOf = new Map(leftNodes.map((node, index) => [node.id, { node, index, used: 0 }]));
  const rightOf = new Map(rightNodes.map((node, index) => [node.id, { node, index, used: 0 }]));
  const ordered = [...sums.values()].sort(
    (a, b) => leftOf.get(a.from)!.index - leftOf.get(b.from)!.index || rightOf.get(a.to)!.index - rightOf.get(b.to)!.index,
  );
  const links = ordered.map((link): FlowLink => {
    const a = leftOf.get(link.from)!;
    const b = rightOf.get(link.to)!;
    const aSize = (a.node.height * link.share) / a.node.share;
    const bSize = (b.node.height * link.share) / b.node.share;
    const path = band(leftX + NODE_WIDTH, a.node.y + a.used, aSize, rightX, b.node.y + b.used, bSize);
    a.used += aSize;
    b.used += bSize;
    return { ...link, path };
  });
  return { width: options.width, height, nodeWidth: NODE_WIDTH, left: leftNodes, right: rightNodes, links };
}

// A filled band between two vertical edges.
function band(x0: number, y0: number, size0: number, x1: number, y1: number, size1: number): string {
  const middle = (x0 + x1) / 2;
  const n = (value: number): string => String(Math.round(value * 10) / 10);
  return (
    `M${n(x0)} ${n(y0)}C${n(middle)} ${n(y0)} ${n(middle)} ${n(y1)} ${n(x1)} ${n(y1)}` +
    `L${n(x1)} ${n(y1 + size1)}C${n(middle)} ${n(y1 + size1)} ${n(middle)} ${n(y0 + size0)} ${n(x0)} ${n(y0 + size0)}Z`
  );
}
