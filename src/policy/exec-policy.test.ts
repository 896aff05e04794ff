import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExecRequest, ExecVerdict } from '#contract';
import { type Approval, type ApprovalDecision, agentId, resolveSessionKey } from '#domain';
import { ManualClock } from '#world';
import { Approvals } from './approvals.ts';
import { ExecApprovalsFile } from './exec-approvals-file.ts';
import { type ExecPolicyOptions, execPolicy } from './exec-policy.ts';
import type { ExecRule } from './exec-rule.ts';

const ANNA = agentId('anna');
const WORKSPACE = '/w';
const EXPIRY_MS = 30 * 60_000;
const PROGRAMS = ['echo', 'touch', 'cat', 'tail', 'sh', 'sed'];

type World = {
  readonly rule?: Partial<ExecRule> | { readonly refused: string };
  readonly allow?: readonly string[];
  readonly file?: unknown;
  readonly ports?: Partial<ExecPolicyOptions>;
};

/** A gate over a machine of names; `files` are what fingerprints see, and may change while an approval waits. */
function world({ rule = {}, allow = ['echo'], file, ports = {} }: World = {}) {
  const clock = new ManualClock();
  const approvals = new Approvals({ clock, expiryMs: () => EXPIRY_MS });
  const asked: Approval[] = [];
  const audited: Readonly<Record<string, unknown>>[] = [];
  const files = new Map<string, string>([
    ['/w', 'folder 1'],
    ['/w/s.sh', 'bytes 1'],
    ['/w/sub/s.sh', 'bytes 2'],
    ['/w/sub/deep/s.sh', 'bytes 3'],
    ['/w/log', 'line 1'],
  ]);
  for (const name of PROGRAMS) files.set(`/usr/bin/${name}`, 'a program');
  let inForce: ExecRule | { readonly refused: string } =
    'refused' in rule ? rule : { security: 'allowlist', ask: 'on-miss', isExplicit: false, ...rule };
  let content = JSON.stringify(
    file ?? { version: 1, agents: { anna: { allowlist: allow.map((pattern) => ({ pattern })) } } },
  );
  approvals.subscribe((approval) => {
    if (approval.decision === undefined) asked.push(approval);
  });
  const gate = execPolicy({
    approvals,
    file: new ExecApprovalsFile({
      load: async () => content,
      save: async (text) => {
        content = text;
      },
    }),
    rule: () => inForce,
    resolve: async (name, cwd) => {
      if (!name.includes('/')) return PROGRAMS.includes(name) ? `/usr/bin/${name}` : undefined;
      const path = name.startsWith('/') ? name : `${cwd}/${name.replace('./', '')}`;
      return files.has(path) ? path : undefined;
    },
    isAgentWritable: (path) => path.startsWith(`${WORKSPACE}/`),
    argvDigest: (argv) => JSON.stringify(argv),
    fingerprint: async (path) => files.get(path),
    now: () => clock.now(),
    audit: (record) => audited.push(record),
    ...ports,
  });
  const run = new AbortController();
  const request = (command: string, more: Partial<ExecRequest> = {}): ExecRequest => ({
    command,
    cwd: WORKSPACE,
    env: {},
    agent: ANNA,
    sessionKey: resolveSessionKey('notes', ANNA),
    runId: 'run-1',
    callId: 'call-1',
    owner: true,
    ...more,
  });
  /** For what must not be asked: a question ends the run, so that it fails and does not wait. */
  const neverAsks = () =>
    approvals.subscribe(
      (approval) => approval.decision === undefined && run.abort(new Error(`asked: ${approval.command}`)),
    );
  const authorise = (command: string, more?: Partial<ExecRequest>) =>
    gate.authorise(request(command, more), run.signal);
  /** Waits for the question, does `meanwhile`, answers. */
  async function answered(
    command: string,
    decision: ApprovalDecision | 'nobody',
    { meanwhile = () => {}, more }: { readonly meanwhile?: () => void; readonly more?: Partial<ExecRequest> } = {},
  ): Promise<ExecVerdict> {
    const question = Promise.withResolvers<Approval>();
    const leave = approvals.subscribe((approval) => approval.decision === undefined && question.resolve(approval));
    const verdict = authorise(command, more);
    const { id } = await Promise.race([
      question.promise,
      verdict.then((v) => assert.fail(`not asked: ${JSON.stringify(v)}`)),
    ]);
    leave();
    meanwhile();
    if (decision === 'nobody') await clock.advance(EXPIRY_MS);
    else approvals.resolve(id, decision, 'anna');
    return await verdict;
  }
  return {
    approvals,
    asked,
    audited,
    files,
    run,
    authorise,
    neverAsks,
    answered,
    stored: () => JSON.parse(content),
    setRule: (next: ExecRule | { readonly refused: string }) => {
      inForce = next;
    },
    setFile: (text: string) => {
      content = text;
    },
  };
}

/** `allowlist argv`, `config shell`, `asks`, or `refused`, without anybody answering. */
async function outcome(setting: World, command: string, who: 'owner' | 'other'): Promise<string> {
  const { authorise, approvals, asked, run } = world(setting);
  approvals.subscribe((approval) => approval.decision === undefined && run.abort(new Error('asked')));
  try {
    const verdict = await authorise(command, { owner: who === 'owner' });
    assert.equal(asked.length, 0);
    return verdict.allowed ? `${verdict.by} ${verdict.plan.kind}` : 'refused';
  } catch (error) {
    assert.ok(error instanceof Error && error.message === 'asked');
    return 'asks';
  }
}

describe('the decision table', () => {
  const LISTED = 'allowlist argv';
  const CONFIG = 'config shell';
  const table = [
    // rule                    explicit  owner: listed, unlisted    others: listed, unlisted
    { rule: 'deny off', explicit: false, owner: ['refused', 'refused'], other: ['refused', 'refused'] },
    { rule: 'deny on-miss', explicit: false, owner: ['refused', 'refused'], other: ['refused', 'refused'] },
    { rule: 'deny always', explicit: false, owner: ['refused', 'refused'], other: ['refused', 'refused'] },
    { rule: 'allowlist off', explicit: false, owner: [LISTED, 'refused'], other: [LISTED, 'refused'] },
    { rule: 'allowlist on-miss', explicit: false, owner: [LISTED, 'asks'], other: [LISTED, 'refused'] },
    { rule: 'allowlist always', explicit: false, owner: ['asks', 'asks'], other: ['refused', 'refused'] },
    { rule: 'full off', explicit: false, owner: [LISTED, CONFIG], other: [LISTED, 'refused'] },
    { rule: 'full on-miss', explicit: false, owner: [LISTED, CONFIG], other: [LISTED, 'refused'] },
    { rule: 'full always', explicit: false, owner: ['asks', 'asks'], other: ['refused', 'refused'] },
    { rule: 'full off', explicit: true, owner: [LISTED, CONFIG], other: [LISTED, CONFIG] },
    { rule: 'full on-miss', explicit: true, owner: [LISTED, CONFIG], other: [LISTED, CONFIG] },
    { rule: 'full always', explicit: true, owner: ['asks', 'asks'], other: ['refused', 'refused'] },
    { rule: 'allowlist off', explicit: true, owner: [LISTED, 'refused'], other: [LISTED, 'refused'] },
  ] as const;
  for (const { rule, explicit, ...expected } of table) {
    const [security, ask] = rule.split(' ') as [ExecRule['security'], ExecRule['ask']];
    for (const who of ['owner', 'other'] as const) {
      for (const [i, command] of ['echo a', 'touch a'].entries()) {
        const what = `${rule}${explicit ? ', said by the config' : ''}: ${who}, ${i === 0 ? 'listed' : 'unlisted'}`;
        test(`${what}: ${expected[who][i]}`, async () =>
          assert.equal(
            await outcome({ rule: { security, ask, isExplicit: explicit } }, command, who),
            expected[who][i],
          ));
      }
    }
  }
  test('a line that cannot be parsed is unlisted', async () => {
    assert.equal(await outcome({}, 'echo $(touch p)', 'owner'), 'asks');
    assert.equal(await outcome({}, 'echo $(touch p)', 'other'), 'refused');
  });
});

describe('what is refused, and with which words', () => {
  const full = { security: 'full', ask: 'off', isExplicit: true } as const;
  const always = { ask: 'always' } as const;
  const cases: readonly {
    readonly name: string;
    readonly world: World;
    readonly command?: string;
    readonly owner?: false;
    readonly reason: RegExp;
  }[] = [
    {
      name: 'an agent that is not there',
      world: { rule: { refused: 'there is no agent "anna"' } },
      reason: /no agent/,
    },
    { name: 'a damaged file', world: { rule: full, file: [] }, reason: /exec-approvals\.json cannot be read/ },
    { name: 'security deny', world: { rule: { security: 'deny' } }, reason: /switched off/ },
    {
      name: 'a file that says deny',
      world: { rule: full, file: { defaults: { security: 'deny' } } },
      reason: /switched off/,
    },
    {
      name: 'a miss without asking',
      world: { rule: { ask: 'off' } },
      command: 'touch a',
      reason: /"touch" is not on the allow-list/,
    },
    {
      name: 'a miss of someone else',
      world: {},
      command: 'touch a',
      owner: false,
      reason: /not on the allow-list, and only the operator/,
    },
    {
      name: 'a listed command of someone else where all is asked',
      world: { rule: always },
      command: 'echo a',
      owner: false,
      reason: /every command needs an approval, and only/,
    },
    { name: 'a NUL', world: { rule: full }, command: 'echo a\0b', reason: /cannot be run/ },
    { name: 'half a character', world: { rule: full }, command: 'echo \ud83d', reason: /cannot be run/ },
  ];
  for (const { name, world: setting, command = 'echo a', owner = true, reason } of cases) {
    test(name, async () => {
      const { authorise, neverAsks } = world(setting);
      neverAsks();
      const verdict = await authorise(command, { owner });
      assert.ok(!verdict.allowed);
      assert.match(verdict.reason, reason);
    });
  }

  test('fail closed: a port that fails refuses, and tells the audit and not the model why', async () => {
    const { authorise, audited } = world({
      ports: { resolve: () => Promise.reject(new Error('EACCES /secret/path')) },
    });
    assert.deepEqual(await authorise('echo a'), { allowed: false, reason: 'the command could not be checked' });
    assert.match(String(audited[0]?.['error']), /EACCES/);
  });
});

describe('an approval', () => {
  test('T9: the whole string runs in a shell once it is approved, and is asked for again the next time', async () => {
    const { answered, asked, audited } = world();
    const shell = { allowed: true, plan: { kind: 'shell', command: 'touch a > b' }, by: 'approval' };
    assert.deepEqual(await answered('touch a > b', 'allow-once'), shell);
    assert.deepEqual(await answered('touch a > b', 'allow-once'), shell);
    assert.equal(asked.length, 2);
    assert.deepEqual(
      [asked[0]?.command, asked[0]?.cwd, asked[0]?.agent, asked[0]?.sessionKey, asked[0]?.runId, asked[0]?.callId],
      ['touch a > b', WORKSPACE, 'anna', resolveSessionKey('notes', ANNA), 'run-1', 'call-1'],
    );
    const { command, decision, by, cwd, envDigest } = audited[0]!;
    assert.deepEqual(
      { command, decision, by, cwd, envDigest },
      { command: 'touch a > b', decision: 'allow-once', by: 'anna', cwd: WORKSPACE, envDigest: '[]' },
    );
  });

  test('a listed command that is asked for still runs without a shell', async () => {
    const { answered } = world({ rule: { ask: 'always' } });
    const verdict = await answered('echo a', 'allow-once');
    assert.ok(verdict.allowed && verdict.plan.kind === 'argv' && verdict.by === 'approval');
  });

  test('no is no', async () => {
    assert.deepEqual(await world().answered('touch a', 'deny'), { allowed: false, reason: 'a person refused it' });
  });

  test('the run ends first: the question is gone, and the gate throws what ended it', async () => {
    const { authorise, approvals, run, audited } = world();
    approvals.subscribe((approval) => approval.decision === undefined && run.abort(new Error('stopped')));
    await assert.rejects(authorise('touch a'), /stopped/);
    assert.equal(approvals.list().length, 0);
    assert.equal(audited[0]?.['decision'], 'expired');
    await assert.rejects(authorise('echo a'), /stopped/);
  });

  test('T21: no room for another question', async () => {
    const { authorise, approvals, run } = world();
    const full = Promise.withResolvers<void>();
    approvals.subscribe(() => approvals.list().length === 8 && full.resolve());
    const waiting = Array.from({ length: 8 }, () => authorise('touch a').catch(() => 'ended'));
    await full.promise;
    assert.deepEqual(await authorise('touch a'), { allowed: false, reason: 'too many approvals are waiting already' });
    run.abort();
    await Promise.all(waiting);
  });

  test('B33: what is shown is what is recorded and what runs, hidden characters and all', async () => {
    const command = 'printf a\rrm\u202Etxt.sh\u200B';
    const { answered, asked } = world();
    const verdict = await answered(command, 'allow-once');
    assert.equal(asked[0]?.command, command);
    assert.deepEqual(verdict.allowed && verdict.plan, { kind: 'shell', command });
  });

  const long: readonly (Pick<ExecRequest, 'command' | 'env'> & { readonly name: string })[] = [
    { name: 'a command behind 20 000 spaces', command: `ls #${' '.repeat(20_000)}\ntouch /out/p`, env: {} },
    { name: 'a command that is long once it is shown', command: `echo ${'\u202e'.repeat(600)}`, env: {} },
    { name: 'an environment that is long', command: 'touch a', env: { A: 'x'.repeat(5_000) } },
  ];
  for (const { name, command, env } of long) {
    test(`B33: ${name} is refused without a question`, async () => {
      const { authorise, neverAsks } = world();
      neverAsks();
      const verdict = await authorise(command, { env });
      assert.ok(!verdict.allowed);
      assert.match(verdict.reason, /cannot be shown whole/);
    });
  }

  test('T10: what is set for the command is part of what is asked, and cannot look like more', async () => {
    const { answered, asked } = world();
    await answered('touch a', 'deny', { more: { env: { A: '1', NOTE: 'x\n"; approved by anna\u202e' } } });
    assert.equal(
      asked[0]?.reason,
      '"touch" is not on the allow-list; with A="1" NOTE="x\\n\\"; approved by anna\\u{202e}"',
    );
    assert.ok(!asked[0]?.allowedDecisions.includes('allow-always'));
  });

  const changes = [
    { name: 'B32: the script', command: 'sh s.sh', change: '/w/s.sh' },
    { name: 'B32: the script, by its own path', command: 'sh /w/s.sh a', change: '/w/s.sh' },
    { name: 'B32: a script that is run directly', command: './s.sh a', change: '/w/s.sh' },
    { name: 'B32: the script in a folder that the line goes to', command: 'cd sub && sh s.sh', change: '/w/sub/s.sh' },
    {
      name: 'B32: the script in a folder below one',
      command: 'cd sub && cd deep && sh s.sh',
      change: '/w/sub/deep/s.sh',
    },
    { name: 'B32: the script in a line that only a shell can read', command: 'sh s.sh > out 2>&1', change: '/w/s.sh' },
    { name: 'B32: the same, in a folder and in quotes', command: '(cd sub && sh "s.sh")', change: '/w/sub/s.sh' },
    { name: 'B32: a file named in an option', command: 'sh --rcfile=s.sh', change: '/w/s.sh' },
    { name: 'T9: the program', command: 'touch a', change: '/usr/bin/touch' },
    { name: 'T9: the folder', command: 'touch a', change: '/w' },
  ];
  for (const { name, command, change } of changes) {
    test(`${name} changed while it waited: denied, and the approval is used up`, async () => {
      const { answered, approvals, asked, files } = world();
      const verdict = await answered(command, 'allow-once', { meanwhile: () => files.set(change, 'other bytes') });
      assert.ok(!verdict.allowed);
      assert.match(verdict.reason, /changed while the approval was waiting/);
      assert.throws(() => approvals.resolve(asked[0]!.id, 'allow-once', 'anna'), { code: 'APPROVAL_ALREADY_RESOLVED' });
    });
    test(`${name} as it was: runs`, async () => {
      assert.ok((await world().answered(command, 'allow-once')).allowed);
    });
  }

  test('B32: a script that appears or goes away is a change too', async () => {
    const gone = world();
    assert.ok(
      !(await gone.answered('sh s.sh', 'allow-once', { meanwhile: () => gone.files.delete('/w/s.sh') })).allowed,
    );
    const come = world();
    assert.ok(
      !(await come.answered('sh n.sh', 'allow-once', { meanwhile: () => come.files.set('/w/n.sh', 'x') })).allowed,
    );
  });

  test('a log that grows is not a change of the command that reads it', async () => {
    const { answered, files } = world();
    const verdict = await answered('tail log', 'allow-once', { meanwhile: () => files.set('/w/log', 'line 2') });
    assert.ok(verdict.allowed);
  });

  test('a command that names too many files to look at is refused without a question', async () => {
    const { authorise, neverAsks } = world();
    neverAsks();
    const changes = Array.from({ length: 9 }, (_, i) => `cd d${i}`).join(' && ');
    const verdict = await authorise(`${changes} && sh s.sh`);
    assert.ok(!verdict.allowed);
    assert.match(verdict.reason, /too many files/);
  });

  const deny: ExecRule = { security: 'deny', ask: 'off', isExplicit: false };
  const revocations: readonly { readonly name: string; readonly revoke: (w: ReturnType<typeof world>) => void }[] = [
    { name: 'the config says deny', revoke: (w) => w.setRule(deny) },
    { name: 'the config refuses misses', revoke: (w) => w.setRule({ ...deny, security: 'allowlist' }) },
    { name: 'the agent is gone', revoke: (w) => w.setRule({ refused: 'there is no agent' }) },
    { name: 'the file is damaged', revoke: (w) => w.setFile('{') },
  ];
  for (const { name, revoke } of revocations) {
    test(`rule 7: meanwhile ${name}: the answer counts for nothing`, async () => {
      const w = world();
      assert.ok(!(await w.answered('touch a', 'allow-once', { meanwhile: () => revoke(w) })).allowed);
    });
  }
});

describe('allow-always', () => {
  const offers = [
    { command: 'touch a', offered: true },
    { command: 'touch a | cat && tail log', offered: true },
    { command: `sh -c 'whoami'`, offered: false },
    { command: 'touch a | sh', offered: false },
    { command: 'touch a > b', offered: false },
    { command: './s.sh', offered: false },
    { command: 'sed -n 1p log', offered: false },
    { command: 'cd sub && touch a', offered: false },
  ];
  for (const { command, offered } of offers) {
    test(`T9: ${command}: ${offered ? 'offered' : 'not offered'}`, async () => {
      const { answered, asked } = world();
      await answered(command, 'deny');
      assert.equal(asked[0]?.allowedDecisions.includes('allow-always'), offered);
    });
  }

  test('not where every command is asked for: it would change nothing', async () => {
    const { answered, asked } = world({ rule: { ask: 'always' } });
    await answered('touch a', 'deny');
    assert.deepEqual(asked[0]?.allowedDecisions, ['allow-once', 'deny']);
  });

  test('T9: keeps the executable and the very words; those then run without a question, others ask again', async () => {
    const { answered, authorise, asked, stored } = world();
    const first = await answered('touch a', 'allow-always');
    assert.ok(first.allowed && first.by === 'approval');
    const entry = stored().agents.anna.allowlist.at(-1);
    assert.deepEqual(
      [entry.pattern, entry.argvHash, entry.source],
      ['/usr/bin/touch', '["touch","a"]', 'allow-always'],
    );
    const again = await authorise(`touch 'a'`);
    assert.ok(again.allowed && again.by === 'allowlist' && again.plan.kind === 'argv');
    assert.equal(asked.length, 1);
    await answered('touch b', 'deny');
    assert.equal(asked.length, 2);
  });

  test('K-01: a shell cannot be approved for always, so the next one asks again', async () => {
    const { answered, approvals, asked, stored } = world({ allow: ['echo', 'cat'] });
    const first = await answered(`sh -c 'whoami'`, 'allow-once', {
      meanwhile: () =>
        assert.throws(() => approvals.resolve(asked[0]!.id, 'allow-always', 'anna'), { code: 'REQUEST_INVALID' }),
    });
    assert.ok(first.allowed);
    await answered(`sh -c 'touch P'`, 'deny');
    assert.equal(asked.length, 2);
    assert.equal(stored().agents.anna.allowlist.length, 2);
  });

  test('a yes that cannot be kept still counts once, and the audit says so', async () => {
    const { answered, audited } = world({
      file: { version: 1, agents: { anna: { allowlist: Array(1_000).fill({ pattern: 'echo' }) } } },
    });
    assert.ok((await answered('touch a', 'allow-always')).allowed);
    assert.deepEqual(
      audited.map(({ type }) => type),
      ['approval', 'approval-not-kept'],
    );
  });
});

describe('when nobody answers', () => {
  const cases = [
    { fallback: undefined, command: 'touch a', expect: 'refused' },
    { fallback: 'deny', command: 'echo a', expect: 'refused' },
    { fallback: 'allowlist', command: 'touch a', expect: 'refused' },
    { fallback: 'allowlist', command: 'echo a', expect: 'config argv' },
    { fallback: 'full', command: 'touch a', expect: 'config shell' },
    { fallback: 'full', command: `sh -c 'touch a'`, expect: 'refused' },
    { fallback: 'full', command: 'touch a | sh', expect: 'refused' },
    { fallback: 'full', command: 'touch $(id)', expect: 'refused' },
    { fallback: 'full', command: './s.sh', expect: 'refused' },
  ] as const;
  for (const { fallback, command, expect } of cases) {
    test(`T9: askFallback ${fallback ?? 'absent'}: ${command}: ${expect}`, async () => {
      const rule = { ask: 'always', ...(fallback === undefined ? {} : { askFallback: fallback }) } as const;
      const verdict = await world({ rule }).answered(command, 'nobody');
      assert.equal(verdict.allowed ? `${verdict.by} ${verdict.plan.kind}` : 'refused', expect);
    });
  }

  test('what changed meanwhile does not run by a fallback either', async () => {
    const { answered, files } = world({ rule: { ask: 'always', askFallback: 'full' } });
    assert.ok(!(await answered('touch a', 'nobody', { meanwhile: () => files.set('/usr/bin/touch', 'x') })).allowed);
  });
});
