import { Type } from 'typebox';
import { isGatewayError } from '#base';
import type { Tool } from '#contract';
import { textResult } from '#contract';
import { openWorkspace } from '#host';
import { applyEdits, type Edit } from './apply-edits.ts';

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
        newText: Type.String({ description: 'What takes its place.' }),
      }),
      { minItems: 1, maxItems: 100, description: 'The replacements.' },
    ),
  }),
  effect: 'writes',
  prepare(args) {
    // The older form names one replacement beside the path; some models send the list as JSON text.
    const { oldText, newText, edits, ...rest } = args as Record<string, unknown>;
    if (edits === undefined && typeof oldText === 'string') return { ...rest, edits: [{ oldText, newText }] };
    return { ...rest, edits: typeof edits === 'string' ? parsedList(edits) : edits };
  },
  async execute({ path, edits }, { workspace }) {
    const files = await openWorkspace(workspace);
    const bytes = await files.readBytes(path as string, { bytesMax: BYTES_MAX });
    const text = bytes.toString('utf8');
    if (!Buffer.from(text).equals(bytes)) {
      return {
        ...textResult(`${path} is not UTF-8 text; edit would change bytes that it cannot show.`),
        outcome: 'failed',
      };
    }
    const mark = text.startsWith(BOM) ? BOM : '';
    try {
      const edited = applyEdits(text.slice(mark.length), edits as readonly Edit[]);
      await files.writeBytes(path as string, Buffer.from(mark + edited.text));
      const name = files.relative(path as string);
      const count = edited.hunks.length;
      return textResult(`Changed ${name} in ${count} place${count === 1 ? '' : 's'}.`, {
        path: name,
        hunks: edited.hunks,
      });
    } catch (error) {
      if (!isGatewayError(error, 'EDIT_MISMATCH')) throw error;
      return { ...textResult(`${error.message}. ${error.next ?? ''}`), outcome: 'failed' };
    }
  },
};

function parsedList(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema check says what is wrong with it.
    return text;
  }
}
