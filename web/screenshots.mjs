// Pictures of every page, wide and narrow, light and dark, in both languages.
//
//   node web/screenshots.mjs --url http://127.0.0.1:7380/ --out /tmp/shots     of a running server
//   node web/screenshots.mjs --generated 1000 --out /tmp/shots                 of a cluster made up (test/generated.mjs)
//   ... --pages ring,members --widths 390 --schemes dark --languages zh        only these
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from './browser.mjs';
import { generate, serveGenerated } from './test/generated.mjs';

const { values } = parseArgs({ options: {
  url: { type: 'string' }, generated: { type: 'string' }, state: { type: 'string', default: 'running' }, out: { type: 'string', default: 'shots' },
  pages: { type: 'string', default: 'overview,ring,members,resize,topologies,hotkeys,registry' }, widths: { type: 'string', default: '1280,390' },
  schemes: { type: 'string', default: 'light,dark' }, languages: { type: 'string', default: 'en,zh' },
  site: { type: 'string', default: fileURLToPath(new URL('../build/web/site', import.meta.url)) },
} });
const server = values.url ? null : await serveGenerated(values.site, generate(Number(values.generated ?? 5), { state: values.state }));
const url = values.url ?? server.url;
mkdirSync(values.out, { recursive: true });
const browser = await launch();
let faults = 0;
try {
  for (const scheme of values.schemes.split(',')) {
    for (const width of values.widths.split(',').map(Number)) {
      for (const language of values.languages.split(',')) {
        const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, locale: language === 'zh' ? 'zh-CN' : 'en-GB' });
        const page = await context.newPage();
        page.on('console', (message) => { if (message.type() === 'error') { faults += 1; console.error(`console: ${message.text()}`); } });
        page.on('pageerror', (error) => { faults += 1; console.error(`page: ${error.message}`); });
        for (const name of values.pages.split(',')) {
          await page.goto(`${url}#/${name}`);
          await page.waitForSelector('main h1');
          await page.waitForTimeout(500);
          if (name === 'ring') {
            await page.getByRole('textbox').first().fill('user:1000');
            await page.locator('form.inline button').click();
            await page.waitForTimeout(400);
          }
          if (name === 'resize' && await page.locator('.planner').count() > 0) {
            await page.locator('.planner .buttons.start button').first().click();
            const fields = page.locator('.edit-row.joins input');
            await fields.nth(0).fill('cache-new');
            await fields.nth(1).fill('127.0.0.1:7005');
            await page.locator('.planner button.primary').click();
            await page.locator('.plan').waitFor({ timeout: 10_000 }).catch(() => {});
            await page.waitForTimeout(300);
          }
          // Nothing may be wider than the screen: a page that scrolls sideways hides what is at its right.
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          if (wide > 0) { faults += 1; console.error(`${name} at ${width}: ${wide} px wider than the screen`); }
          await page.screenshot({ path: join(values.out, `${name}-${width}-${scheme}-${language}.png`), fullPage: true });
        }
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
  server?.close();
}
console.log(`${faults} faults`);
process.exitCode = faults > 0 ? 1 : 0;
