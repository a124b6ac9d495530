import { describe, expect, it } from 'vitest';
import { FIRST_MS, MOST_MS, waitBefore } from '../src/lib/backoff';
import { changeOf, emptyDraft, noOptions, optionsOf } from '../src/lib/change';
import { positionOf, rateAt, RATE_MAX, RATE_MIN } from '../src/lib/rate';
import { hrefOf, parseHash } from '../src/lib/router';
import { sorted } from '../src/lib/sort';
import { value } from '../src/lib/value';
import { colourOf } from '../src/draw/colour';

describe('addresses', () => {
  it('name a page, and go back and forth', () => {
    expect(parseHash('').page).toBe('overview');
    expect(parseHash('#/nothing').page).toBe('overview');
    const place = parseHash(hrefOf('members', { filter: 'cache 1&2' }));
    expect(place.page).toBe('members');
    expect(place.query.get('filter')).toBe('cache 1&2');
  });
});

describe('connecting again', () => {
  it('waits for a time drawn evenly up to a bound that doubles and ends', () => {
    expect(waitBefore(0, () => 0)).toBe(250);
    expect(waitBefore(0, () => 1)).toBe(250 + FIRST_MS);
    expect(waitBefore(2, () => 1)).toBe(250 + 4 * FIRST_MS);
    expect(waitBefore(99, () => 1)).toBe(250 + MOST_MS);
    expect(waitBefore(3, () => 0.5)).toBe(250 + 4 * FIRST_MS);
  });
});

describe('tables', () => {
  it('sort names as people count, and what is not known last', () => {
    const rows = ['cache-10', 'cache-2', 'cache-1'];
    expect(sorted(rows, (row) => row, false)).toEqual(['cache-1', 'cache-2', 'cache-10']);
    const figures = [{ v: null }, { v: 2 }, { v: 10 }, { v: null }, { v: 1 }];
    expect(sorted(figures, (row) => row.v, false).map((row) => row.v)).toEqual([1, 2, 10, null, null]);
    expect(sorted(figures, (row) => row.v, true).map((row) => row.v)).toEqual([10, 2, 1, null, null]);
  });
});

describe('a change', () => {
  const members = [{ id: 'a', weight: 1 }, { id: 'b', weight: 2 }];

  it('is what differs from now', () => {
    expect(changeOf(emptyDraft, members)).toBe('nothing');
    expect(changeOf({ ...emptyDraft, weights: { a: '1.0' } }, members)).toBe('nothing');
    expect(changeOf({ ...emptyDraft, weights: { a: '2,5' } }, members)).toEqual({ edit: { retire: false, weights: { a: 2.5 } } });
    expect(changeOf({ ...emptyDraft, removed: ['b', 'gone'], retire: true }, members)).toEqual({ edit: { retire: true, remove: ['b'] } });
    const added = { id: ' c ', address: '127.0.0.1:7', weight: '1', zone: '' };
    expect(changeOf({ ...emptyDraft, added: [added, { id: '', address: '', weight: '', zone: '' }] }, members)).toEqual({
      edit: { retire: false, add: [{ id: 'c', address: '127.0.0.1:7', weight: 1 }] } });
  });

  it('says what is missing', () => {
    expect(changeOf({ ...emptyDraft, added: [{ id: 'c', address: '', weight: '1', zone: '' }] }, members)).toBe('incomplete');
    for (const weight of ['', '0', '-1', 'x', 'Infinity']) {
      expect(changeOf({ ...emptyDraft, weights: { a: weight } }, members)).toBe('weight');
    }
    // The weight of a member that leaves does not matter.
    expect(changeOf({ ...emptyDraft, removed: ['a'], weights: { a: 'x' } }, members)).toEqual({ edit: { retire: false, remove: ['a'] } });
  });

  it('has options only where something was typed', () => {
    expect(optionsOf(noOptions)).toEqual({});
    expect(optionsOf({ ...noOptions, steps: '1 %, 10, 100', keysPerSecond: '500', soak: ' 60s ', allowForeign: true })).toEqual({
      steps: [1, 10, 100], keys_per_second: 500, soak: '60s', allow_foreign: true });
    for (const steps of ['10, 1, 100', '10', 'a, 100', '0, 100', '10, 10, 100']) expect(optionsOf({ ...noOptions, steps })).toBe('steps');
    expect(optionsOf({ ...noOptions, keysPerSecond: '0' })).toBe('keysPerSecond');
    expect(optionsOf({ ...noOptions, originBudget: '1.5' })).toBe('originBudget');
  });
});

describe('the rate slider', () => {
  it('goes from end to end by size, and back to where it was', () => {
    expect(rateAt(0)).toBe(RATE_MIN);
    expect(rateAt(1000)).toBe(RATE_MAX);
    for (let position = 0; position <= 1000; position += 7) {
      const rate = rateAt(position);
      expect(rateAt(positionOf(rate))).toBe(rate);
      if (position > 7) expect(rate).toBeGreaterThanOrEqual(rateAt(position - 7));
    }
    expect(positionOf(1)).toBe(0);
  });
});

describe('colours', () => {
  it('differ among the first hundred members', () => {
    expect(new Set(Array.from({ length: 100 }, (_, index) => colourOf(index))).size).toBe(100);
  });
});

describe('a value', () => {
  it('tells those who listen of changes alone', () => {
    const shared = value(1);
    let heard = 0;
    const stop = shared.subscribe(() => (heard += 1));
    shared.set(1);
    expect(heard).toBe(0);
    shared.update((now) => now + 1);
    expect(heard).toBe(1);
    stop();
    shared.set(9);
    expect(heard).toBe(1);
    expect(shared.get()).toBe(9);
  });
});
