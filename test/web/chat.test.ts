// The built page in a real Chromium against a scripted gateway, found as a person finds things: by role, name and words.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { build } from 'vite';
import { launchBrowser, withoutBrowser } from './browser.ts';
import { MAIN, ScriptedGateway } from './scripted-gateway.ts';

const skip = withoutBrowser();
const dist = mkdtempSync(join(tmpdir(), 'reins-web-'));
let browser: Browser | undefined;

before(async () => {
  if (skip !== false) return;
  const web = join(import.meta.dirname, '..', '..', 'web');
  await build({
    root: web,
    logLevel: 'error',
    build: { outDir: dist, emptyOutDir: true, reportCompressedSize: false },
  });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  rmSync(dist, { recursive: true, force: true });
});

type World = { readonly gateway: ScriptedGateway; readonly page: Page; readonly faults: string[] };

/** A page of its own, not yet anywhere; what the browser complains of is collected and must stay empty. */
async function open(context: TestContext, options: BrowserContextOptions = {}): Promise<World> {
  const gateway = await new ScriptedGateway(dist).open();
  const tab = await browser!.newContext({ reducedMotion: 'reduce', ...options });
  const page = await tab.newPage();
  page.setDefaultTimeout(15_000);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('WebSocket connection')) faults.push(message.text());
  });
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.after(async () => {
    await tab.close();
    gateway.close();
    assert.deepEqual(faults, []);
  });
  return { gateway, page, faults };
}

async function signedIn(context: TestContext, options: BrowserContextOptions = {}): Promise<World> {
  const world = await open(context, options);
  await world.page.goto(world.gateway.signedInUrl);
  await world.page.getByRole('heading', { name: 'What shall we do?' }).waitFor();
  return world;
}

const field = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true });
const sendButton = (page: Page) => page.getByRole('button', { name: 'Send', exact: true });
const transcript = (page: Page) => page.getByRole('log', { name: 'Transcript' });
const answer = (page: Page) => page.getByRole('article', { name: 'Answer' });
const own = (page: Page) => page.getByRole('article', { name: 'Your message' });

async function send(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press('Enter');
}

/** A promise and the function that fulfils it: how a test holds a run where it wants it. */
function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

test('M-01: the printed link signs in; the token leaves the address bar and stays in this tab alone', {
  skip,
}, async (context) => {
  const { gateway, page } = await signedIn(context);
  assert.equal(page.url(), gateway.url);
  const kept = await page.evaluate(() => ({
    tab: JSON.stringify(sessionStorage),
    browser: JSON.stringify(localStorage),
  }));
  assert.ok(kept.tab.includes(gateway.token));
  assert.ok(!kept.browser.includes(gateway.token));
  await page.reload();
  await page.getByRole('heading', { name: 'What shall we do?' }).waitFor();
  const connects = gateway.requests.filter(({ method }) => method === 'connect');
  assert.deepEqual(
    connects.map(({ params }) => [
      (params['client'] as { id: string; mode: string }).id,
      params['scopes'],
      params['caps'],
    ]),
    Array.from({ length: 2 }, () => [
      'webchat-ui',
      ['operator.read', 'operator.write', 'operator.approvals'],
      ['tool-events'],
    ]),
  );
});

test('T2: a token of another origin is not used, and a wrong one leads back to the form with the reason', {
  skip,
}, async (context) => {
  const { gateway, page } = await open(context);
  await page.goto(gateway.url);
  await page.getByText('reins start').first().waitFor();
  assert.equal(gateway.connectAttempts, 0);
  await page.evaluate(() =>
    sessionStorage.setItem('reins:token', JSON.stringify({ origin: 'http://evil.test', token: 't' })),
  );
  await page.reload();
  await page.getByLabel('Gateway token or password').fill('wrong');
  assert.equal(gateway.connectAttempts, 0);
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.getByRole('alert').getByText('token mismatch').waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('reins:token')), null);
  await page.getByLabel('Gateway token or password').fill(gateway.token);
  await page.getByRole('button', { name: 'Connect' }).click();
  await field(page).waitFor();
});

test('B03: a link that names another gateway is not followed; a notice says so and the query is gone', {
  skip,
}, async (context) => {
  const { gateway, page } = await signedIn(context);
  let hits = 0;
  const listener = createServer(() => hits++);
  listener.on('connection', () => hits++);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  context.after(() => listener.close());
  const elsewhere = `ws://127.0.0.1:${(listener.address() as AddressInfo).port}/`;
  const hellos = gateway.hellos;
  await page.goto(`${gateway.url}?gatewayUrl=${encodeURIComponent(elsewhere)}&token=stolen`);
  const notice = page.getByRole('alert').filter({ hasText: elsewhere });
  await notice.waitFor();
  await page.getByRole('alert').filter({ hasText: 'a secret in its query' }).waitFor();
  await page.getByRole('heading', { name: 'What shall we do?' }).waitFor();
  assert.equal(page.url(), gateway.url);
  assert.equal(gateway.hellos, hellos + 1);
  assert.equal(hits, 0);
  await notice.getByRole('button', { name: 'Close this notice' }).click();
  await notice.waitFor({ state: 'detached' });
});

test('M-01: a reply outlives a cut connection: shown whole, once, in order, and markup in it is text', {
  skip,
}, async (context) => {
  const { gateway, page } = await signedIn(context);
  const half = gate();
  const evil = '<img src=x onerror="alert(1)">';
  gateway.onMessage = async (run) => {
    if (run.message === 'm1') {
      await run.say('part 1, ‖part 2, ‖part 3, ');
      await half.passed;
      await run.say(`part 4, ‖part 5. ‖${evil}`);
    } else await run.say('second reply');
    run.end();
  };
  await send(page, 'm1');
  await answer(page).getByText('part 3').waitFor();
  gateway.cut();
  await page.getByRole('status', { name: 'Connection' }).getByText('Connection lost').waitFor();
  half.open();
  await gateway.until(() => gateway.active.size === 0);
  gateway.restore();
  await answer(page).getByText('part 5').waitFor();
  await send(page, 'm2');
  await answer(page).getByText('second reply').waitFor();
  const words = await transcript(page).getByRole('article').allInnerTexts();
  assert.deepEqual(
    words.map((text) => text.split('\n')[0]),
    ['m1', `part 1, part 2, part 3, part 4, part 5. ${evil}`, 'm2', 'second reply'],
  );
  assert.equal(await page.locator('.transcript img').count(), 0);
  assert.equal(await page.getByRole('status', { name: 'Connection' }).textContent(), '');
});

test('M-01: what is sent while there is no connection goes out once when it is back', { skip }, async (context) => {
  const { gateway, page } = await signedIn(context);
  gateway.cut();
  await page.getByText('Connection lost').waitFor();
  await send(page, 'kept');
  await own(page).getByText('Sending…').waitFor();
  gateway.restore();
  await answer(page).getByText('All right.').waitFor();
  assert.equal(await own(page).count(), 1);
  assert.equal(gateway.requests.filter(({ method }) => method === 'chat.send').length, 1);
});

test('M-01: a run that goes on during a reload is picked up where it is', { skip }, async (context) => {
  const { gateway, page } = await signedIn(context);
  const reloaded = gate();
  gateway.onMessage = async (run) => {
    await run.say('before ');
    await reloaded.passed;
    await run.say('after');
    run.end();
  };
  await send(page, 'go');
  await answer(page).getByText('before').waitFor();
  await page.reload();
  await answer(page).getByText('before').waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
  reloaded.open();
  await answer(page).getByText('before after').waitFor();
  assert.equal(await answer(page).count(), 1);
});

test('B33: an approval shows the whole command, invisible characters spelled out, and takes the decision in place', {
  skip,
}, async (context) => {
  const { gateway, page } = await signedIn(context);
  const command = `ls #${' '.repeat(20_000)}\ntouch p\rrm\u202Etxt.sh\u200B`;
  const decided = gate();
  gateway.onMessage = async (run) => {
    run.think('May I?');
    await run.say('I need to run something.');
    run.storeTurn([{ id: 'c1', name: 'exec', arguments: { command } }]);
    run.toolStart('c1', 'exec', { command });
    run.ask('a1', 'c1', command, 'touch is not on the allow-list');
    await decided.passed;
    run.toolEnd('c1', 'exec', 'The person said no.', 'denied');
    await run.say('Then not.');
    run.end();
  };
  await send(page, 'do it');
  const question = page.getByRole('region', { name: 'Run this command?' });
  const shown = (await question.locator('pre').textContent()) ?? '';
  const expected = command.replace('\r', '\\u{d}').replace('\u202E', '\\u{202e}').replace('\u200B', '\\u{200b}');
  assert.equal(shown, expected);
  assert.ok(await question.getByText('touch p').isVisible());
  await question.getByText('touch is not on the allow-list').waitFor();
  assert.deepEqual(await question.getByRole('button').allInnerTexts(), ['Allow once', 'Always allow', 'Deny']);
  await question.getByRole('button', { name: 'Deny' }).click();
  await gateway.until(() => gateway.decisions.length > 0);
  decided.open();
  await answer(page).getByText('Then not.').waitFor();
  assert.deepEqual(gateway.decisions, [{ id: 'a1', decision: 'deny' }]);
  assert.equal(await question.count(), 0);
  const card = answer(page).locator('details').filter({ hasText: 'Denied' });
  await card.locator('summary').click();
  await card.getByText('The person said no.').waitFor();
});

test('a message during a run is queued below it and taken in; Stop ends the run and keeps its words', {
  skip,
}, async (context) => {
  const { gateway, page } = await signedIn(context);
  const more = gate();
  gateway.onMessage = async (run) => {
    await run.say('Working on it');
    await more.passed;
    run.storeTurn();
    run.takeSteered();
    await run.say('Taken in');
  };
  await send(page, 'start');
  await answer(page).getByText('Working on it').waitFor();
  await send(page, 'one more thing');
  await own(page).filter({ hasText: 'one more thing' }).getByText('Queued for the run under way').waitFor();
  more.open();
  await answer(page).getByText('Taken in').waitFor();
  const words = await transcript(page).getByRole('article').allInnerTexts();
  assert.deepEqual(
    words.map((text) => text.split('\n')[0]),
    ['start', 'Working on it', 'one more thing', 'Taken in'],
  );
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await answer(page).getByText('Stopped.').waitFor();
  assert.ok(await answer(page).getByText('Taken in').isVisible());
  assert.equal(await page.getByRole('button', { name: 'Stop', exact: true }).count(), 0);
});

test('a failed run says what happened and what to do, in the conversation', { skip }, async (context) => {
  const { gateway, page } = await signedIn(context);
  gateway.onMessage = async (run) =>
    run.fail('No model is configured', { code: 'MODEL_NOT_CONFIGURED', next: 'Run “reins setup” to add one.' });
  await page.getByRole('button', { name: 'What time is it?' }).click();
  const alert = answer(page).getByRole('alert');
  await alert.getByText('No model is configured').waitFor();
  await alert.getByText('reins setup').waitFor();
  await own(page).getByText('What time is it?').waitFor();
});

test('keyboard: Shift+Enter breaks the line, Enter sends, “/” offers commands, drafts stay with their session', {
  skip,
}, async (context) => {
  const { gateway, page } = await signedIn(context);
  gateway.row('agent:main:other', { label: 'Other session' });
  await field(page).press('a');
  await field(page).press('Shift+Enter');
  await field(page).press('b');
  assert.equal(await field(page).inputValue(), 'a\nb');
  await page.getByRole('button', { name: 'Other session' }).click();
  assert.equal(await field(page).inputValue(), '');
  await field(page).fill('/s');
  const menu = page.getByRole('listbox', { name: 'Commands' });
  assert.equal(await menu.getByRole('option').count(), 2);
  await field(page).press('ArrowDown');
  await field(page).press('Tab');
  assert.equal(await field(page).inputValue(), '/status');
  await page.getByRole('button', { name: 'Main session' }).click();
  assert.equal(await field(page).inputValue(), 'a\nb');
  await field(page).press('Enter');
  await answer(page).getByText('All right.').waitFor();
  const sent = gateway.requests.filter(({ method }) => method === 'chat.send');
  assert.deepEqual(
    sent.map(({ params }) => [params['sessionKey'], params['message']]),
    [[MAIN, 'a\nb']],
  );
});

test('sessions: search, a new one, and back; a command’s answer is a notice', { skip }, async (context) => {
  const { gateway, page } = await signedIn(context);
  gateway.row('agent:main:garden', { label: 'Garden plans' });
  const list = page.getByRole('navigation', { name: 'Sessions' });
  await list.getByRole('searchbox').fill('garden');
  await list.getByRole('button', { name: 'Main session' }).waitFor({ state: 'detached' });
  await list.getByText('Garden plans').waitFor();
  await list.getByRole('searchbox').fill('');
  await list.getByRole('button', { name: 'New session' }).first().click();
  gateway.onMessage = async (run) => {
    await run.command('All is **well**');
  };
  await send(page, '/status');
  const notice = page.getByRole('complementary', { name: 'From the gateway' });
  await notice.locator('strong').getByText('well').waitFor();
  const [sent] = gateway.requests.filter(({ method }) => method === 'chat.send');
  assert.match(String(sent?.params['sessionKey']), /^agent:main:web-[0-9a-f]{8}$/);
  await list.getByRole('button', { name: 'Main session' }).click();
  await page.getByRole('heading', { name: 'What shall we do?' }).waitFor();
});

test('scrolling: new words keep the end in view, but not for who reads further up', { skip }, async (context) => {
  const { gateway, page } = await signedIn(context);
  const more = gate();
  gateway.onMessage = async (run) => {
    await run.say(Array.from({ length: 80 }, (_, line) => `line ${line}`).join('\n\n'));
    await more.passed;
    await run.say('\n\nthe very end');
    run.end();
  };
  await send(page, 'long');
  await answer(page).getByText('line 79').waitFor();
  const distance = () =>
    transcript(page).evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight);
  assert.ok((await distance()) < 5);
  await transcript(page).evaluate((element) => element.scrollTo(0, 0));
  const jump = page.getByRole('button', { name: 'Jump to latest' });
  await jump.waitFor();
  more.open();
  await answer(page).getByText('the very end').waitFor();
  assert.equal(await transcript(page).evaluate((element) => element.scrollTop), 0);
  await jump.click();
  await jump.waitFor({ state: 'detached' });
  assert.ok((await distance()) < 5);
});

test('phone: the session list is a drawer, nothing is wider than the screen', { skip }, async (context) => {
  const { gateway, page } = await signedIn(context, { viewport: { width: 390, height: 844 }, hasTouch: true });
  gateway.row('agent:main:other', { label: 'Other session' });
  gateway.onMessage = async (run) => {
    await run.say(
      `${'| a long heading '.repeat(9)}|\n${'|---'.repeat(9)}|\n${'| x '.repeat(9)}|\n\n\`\`\`\n${'wide '.repeat(60)}\n\`\`\``,
    );
    run.end();
  };
  await send(page, 'wide');
  await answer(page).getByRole('table').waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  const other = page.getByRole('button', { name: 'Other session' });
  assert.equal(await other.count(), 0);
  await page.getByRole('button', { name: 'Open the session list' }).click();
  await other.click();
  await other.waitFor({ state: 'hidden' });
  await page.getByRole('heading', { name: 'Other session' }).waitFor();
});

test('facts: model, tokens and cost stand under the answer and for the session; copying copies the source', {
  skip,
}, async (context) => {
  const { gateway, page } = await signedIn(context, { permissions: ['clipboard-read', 'clipboard-write'] });
  gateway.onMessage = async (run) => {
    await run.say('Some **bold** words');
    run.end();
  };
  await send(page, 'facts');
  await answer(page).getByText('1.8k in · 212 out · $0.0123').waitFor();
  await page.locator('.session-facts').getByText('20.2k of 128k (16 %)').waitFor();
  await answer(page).getByRole('button', { name: 'Copy answer' }).click();
  await answer(page).getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'Some **bold** words');
  assert.equal(await sendButton(page).isDisabled(), true);
});

test('dark and light follow the system, and the switch wins over it', { skip }, async (context) => {
  const { page } = await signedIn(context, { colorScheme: 'dark' });
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await ground();
  await page.getByRole('button', { name: /Switch between dark and light/ }).click();
  const light = await ground();
  assert.notEqual(dark, light);
  await page.reload();
  await page.getByRole('heading', { name: 'What shall we do?' }).waitFor();
  assert.equal(await ground(), light);
});
