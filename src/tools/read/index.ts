import * as Type from 'typebox';
import type { Tool, ToolResult } from '#contract';
import { textResult } from '#contract';
import { openWorkspace } from '#host';
import { imageTypeOf } from './image-type.ts';
import { pageOf } from './page.ts';

const BYTES_MAX = 6 * 1024 * 1024;
const LINES_MAX = 2_000;
const CHARACTERS_MAX = 50_000;
const LINE_CHARACTERS_MAX = 4_000;
const BINARY_LOOKED_AT_BYTES = 8_000;

export const read: Tool = {
  name: 'read',
  label: 'Read a file',
  description:
    'Reads a file of the workspace. Text comes back as it is, at most 2000 lines or 50000 characters at a time: use offset and limit for more. Pictures (jpg, png, gif, webp) come back as images.',
  parameters: Type.Object({
    path: Type.String({ description: 'The file, relative to the workspace.' }),
    offset: Type.Optional(Type.Number({ minimum: 0, description: 'The first line to show, counted from 1.' })),
    limit: Type.Optional(Type.Number({ minimum: 0, description: 'How many lines to show.' })),
  }),
  effect: 'reads',
  execute: async (args, { workspace }) => await readFile(args as ReadArguments, workspace),
};

type ReadArguments = { readonly path: string; readonly offset?: number; readonly limit?: number };

async function readFile(
  { path, offset = 1, limit = LINES_MAX }: ReadArguments,
  workspace: string,
): Promise<ToolResult> {
  const files = await openWorkspace(workspace);
  const bytes = await files.readBytes(path, { bytesMax: BYTES_MAX });
  const name = files.relative(path);
  const mimeType = imageTypeOf(bytes);
  if (mimeType !== undefined) {
    return {
      content: [
        { type: 'text', text: `${name} (${mimeType}, ${bytes.length} bytes)` },
        { type: 'image', data: bytes.toString('base64'), mimeType },
      ],
      details: { path: name, bytes: bytes.length, mimeType },
    };
  }
  if (bytes.subarray(0, BINARY_LOOKED_AT_BYTES).includes(0)) {
    const text = `${name} is a binary file of ${bytes.length} bytes and no picture. Look at it with a command, such as file or xxd.`;
    return { ...textResult(text, { path: name, bytes: bytes.length }), outcome: 'failed' };
  }
  const page = pageOf(textOf(bytes), Math.max(1, Math.floor(offset)), {
    linesMax: Math.min(Math.max(1, Math.floor(limit)), LINES_MAX),
    charactersMax: CHARACTERS_MAX,
    lineCharactersMax: LINE_CHARACTERS_MAX,
  });
  const { text, ...place } = page;
  return textResult(text, { path: name, bytes: bytes.length, ...place });
}

/** Without the byte order mark: edit puts it back, and as text it is invisible. */
const textOf = (bytes: Buffer): string => bytes.toString('utf8').replace(/^\ufeff/, '');
