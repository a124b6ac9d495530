// The types that the pages are checked against are those of docs/openapi.yaml, and the events they listen to, too.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import { expect, it } from 'vitest';
import { EVENTS } from '../src/api/model';
import { contractPath } from './sources';

// Wording may change without making them anew.
const typesAlone = (text: string): string => text.replace(/\/\*\*[\s\S]*?\*\//g, '').replace(/\s+/g, ' ').trim();

it('has the types of the contract (npm run api makes them anew)', async () => {
  const made = astToString(await openapiTS(pathToFileURL(contractPath)));
  const kept = readFileSync(join(__dirname, '../src/api/schema.d.ts'), 'utf8');
  expect(typesAlone(kept)).toBe(typesAlone(made));
});

it('listens to every event of the stream', () => {
  const contract = readFileSync(contractPath, 'utf8');
  const block = /x-events:\n((?: {8}\w+: .*\n)+)/.exec(contract)![1]!;
  const named = [...block.matchAll(/^ {8}(\w+):/gm)].map((found) => found[1]);
  expect([...EVENTS].sort()).toEqual(named.sort());
});
