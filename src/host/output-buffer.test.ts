import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { OutputBuffer } from './index.ts';

test('text that fits is whole, wherever the chunks were cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fc.integer({ min: 1, max: 5 }), (text, step) => {
      const buffer = new OutputBuffer({ charactersMax: 1_000 });
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += step) buffer.push('out', bytes.subarray(at, at + step));
      buffer.end();
      assert.equal(buffer.text(), bytes.toString());
      assert.equal(buffer.total, bytes.toString().length);
    }),
  );
});

test('two streams do not break each other’s characters', () => {
  const buffer = new OutputBuffer({ charactersMax: 100 });
  const euro = Buffer.from('€');
  buffer.push('out', euro.subarray(0, 1));
  buffer.push('err', Buffer.from('!'));
  buffer.push('out', euro.subarray(1));
  assert.equal(buffer.text(), '!€');
});

test('too much text keeps beginning and end, says how much is missing, and never holds more', () => {
  const buffer = new OutputBuffer({ charactersMax: 30 });
  for (let i = 0; i < 1_000; i++) buffer.push('out', Buffer.from(`${i % 10}`));
  assert.equal(buffer.text(), '0123456789\n[… 970 characters left out …]\n01234567890123456789');
  assert.equal(buffer.latest(5), '56789');
  assert.equal(buffer.latest(500), buffer.text());
});

test('what came since a position is that and no more', () => {
  const buffer = new OutputBuffer({ charactersMax: 30 });
  buffer.push('out', Buffer.from('0123456789ABCDEF'));
  assert.equal(buffer.since(12), 'CDEF');
  assert.equal(buffer.since(16), '');
  buffer.push('out', Buffer.from('x'.repeat(40)));
  assert.equal(buffer.since(buffer.total - 3), 'xxx');
  assert.equal(buffer.since(16), `\n[… 20 characters left out …]\n${'x'.repeat(20)}`);
});

test('a cut never leaves half a character', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 20 }),
      fc.integer({ min: 3, max: 40 }),
      (parts, max) => {
        const buffer = new OutputBuffer({ charactersMax: max });
        for (const part of parts) buffer.push('out', Buffer.from(part));
        buffer.end();
        assert.ok(buffer.text().isWellFormed() && buffer.latest(7).isWellFormed());
        assert.ok(buffer.text().length <= max + 60);
      },
    ),
  );
});
