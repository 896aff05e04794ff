// What every built-in tool promises the loop, whatever it does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import type { ToolResult } from '#contract';
import { InvalidArguments, textIn, type Workbench, workbench } from '../tools/workbench.ts';

type Arguments = Readonly<Record<string, unknown>>;

export type ToolUnderTest = {
  readonly name: string;
  /** Whether a second execution could change something again. */
  readonly effect: 'reads' | 'writes';
  /** Brings the workspace into the state that the calls need. */
  prepare(bench: Workbench): void;
  /** Calls that succeed. */
  readonly good: readonly Arguments[];
  /** Calls that the schema must stop. */
  readonly bad: readonly Arguments[];
  /** A call whose result would be huge without a bound. */
  readonly huge: Arguments;
  /** A call that waits until it is aborted; absent for a tool that never waits. */
  readonly endless?: Arguments;
};

const CONTENT_CHARACTERS_MAX = 250_000;
const DETAILS_CHARACTERS_MAX = 50_000;

export function toolConformance(under: ToolUnderTest): void {
  const { name } = under;

  const withBench = async (action: (bench: Workbench) => Promise<void>) => {
    const bench = await workbench();
    try {
      under.prepare(bench);
      await action(bench);
    } finally {
      await bench.close();
    }
  };

  test(`tool ${name}: describes itself so that every model family understands it, the same at every start`, () =>
    withBench(async (bench) => {
      const tool = bench.tools.get(name);
      assert.ok(tool);
      assert.match(tool.name, /^[a-z][a-z0-9_]{0,63}$/);
      assert.ok(tool.label.length > 0 && tool.label.length < 40);
      assert.ok(tool.description.length > 20 && tool.description.length < 1_000);
      assert.equal(tool.effect === 'reads', under.effect === 'reads');
      const schema = JSON.parse(JSON.stringify(tool.parameters));
      assert.equal(schema.type, 'object');
      assert.doesNotMatch(JSON.stringify(schema), /"(\$ref|oneOf|allOf|anyOf|not)"/);
      for (const [key, property] of Object.entries<Record<string, unknown>>(schema.properties)) {
        assert.equal(typeof property['type'], 'string', key);
        assert.ok(String(property['description'] ?? '').length > 5, `${key} has a description`);
      }
      const other = await workbench();
      assert.equal(JSON.stringify(other.tools.get(name)), JSON.stringify(tool));
      await other.close();
    }));

  for (const args of under.good) {
    test(`tool ${name}: ${JSON.stringify(args).slice(0, 80)} succeeds, and its result is plain, bounded JSON`, () =>
      withBench(async (bench) => {
        const result = await bench.call(name, args);
        assert.equal(result.outcome ?? 'ok', 'ok', textIn(result.content));
        assertResult(result);
      }));
  }

  for (const args of under.bad) {
    test(`tool ${name}: ${JSON.stringify(args).slice(0, 80)} is stopped by its schema`, () =>
      withBench(async (bench) => {
        await assert.rejects(bench.call(name, args), InvalidArguments);
        assert.equal(bench.asked.length, 0);
      }));
  }

  test(`tool ${name}: takes whatever a model sends: it is valid, or stopped, and preparing it never throws`, () =>
    withBench(async (bench) => {
      const tool = bench.tools.get(name)!;
      const validator = Compile(tool.parameters);
      const keys = [
        ...Object.keys((tool.parameters as { properties?: object }).properties ?? {}),
        'oldText',
        'newText',
      ];
      const args = fc.dictionary(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 3 }), { noNullPrototype: true });
      fc.assert(fc.property(args, (given) => void validator.Check(tool.prepare?.(given) ?? given)));
    }));

  test(`tool ${name}: bounds its result`, () =>
    withBench(async (bench) => assertResult(await bench.call(name, under.huge))));

  test(`tool ${name}: with an aborted run leaves nothing running`, () =>
    withBench(async (bench) => {
      const signal = AbortSignal.abort(new Error('stopped'));
      const outcome = await bench.call(name, under.endless ?? under.good[0]!, { signal }).catch((error) => error);
      if (under.endless) assert.equal(outcome.message, 'stopped');
      assert.equal(bench.processes.count, 0);
    }));

  const { endless } = under;
  if (endless) {
    test(`tool ${name}: lets go when its run is aborted in the middle`, () =>
      withBench(async (bench) => {
        const abort = new AbortController();
        const call = bench.call(name, endless, { signal: abort.signal });
        while (bench.processes.count === 0) await new Promise(setImmediate);
        abort.abort(new Error('stopped'));
        await assert.rejects(call, /stopped/);
        assert.equal(bench.processes.count, 0);
      }));
  }
}

function assertResult(result: ToolResult): void {
  assert.deepEqual(JSON.parse(JSON.stringify(result)), result, 'nothing is lost on its way through JSON');
  assert.ok(result.content.length > 0);
  for (const block of result.content) {
    if (block.type === 'text') assert.ok(block.text.length > 0 && block.text.isWellFormed());
    else assert.match(block.mimeType, /^image\//);
  }
  assert.ok(textIn(result.content).length <= CONTENT_CHARACTERS_MAX);
  assert.ok(JSON.stringify(result.details ?? null).length <= DETAILS_CHARACTERS_MAX);
}
