// A growth from the dashboard, by clicks on a real cluster: plan, start, watch, pause, go on, roll back, start again,
// faster, finished; then the server goes away. On the way every page is looked at: no error on the console, no request to
// anywhere else, nothing that axe-core finds wrong, nothing wider than the screen.
//
//   node growth.mjs URL TOKEN ID ADDRESS     the dashboard, its token, the member that joins
//
// Says each step on standard output; "lose the server" asks who started this to end it. Exit status 1 with the reason.
import assert from 'node:assert/strict';
import { launch } from '../../browser.mjs';
import { axeFindings } from './axe.mjs';

const [url, token, id, address] = process.argv.slice(2);
const PATIENCE = 60_000; // Generous: a machine that also compiles is slow.
const PAGES = ['overview', 'ring', 'members', 'resize', 'topologies', 'hotkeys', 'registry'];
const origin = new URL(url).origin;
const faults = [];
let losing = false;
const say = (text) => console.log(text);

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', colorScheme: 'light' });
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
page.on('console', (message) => {
  if (message.type() === 'error' && !losing) faults.push(`console: ${message.text()}`);
});
page.on('pageerror', (error) => faults.push(`page: ${error.message}`));
page.on('request', (request) => {
  if (new URL(request.url()).origin !== origin) faults.push(`asked elsewhere: ${request.url()}`);
});

const main = page.locator('main');
const dialog = page.locator('dialog[open]');
const button = (name, inside = main) => inside.getByRole('button', { name, exact: true });
const shows = (text, inside = main) => inside.getByText(text).first().waitFor();
const open = async (name) => {
  await page.goto(`${url}#/${name}`);
  await page.locator('main h1').waitFor();
  await page.locator('main [role=status]', { hasText: 'Loading' }).waitFor({ state: 'detached' });
};

async function look(name) {
  const findings = await axeFindings(page);
  assert.deepEqual(findings, [], `axe on ${name}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${name} is ${wide} px wider than the screen`);
}

async function plan() {
  await button('Another member joins').click();
  const row = page.locator('.edit-row.joins');
  await row.getByRole('textbox').nth(0).fill(id);
  await row.getByRole('textbox').nth(1).fill(address);
  await button('Preview the plan').click();
  await shows(`Joins: ${id}.`);
  await page.locator('.plan .flow svg .flow-link').first().waitFor({ state: 'attached' });
}

async function confirm(action, title, answer) {
  await button(action).click();
  await dialog.getByRole('heading', { name: title }).waitFor();
  await button(answer, dialog).click();
}

async function state(name) {
  await page.locator('main .progress .chip', { hasText: name }).waitFor();
  say(`state: ${name}`);
}

try {
  await page.goto(url);
  await page.getByText('The one router obeys this topology.').waitFor();
  say('the overview is there');
  for (const name of PAGES) {
    await open(name);
    await look(name);
  }
  // By keyboard alone: the skip link comes first, and takes one to the heading.
  await open('members');
  await page.reload(); // Where nothing has had the focus yet.
  await page.locator('main tbody tr').first().waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.className), 'skip');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'H1');
  assert.equal(await page.locator('main tbody tr').count(), 4);
  say('every page was looked at');

  await open('ring');
  await page.getByLabel('Key', { exact: true }).fill('user:1000');
  await button('Find').click();
  await shows('How it was found:');
  const owner = (await page.locator('main dd', { hasText: /^ ?cache-\d$/ }).first().innerText()).trim();
  say(`user:1000 is on ${owner}`);

  // The other language, and back.
  await page.getByLabel('Language').selectOption('zh');
  await page.getByRole('heading', { name: '哈希环', level: 1 }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  await page.getByLabel('语言').selectOption('en');

  await open('resize');
  await button('Preview the plan').click();
  await shows('Nothing is changed yet');
  await plan();
  await look('the plan');
  say('planned');
  await confirm('Start the resize …', 'Start the resize?', 'Start');
  // The token, asked for once: a wrong one is refused.
  await dialog.getByRole('heading', { name: 'Admin token' }).waitFor();
  await dialog.getByLabel('Token', { exact: true }).fill('not-the-token');
  await button('Use it', dialog).click();
  await shows('The server does not know this token.', dialog);
  await dialog.getByLabel('Token', { exact: true }).fill(token);
  await button('Use it', dialog).click();
  await state('Running');
  await page.waitForFunction(() => Number(document.querySelector('main [role=progressbar]')?.getAttribute('aria-valuenow')) > 0);
  await look('a resize');
  await confirm('Pause …', 'Pause the resize?', 'Pause');
  await state('Paused');
  await confirm('Go on …', 'Go on with the resize?', 'Go on');
  await state('Running');
  await confirm('Roll back …', 'Roll the resize back?', 'Roll back');
  await state('Rolled back');

  await plan();
  await confirm('Start the resize …', 'Start the resize?', 'Start');
  await state('Running');
  assert.equal(await dialog.count(), 0, 'the token is kept');
  await page.getByRole('slider').fill('1000');
  await confirm('Set the rate …', 'Change the rate?', 'Change the rate');
  await state('Finished');
  await look('the end');
  const storage = await page.evaluate(() => ({ local: JSON.stringify(localStorage), cookies: document.cookie }));
  assert.ok(!storage.local.includes(token) && storage.cookies === '', 'the token is in sessionStorage alone');

  // What happened is told: the curves have their marks, the log its decisions, the members their newcomer.
  await open('members');
  await button(`${id}: details and actions`).click();
  await shows('active', dialog);
  await look('a member');
  await page.keyboard.press('Escape');
  await open('topologies');
  await page.locator('main .flow svg, main .empty').first().waitFor();
  await open('registry');
  await page.locator('main tr', { hasText: 'resize/rollback' }).first().waitFor();
  say('the audit has it');

  losing = true;
  await open('overview');
  say('lose the server');
  await shows('The connection to the server is lost.');
  await shows(/What you see is .* old\./);
  await page.locator('header .chip', { hasText: 'not up to date' }).waitFor();
  await look('a lost connection');
  assert.deepEqual(faults, []);
  say('done');
} catch (error) {
  console.error(error);
  console.error(`faults so far: ${JSON.stringify(faults)}`);
  console.error(`the page says: ${(await page.locator('body').innerText().catch(() => '')).slice(0, 3000)}`);
  if (process.env.RINGSHIFT_SHOT) await page.screenshot({ path: process.env.RINGSHIFT_SHOT, fullPage: true });
  process.exitCode = 1;
} finally {
  await browser.close();
}
