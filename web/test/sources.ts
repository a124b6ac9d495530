// What tests read of the contract: the values of its enums that the page shows by name.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const contractPath = join(__dirname, '../../docs/openapi.yaml');
const contract = readFileSync(contractPath, 'utf8');

// The enum that follows `after` in the file.
function enumAfter(after: string): string[] {
  const at = contract.indexOf(after);
  if (at < 0) throw new Error(`docs/openapi.yaml has no "${after}"`);
  const found = /enum: \[([^\]]*)\]/.exec(contract.slice(at));
  if (!found) throw new Error(`docs/openapi.yaml: no enum after "${after}"`);
  return found[1]!.split(',').map((word) => word.trim().replace(/^"|"$/g, '')).filter((word) => word !== '');
}

export const model = {
  enums: {
    alert: enumAfter('description: For translation; `subject`'),
    severity: enumAfter('required: [severity, code, subject'),
    state: enumAfter('    ResizeState: '),
    phase: enumAfter('    ResizePhase: '),
    memberState: enumAfter('factor: {type: integer, minimum: 0, maximum: 1000'),
    keyState: enumAfter('slice: {type: integer, minimum: 0, maximum: 1023}'),
    mark: enumAfter('    SeriesMark:'),
    origin: enumAfter('required: [qps, source]'),
    why: enumAfter('    MembershipReason:'),
    source: enumAfter('required: [name, state, error, since_ms]'),
    instanceState: enumAfter('    Candidate:'),
  } as Record<string, string[]>,
};
