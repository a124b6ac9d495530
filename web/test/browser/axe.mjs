// What axe-core finds wrong with the page as it is now, as lines of text; none is the right answer.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function axeFindings(page) {
  await page.evaluate(source); // By the debugger: the page's own policy allows no script but its own.
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${rule.help}: ${node.html.slice(0, 160)} ${node.any.map((one) => one.message).join('; ')}`));
}
