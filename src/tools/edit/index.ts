import * as Type from 'typebox';
import { GatewayError, isRecord } from '#base';
import type { Tool, ToolResult } from '#contract';
import { textResult } from '#contract';
import { openWorkspace } from '#host';
import { applyEdits, type Edit, type EditedText } from './apply-edits.ts';
import { unifiedDiff } from './unified-diff.ts';

const BYTES_MAX = 5 * 1024 * 1024;
const BOM = '\ufeff';

export const edit: Tool = {
  name: 'edit',
  label: 'Edit a file',
  description:
    'Replaces passages of a text file in the workspace. Each oldText must stand in the file exactly once and is replaced by its newText; all edits are made or none.',
  parameters: Type.Object({
    path: Type.String({ description: 'The file, relative to the workspace.' }),
    edits: Type.Array(
      Type.Object({
        oldText: Type.String({ description: 'A passage exactly as it is in the file, long enough to be there once.' }),
        newText: Type.String({ maxLength: BYTES_MAX, description: 'What takes its place.' }),
      }),
      { minItems: 1, maxItems: 100, description: 'The replacements.' },
    ),
  }),
  effect: 'writes',
  prepare(args) {
    const { oldText, newText, edits, ...rest } = args;
    // The older form names one replacement beside the path; some models send the list as JSON text, or one edit without a list.
    if (edits === undefined && typeof oldText === 'string') {
      // A missing newText must stay missing, so that the schema check finds it: taken for text it would be the word "undefined".
      return { ...rest, edits: [newText === undefined ? { oldText } : { oldText, newText }] };
    }
    const list = typeof edits === 'string' ? parsedList(edits) : edits;
    return { ...rest, edits: isRecord(list) ? [list] : list };
  },
  execute: async (args, { workspace }) => await editFile(args as EditArguments, workspace),
};

type EditArguments = { readonly path: string; readonly edits: readonly Edit[] };

async function editFile({ path, edits }: EditArguments, workspace: string): Promise<ToolResult> {
  const files = await openWorkspace(workspace);
  const name = files.relative(path);
  let before = '';
  let edited: EditedText | undefined;
  // Asked again when another call changed the file meanwhile: two edits of one turn must not undo each other.
  await files.updateBytes(path, { bytesMax: BYTES_MAX }, (bytes) => {
    const text = textOf(bytes, name);
    const mark = text.startsWith(BOM) ? BOM : '';
    before = text.slice(mark.length);
    edited = applyEdits(before, edits);
    return Buffer.from(mark + edited.text);
  });
  const replacements = edited?.replacements ?? [];
  const diff = unifiedDiff(name, before, replacements);
  const count = replacements.length;
  const firstChangedLine = before.slice(0, replacements[0]?.start ?? 0).split('\n').length;
  return textResult(`Changed ${name} in ${count} ${count === 1 ? 'place' : 'places'}.`, {
    path: name,
    diff,
    firstChangedLine,
  });
}

/** @throws {GatewayError} `EDIT_MISMATCH` when writing the text back would change bytes that it cannot show */
function textOf(bytes: Buffer, name: string): string {
  const text = bytes.toString('utf8');
  if (bytes.includes(0) || !Buffer.from(text).equals(bytes)) {
    throw new GatewayError(
      'EDIT_MISMATCH',
      `${name} is not UTF-8 text. Nothing was changed. Change it with a command.`,
    );
  }
  return text;
}

function parsedList(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema check says what is wrong with it.
    return text;
  }
}
