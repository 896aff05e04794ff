// A real Chromium for tests of the web chat. Where there is none, the test says so; in CI that is a failure.
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const KNOWN_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const QUIET = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** Where a Chromium is: `CHROMIUM_PATH`, else a known place, else undefined. */
export function chromiumPath(): string | undefined {
  const named = process.env['CHROMIUM_PATH'];
  return named !== undefined && named !== '' ? named : KNOWN_PATHS.find((path) => existsSync(path));
}

/** What `test` takes as `skip`: a reason where no Chromium is, unless this is CI, where {@link launchBrowser} then fails. */
export const withoutBrowser = (): string | false =>
  chromiumPath() === undefined && process.env['CI'] !== 'true' && 'no Chromium found; set CHROMIUM_PATH to run this';

/** A quiet, headless browser; the caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (executablePath === undefined) throw new Error('no Chromium found; set CHROMIUM_PATH');
  return await chromium.launch({ executablePath, args: QUIET });
}
