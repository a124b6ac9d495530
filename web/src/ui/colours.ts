// Which colour index each member has, on every page: from the ids of all members known now, in the order people count.
import { useMemo } from 'preact/hooks';
import { model } from '../api/live';
import { useValue } from '../lib/value';

const collator = new Intl.Collator('en', { numeric: true });

export function indexes(ids: readonly string[]): (id: string) => number | undefined {
  const order = new Map([...new Set(ids)].sort(collator.compare).map((id, index) => [id, index]));
  return (id) => order.get(id);
}

export function useIndexes(more: readonly string[] = []): (id: string) => number | undefined {
  const members = useValue(model, (now) => now.members);
  const known = (members?.members ?? []).map((member) => member.id).join('\n');
  const extra = more.join('\n');
  return useMemo(() => {
    // New ids come after those that are known, so that nobody changes colour because of a plan.
    const now = known === '' ? [] : known.split('\n');
    const later = (extra === '' ? [] : extra.split('\n')).filter((id) => !now.includes(id));
    const first = indexes(now);
    const second = indexes(later);
    return (id) => {
      const index = first(id);
      if (index !== undefined) return index;
      const other = second(id);
      return other === undefined ? undefined : now.length + other;
    };
  }, [known, extra]);
}
