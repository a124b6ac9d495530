// Debian's Chromium by playwright-core, with a profile of its own and nothing that calls out; for the browser tests and the
// pictures. CHROMIUM names another one.
import { chromium } from 'playwright-core';

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
           '--disable-sync', '--disable-default-apps', '--disable-dev-shm-usage'],
  });
}
