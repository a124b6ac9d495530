// A value that components watch: get, set, subscribe. All shared state of the page is kept in a few of these.
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Value<T> {
  get(): T;
  set(next: T): void;
  update(change: (now: T) => T): void;
  subscribe(listener: () => void): () => void;
}

export function value<T>(initial: T): Value<T> {
  let now = initial;
  const listeners = new Set<() => void>();
  const set = (next: T): void => {
    if (Object.is(next, now)) return;
    now = next;
    for (const listener of [...listeners]) listener();
  };
  return {
    get: () => now,
    set,
    update: (change) => set(change(now)),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

// The value, or the part of it that `select` takes; the component is drawn again when that changes.
export function useValue<T>(source: Value<T>): T;
export function useValue<T, P>(source: Value<T>, select: (whole: T) => P): P;
export function useValue<T, P>(source: Value<T>, select?: (whole: T) => P): T | P {
  const read = (): T | P => (select ? select(source.get()) : source.get());
  const now = read();
  const [, draw] = useState(0);
  const latest = useRef({ read, now });
  latest.current = { read, now };
  useEffect(() => {
    const look = (): void => {
      const { read: readLatest, now: shown } = latest.current;
      if (!Object.is(readLatest(), shown)) draw((count) => count + 1);
    };
    look(); // It may have changed between drawing and this effect.
    return source.subscribe(look);
  }, [source]);
  return now;
}
