import { describe, expect, it } from 'vitest';
import { layoutFlow, type Pair } from '../src/draw/flow';
import { angleOf, arcAt, arcsOf, circleIn, positionAt } from '../src/draw/ring';
import { windowOf } from '../src/draw/window';

const covers = (arcs: ReturnType<typeof arcsOf>): void => {
  expect(arcs[0]!.begin).toBe(0);
  expect(arcs[arcs.length - 1]!.end).toBe(1);
  arcs.forEach((arc, index) => expect(arc.begin).toBe(index === 0 ? 0 : arcs[index - 1]!.end));
};

describe('the circle', () => {
  const ids = ['a', 'b', 'c'];

  it('is cut at the top, where the last arc goes on to the first start', () => {
    const arcs = arcsOf([0.2, 0.5, 0.9], [0, 1, 2], ids);
    expect(arcs).toEqual([
      { member: 'c', begin: 0, end: 0.2 }, { member: 'a', begin: 0.2, end: 0.5 },
      { member: 'b', begin: 0.5, end: 0.9 }, { member: 'c', begin: 0.9, end: 1 },
    ]);
    covers(arcs);
  });

  it('joins neighbours of one member', () => {
    const arcs = arcsOf([0, 0.25, 0.5], [0, 0, 1], ids);
    expect(arcs).toEqual([{ member: 'a', begin: 0, end: 0.5 }, { member: 'b', begin: 0.5, end: 1 }]);
  });

  it('may be one arc, or none', () => {
    expect(arcsOf([0.7], [1], ids)).toEqual([{ member: 'b', begin: 0, end: 1 }]);
    expect(arcsOf([], [], ids)).toEqual([]);
  });

  it('finds the arc under a position as a search from the start does', () => {
    const starts = Array.from({ length: 997 }, (_, index) => ((index * 0.618034) % 1)).sort((x, y) => x - y);
    const arcs = arcsOf(starts, starts.map((_, index) => index % 3), ids);
    covers(arcs);
    for (let i = 0; i < 2000; i += 1) {
      const position = (i * 0.7548776) % 1;
      const index = arcAt(arcs, position);
      expect(index).toBe(arcs.findIndex((arc) => position >= arc.begin && position < arc.end));
    }
    expect(arcAt(arcs, 1)).toBe(-1);
  });

  it('begins at twelve o’clock and runs as a watch', () => {
    expect(angleOf(0)).toBeCloseTo(-Math.PI / 2);
    const circle = circleIn(400, 400, 40);
    for (const position of [0, 0.1, 0.25, 0.5, 0.75, 0.999]) {
      const radius = (circle.inner + circle.outer) / 2;
      const found = positionAt(circle, circle.x + radius * Math.cos(angleOf(position)), circle.y + radius * Math.sin(angleOf(position)));
      expect(found).toBeCloseTo(position, 6);
    }
    expect(positionAt(circle, circle.x + circle.outer, circle.y)).toBeCloseTo(0.25);
    expect(positionAt(circle, circle.x, circle.y)).toBeNull();
  });
});

describe('the flow', () => {
  const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0);

  it('gives each node the height of its share, and each band its part of both nodes', () => {
    const pairs: Pair[] = [
      { from: 'cache-1', to: 'cache-5', share: 0.05 }, { from: 'cache-2', to: 'cache-5', share: 0.04 },
      { from: 'cache-3', to: 'cache-5', share: 0.06 }, { from: 'cache-4', to: 'cache-5', share: 0.06 },
    ];
    const flow = layoutFlow(pairs, { width: 600 });
    expect(flow.left).toHaveLength(4);
    expect(flow.right).toHaveLength(1);
    expect(flow.right[0]!.share).toBeCloseTo(0.21);
    expect(sum(flow.links.map((link) => link.share))).toBeCloseTo(0.21);
    expect(flow.left[0]!.id).toBe('cache-3'); // Largest first; of two alike, the smaller id.
    for (const node of [...flow.left, ...flow.right]) {
      expect(node.y).toBeGreaterThanOrEqual(0);
      expect(node.y + node.height).toBeLessThanOrEqual(flow.height + 0.001);
    }
    flow.left.slice(1).forEach((node, index) => expect(node.y).toBeGreaterThan(flow.left[index]!.y + flow.left[index]!.height));
  });

  it('draws a thousand members as a few and the others, and loses no share', () => {
    const pairs: Pair[] = Array.from({ length: 1000 }, (_, index) => ({ from: `m${index}`, to: `n${index % 40}`, share: (1 + (index % 7)) / 1e5 }));
    const flow = layoutFlow(pairs, { width: 390, nodesMax: 10 });
    expect(flow.left).toHaveLength(10);
    expect(flow.right).toHaveLength(10);
    expect(flow.left.find((node) => node.id === null)!.count).toBe(991);
    expect(sum(flow.left.map((node) => node.share))).toBeCloseTo(sum(pairs.map((pair) => pair.share)), 9);
    expect(sum(flow.links.map((link) => link.share))).toBeCloseTo(sum(pairs.map((pair) => pair.share)), 9);
    for (const link of flow.links) expect(link.path).not.toContain('NaN');
  });

  it('draws a member that gives and takes on both sides', () => {
    const flow = layoutFlow([{ from: 'a', to: 'b', share: 0.1 }, { from: 'b', to: 'c', share: 0.2 }], { width: 500 });
    expect(flow.left.map((node) => node.id)).toEqual(['b', 'a']);
    expect(flow.right.map((node) => node.id)).toEqual(['c', 'b']);
  });

  it('is empty when nothing moves', () => {
    expect(layoutFlow([{ from: 'a', to: 'b', share: 0 }], { width: 500 }).links).toEqual([]);
  });
});

describe('rows in view', () => {
  it('are as high together as all rows, wherever one scrolls to', () => {
    for (const scroll of [0, 41, 5000, 40_990, 1e6]) {
      const shown = windowOf(1000, 41, scroll, 640);
      expect(shown.before + shown.after + (shown.last - shown.first) * 41).toBe(41_000);
      expect(shown.last - shown.first).toBeLessThan(40);
      if (scroll < 40_000) expect(shown.last - shown.first).toBeGreaterThan(15);
    }
  });
});
