// Membership from the dashboard, on a real cluster with a policy: candidates and why not, a candidate that is admitted
// by keyboard with the plan before it, a member that is gone, a source that is not believed; in both languages.
//
//   node membership.mjs URL TOKEN ID     the dashboard, its token, the candidate that joins
//
// Says each step on standard output; whoever started this changes what the source says when it asks. Exit status 1 with
// the reason.
import assert from 'node:assert/strict';
import { launch } from '../../browser.mjs';
import { axeFindings } from './axe.mjs';

const [url, token, id] = process.argv.slice(2);
const PATIENCE = 60_000;
const faults = [];
const say = (text) => console.log(text);

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', colorScheme: 'light' });
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
page.on('console', (message) => {
  if (message.type() === 'error') faults.push(`console: ${message.text()}`);
});
page.on('pageerror', (error) => faults.push(`page: ${error.message}`));

const main = page.locator('main');
const dialog = page.locator('dialog[open]');
const button = (name, inside = main) => inside.getByRole('button', { name, exact: true });
const table = (name) => page.getByRole('region', { name, exact: true });
const row = (name, text) => table(name).locator('tbody tr', { hasText: text });
const shot = async (name) => process.env.RINGSHIFT_SHOTS && page.screenshot({ path: `${process.env.RINGSHIFT_SHOTS}/${name}.png`, fullPage: true });

async function look(name) {
  assert.deepEqual(await axeFindings(page), [], `axe on ${name}`);
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${name} is ${wide} px wider than a screen of ${width}`);
  }
}

try {
  await page.goto(`${url}#/members`);
  await page.getByRole('heading', { name: 'Membership by policy' }).waitFor();
  await row('Candidates', id).getByText('an operator admits it').waitFor();
  await row('Candidates', 'stranger').getByText('its id does not match').waitFor();
  await row('Candidates', 'stranger').getByText('not possible').waitFor();
  assert.equal(await row('Candidates', 'stranger').getByRole('button').count(), 0, 'who cannot be a member has no button');
  await main.locator('.chip', { hasText: 'answers' }).waitFor();
  await look('the candidates');
  await shot('candidates');
  say('the candidates are there');

  // By keyboard: the plan first, and nothing without a yes.
  const open = button(`Admit ${id} …`);
  await open.focus();
  await page.keyboard.press('Enter');
  await dialog.getByRole('heading', { name: `Admit ${id}` }).waitFor();
  await dialog.getByText(`Joins: ${id}.`).waitFor();
  await look('the plan of an admission');
  await shot('plan');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await row('Candidates', id).count(), 1);
  await open.focus();
  await page.keyboard.press('Enter');
  await dialog.getByText(`Joins: ${id}.`).waitFor();
  await button('Admit it', dialog).click();
  await dialog.getByLabel('Token', { exact: true }).fill(token);
  await button('Use it', dialog).click();
  await page.locator('main .progress .chip', { hasText: 'Finished' }).waitFor();
  await page.goto(`${url}#/members`);
  await table('Members').locator('tbody tr', { hasText: id }).waitFor();
  await row('Candidates', id).waitFor({ state: 'detached' });
  say('admitted');

  await row('Members that are gone', 'cache-2').getByText('s more').waitFor();
  await look('a member that is gone');
  await shot('gone');
  say('gone');
  await main.locator('.chip', { hasText: 'not believed' }).waitFor();
  await main.getByText('nobody joins or leaves by policy; traffic goes on.').waitFor();
  say('held');
  await page.getByLabel('Language').selectOption('zh');
  await page.getByRole('heading', { name: '按策略管理成员' }).waitFor();
  await main.locator('.chip', { hasText: '不可信' }).waitFor();
  await look('the same in Chinese');
  await shot('held-zh');
  await page.goto(`${url}#/overview`);
  await page.getByText('实例来源的结果不可信，已暂缓采用').waitFor();
  assert.deepEqual(faults, []);
  say('done');
} catch (error) {
  console.error(error);
  console.error(`faults so far: ${JSON.stringify(faults)}`);
  console.error(`the page says: ${(await page.locator('body').innerText().catch(() => '')).slice(0, 3000)}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
