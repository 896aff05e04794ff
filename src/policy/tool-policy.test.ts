import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowedTools, decideTool, type ToolFacts, type ToolRules } from './tool-policy.ts';

const scope = (rules: Partial<ToolRules>): ToolRules => ({ where: 'tools', alsoAllow: [], deny: [], ...rules });

type Case = {
  readonly name: string;
  readonly scopes: readonly Partial<ToolRules>[];
  readonly tool: string;
  readonly facts?: ToolFacts;
  readonly expect: string;
};
const OWNER = { owner: true };
const cases: readonly Case[] = [
  { name: 'no rule', scopes: [], tool: 'read', expect: 'yes: no rule' },
  { name: 'rules that say nothing', scopes: [{}], tool: 'read', expect: 'yes: tools: everything' },
  {
    name: 'deny wins over allow',
    scopes: [{ allow: ['exec'], deny: ['exec'] }],
    tool: 'exec',
    expect: 'no: tools.deny: exec',
  },
  {
    name: 'deny wins over alsoAllow',
    scopes: [{ alsoAllow: ['*'], deny: ['group:runtime'] }],
    tool: 'process',
    expect: 'no: tools.deny: group:runtime',
  },
  {
    name: 'allow is all there is',
    scopes: [{ allow: ['read'] }],
    tool: 'write',
    expect: 'no: tools.allow does not name it',
  },
  {
    name: 'an empty allow is nothing',
    scopes: [{ allow: [] }],
    tool: 'read',
    expect: 'no: tools.allow does not name it',
  },
  { name: 'a group', scopes: [{ allow: ['group:fs'] }], tool: 'apply_patch', expect: 'yes: tools.allow: group:fs' },
  { name: 'a wildcard', scopes: [{ deny: ['memory_*'] }], tool: 'memory_get', expect: 'no: tools.deny: memory_*' },
  { name: 'a wildcard inside', scopes: [{ deny: ['*_s*d'] }], tool: 'sessions_send', expect: 'no: tools.deny: *_s*d' },
  { name: 'group:all', scopes: [{ deny: ['group:all'] }], tool: 'whatever', expect: 'no: tools.deny: group:all' },
  {
    name: 'an unknown group names nothing',
    scopes: [{ allow: ['group:nope'] }],
    tool: 'read',
    expect: 'no: tools.allow does not name it',
  },
  {
    name: 'a group by a prototype name',
    scopes: [{ allow: ['group:constructor', 'constructor'] }],
    tool: 'read',
    expect: 'no: tools.allow does not name it',
  },
  { name: 'profile coding', scopes: [{ profile: 'coding' }], tool: 'exec', expect: 'yes: tools.profile: coding' },
  {
    name: 'profile messaging',
    scopes: [{ profile: 'messaging' }],
    tool: 'exec',
    expect: 'no: tools.profile: messaging',
  },
  {
    name: 'profile minimal',
    scopes: [{ profile: 'minimal' }],
    tool: 'session_status',
    expect: 'yes: tools.profile: minimal',
  },
  { name: 'profile full', scopes: [{ profile: 'full' }], tool: 'anything', expect: 'yes: tools.profile: full' },
  {
    name: 'alsoAllow adds to a profile',
    scopes: [{ profile: 'minimal', alsoAllow: ['web_*'] }],
    tool: 'web_fetch',
    expect: 'yes: tools.alsoAllow: web_*',
  },
  {
    name: 'allow narrows a profile',
    scopes: [{ profile: 'coding', allow: ['read'] }],
    tool: 'exec',
    expect: 'no: tools.allow does not name it',
  },
  {
    name: 'an agent cannot give back what the defaults take',
    scopes: [{ deny: ['exec'] }, { where: 'agent', allow: ['exec'] }],
    tool: 'exec',
    expect: 'no: tools.deny: exec',
  },
  {
    name: 'an agent takes more',
    scopes: [{}, { where: 'agent', deny: ['exec'] }],
    tool: 'exec',
    expect: 'no: agent.deny: exec',
  },
  { name: 'T4: deny meets an older name', scopes: [{ deny: ['exec'] }], tool: 'bash', expect: 'no: tools.deny: exec' },
  { name: 'T4: an older name in a rule', scopes: [{ deny: ['shell'] }], tool: 'exec', expect: 'no: tools.deny: shell' },
  {
    name: 'T4: letters count the same in either case',
    scopes: [{ deny: ['Foo_Bar'] }],
    tool: 'fOO_bAR',
    expect: 'no: tools.deny: Foo_Bar',
  },
  { name: 'T4: spaces around a name', scopes: [{ deny: [' exec '] }], tool: ' exec', expect: 'no: tools.deny:  exec ' },
  {
    name: 'group:plugins by list',
    scopes: [{ deny: ['group:plugins'] }],
    tool: 'read',
    facts: { ofPlugins: new Set(['Read']) },
    expect: 'no: tools.deny: group:plugins',
  },
  {
    name: 'group:plugins, not one of them',
    scopes: [{ deny: ['group:plugins'] }],
    tool: 'wiki',
    facts: { ofPlugins: new Set() },
    expect: 'yes: tools: everything',
  },
  {
    name: 'group:plugins without a list: whatever is not built in',
    scopes: [{ deny: ['group:plugins'] }],
    tool: 'wiki',
    expect: 'no: tools.deny: group:plugins',
  },
  {
    name: 'group:plugins without a list: not what is built in',
    scopes: [{ deny: ['group:plugins'] }],
    tool: 'read',
    expect: 'yes: tools: everything',
  },
  { name: 'T4: owner tools for others', scopes: [{ allow: ['*'] }], tool: 'cron', expect: 'no: for the operator only' },
  {
    name: 'T4: owner tools when it is not said who asks',
    scopes: [],
    tool: 'gateway',
    facts: {},
    expect: 'no: for the operator only',
  },
  { name: 'T4: owner tools for the operator', scopes: [], tool: 'gateway', facts: OWNER, expect: 'yes: no rule' },
  {
    name: 'T4: owner tools denied to the operator',
    scopes: [{ deny: ['group:automation'] }],
    tool: 'cron',
    facts: OWNER,
    expect: 'no: tools.deny: group:automation',
  },
];
for (const { name, scopes, tool, facts, expect } of cases) {
  test(`tools: ${name}`, () => {
    const { allowed, rule } = decideTool(tool, scopes.map(scope), facts);
    assert.equal(`${allowed ? 'yes' : 'no'}: ${rule}`, expect);
  });
}

test('T4: a run sees what is allowed, in the given order', () => {
  const tools = ['read', 'cron', 'exec', 'write'].map((name) => ({ name }));
  const names = (facts: ToolFacts) => allowedTools(tools, [scope({ deny: ['exec'] })], facts).map(({ name }) => name);
  assert.deepEqual(names({ owner: true }), ['read', 'cron', 'write']);
  assert.deepEqual(names({ owner: false }), ['read', 'write']);
});
