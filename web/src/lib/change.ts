// The form of a change of members, as the API's edit and back; and the options of a start from what was typed. Pure.
import type { Change, Member, NewMember, StartOptions } from '../api/types';

export interface Draft {
  added: { id: string; address: string; weight: string; zone: string }[];
  removed: string[];
  weights: Record<string, string>; // Member id -> as typed; as it is now when it is not here.
  retire: boolean;
}

export const emptyDraft: Draft = { added: [], removed: [], weights: {}, retire: false };

function weightOf(text: string): number | null {
  const number = Number(text.trim().replace(',', '.'));
  return text.trim() !== '' && Number.isFinite(number) && number > 0 ? number : null;
}

export type DraftFault = 'nothing' | 'weight' | 'incomplete';

// The change that the form stands for; or what is wrong with it.
export function changeOf(draft: Draft, members: readonly Pick<Member, 'id' | 'weight'>[]): Change | DraftFault {
  const add: NewMember[] = [];
  for (const one of draft.added) {
    const id = one.id.trim();
    const address = one.address.trim();
    if (id === '' && address === '') continue;
    if (id === '' || address === '') return 'incomplete';
    const weight = weightOf(one.weight);
    if (weight === null) return 'weight';
    add.push({ id, address, weight, ...(one.zone.trim() ? { zone: one.zone.trim() } : {}) });
  }
  const weights: Record<string, number> = {};
  for (const member of members) {
    const typed = draft.weights[member.id];
    if (typed === undefined || draft.removed.includes(member.id)) continue;
    const weight = weightOf(typed);
    if (weight === null) return 'weight';
    if (weight !== member.weight) weights[member.id] = weight;
  }
  const remove = draft.removed.filter((id) => members.some((member) => member.id === id));
  if (add.length === 0 && remove.length === 0 && Object.keys(weights).length === 0) return 'nothing';
  return {
    edit: {
      retire: draft.retire,
      ...(add.length ? { add } : {}),
      ...(remove.length ? { remove } : {}),
      ...(Object.keys(weights).length ? { weights } : {}),
    },
  };
}

export interface OptionText {
  steps: string;
  keysPerSecond: string;
  soak: string;
  abortIf: string;
  originBudget: string;
  allowForeign: boolean;
}

export const noOptions: OptionText = { steps: '', keysPerSecond: '', soak: '', abortIf: '', originBudget: '', allowForeign: false };

export type OptionFault = 'steps' | 'keysPerSecond' | 'originBudget';

export function optionsOf(text: OptionText): StartOptions | OptionFault {
  const out: StartOptions = {};
  const words = text.steps.split(/[\s,，、%]+/).filter((word) => word !== '');
  if (words.length > 0) {
    const steps = words.map(Number);
    const rising = steps.every((step, index) => Number.isFinite(step) && step > 0 && step > (steps[index - 1] ?? 0));
    if (!rising || steps[steps.length - 1] !== 100) return 'steps';
    out.steps = steps;
  }
  const whole = (typed: string): number | null => (/^\d{1,15}$/.test(typed.trim()) ? Number(typed.trim()) : null);
  if (text.keysPerSecond.trim() !== '') {
    const rate = whole(text.keysPerSecond);
    if (rate === null || rate < 1) return 'keysPerSecond';
    out.keys_per_second = rate;
  }
  if (text.originBudget.trim() !== '') {
    const budget = whole(text.originBudget);
    if (budget === null) return 'originBudget';
    out.origin_budget = budget;
  }
  if (text.soak.trim() !== '') out.soak = text.soak.trim();
  if (text.abortIf.trim() !== '') out.abort_if = text.abortIf.trim();
  if (text.allowForeign) out.allow_foreign = true;
  return out;
}
