// The web chat against the real gateway, in a real browser, through a proxy whose wire can be cut.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { launchBrowser, withoutBrowser } from '../web/browser.ts';
import { type House, openHouse } from './house.ts';

/** Passes bytes on to the gateway until it is cut; pages reach it by its own address. */
async function openProxy(port: () => number) {
  const pairs = new Set<Socket>();
  let open = true;
  const server = createServer((near) => {
    if (!open) return near.destroy();
    const far = connect(port(), '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      pairs.add(from);
      from.on('data', (bytes) => to.write(bytes));
      from.on('close', () => to.destroy());
      from.on('error', () => to.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      open = false;
      for (const socket of pairs) socket.destroy();
      pairs.clear();
    },
    restore() {
      open = true;
    },
    close() {
      for (const socket of pairs) socket.destroy();
      server.close();
    },
  };
}

const tokenOf = (house: House) => new URL(house.reins.link).hash;

test('M-01, M-59: the printed link logs in; a cut wire and a restart lose nothing; markup is text', {
  skip: withoutBrowser(),
}, async (t) => {
  const proxy = await openProxy(() => house.port);
  t.after(() => proxy.close());
  // The proxy's address is not the gateway's: it must be named, as for any other front.
  const origin = `http://127.0.0.1:${proxy.port}`;
  const house = await openHouse(t, {
    config: {
      gateway: { port: 0, auth: { token: 'story-token-0123456789abcdef' }, controlUi: { allowedOrigins: [origin] } },
    },
  });
  const browser = await launchBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(`${origin}/${tokenOf(house)}`);
  const box = page.getByRole('textbox', { name: 'Message' });
  await box.waitFor();
  assert.equal(new URL(page.url()).hash, '', 'the token is gone from the address bar');

  const half = Promise.withResolvers<void>();
  house.model.script([
    { text: Array.from({ length: 20 }, (_, i) => `part${i} `), pauses: [{ afterEvents: 11, until: half.promise }] },
    { text: 'second answer' },
    { text: '<img src=x onerror="alert(1)"> stays text' },
  ]);
  await box.fill('first message');
  await box.press('Enter');
  const answers = page.getByRole('article', { name: 'Answer' });
  await page.getByText('part9').waitFor();
  proxy.cut();
  await page.getByRole('status', { name: 'Connection' }).waitFor();
  half.resolve();
  proxy.restore();
  await page.getByText('part19').waitFor();
  assert.equal(((await answers.first().textContent()) ?? '').match(/part0 /g)?.length, 1, 'shown once');

  await house.restart();
  await box.fill('second message');
  await box.press('Enter');
  await page.getByText('second answer').waitFor();
  await box.fill('third message');
  await box.press('Enter');
  await page.getByText('stays text').waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  assert.match((await answers.last().textContent()) ?? '', /<img src=x onerror="alert\(1\)"> stays text/);
  const words = await page.getByRole('article', { name: 'Your message' }).allTextContents();
  assert.deepEqual(
    words.map((text) => /(first|second|third) message/.exec(text)?.[1]),
    ['first', 'second', 'third'],
  );
  assert.equal(await answers.count(), 3);
  assert.deepEqual(faults, []);
});
