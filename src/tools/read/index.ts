import { Type } from 'typebox';
import type { Tool } from '#contract';
import { textResult } from '#contract';
import { openWorkspace } from '#host';

const BYTES_MAX = 6 * 1024 * 1024;
const LINES_MAX = 2_000;
const CHARACTERS_MAX = 50_000;
const LINE_CHARACTERS_MAX = 4_000;

const SIGNATURES: readonly { readonly mimeType: string; readonly matches: (bytes: Buffer) => boolean }[] = [
  {
    mimeType: 'image/png',
    matches: (b) => b.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])),
  },
  { mimeType: 'image/jpeg', matches: (b) => b[0] === 0xff && b[1] === 0xd8 && b[2] === 0xff },
  { mimeType: 'image/gif', matches: (b) => b.subarray(0, 4).toString('latin1') === 'GIF8' },
  {
    mimeType: 'image/webp',
    matches: (b) => b.subarray(0, 4).toString('latin1') === 'RIFF' && b.subarray(8, 12).toString('latin1') === 'WEBP',
  },
];

export const read: Tool = {
  name: 'read',
  label: 'Read a file',
  description:
    'Reads a file of the workspace. Text comes back as it is, at most 2000 lines at a time: use offset and limit for more. Pictures (jpg, png, gif, webp) come back as images.',
  parameters: Type.Object({
    path: Type.String({ description: 'The file, relative to the workspace.' }),
    offset: Type.Optional(Type.Integer({ minimum: 1, description: 'The first line to show, counted from 1.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LINES_MAX, description: 'How many lines to show.' })),
  }),
  effect: 'reads',
  async execute({ path, offset, limit }, { workspace }) {
    const files = await openWorkspace(workspace);
    const bytes = await files.readBytes(path as string, { bytesMax: BYTES_MAX });
    const image = SIGNATURES.find(({ matches }) => matches(bytes));
    if (image) {
      const details = { path: files.relative(path as string), bytes: bytes.length, mimeType: image.mimeType };
      return { content: [{ type: 'image', data: bytes.toString('base64'), mimeType: image.mimeType }], details };
    }
    if (bytes.subarray(0, 8_000).includes(0)) {
      return {
        ...textResult(
          `${path} is a binary file of ${bytes.length} bytes. Look at it with a command, such as file or xxd.`,
        ),
        outcome: 'failed',
      };
    }
    const page = pageOf(
      bytes.toString('utf8'),
      (offset as number | undefined) ?? 1,
      (limit as number | undefined) ?? LINES_MAX,
    );
    return textResult(page.text, {
      path: files.relative(path as string),
      bytes: bytes.length,
      lines: page.lines,
      from: page.from,
      to: page.to,
    });
  },
};

/** A page of whole lines, within lines and characters; the last line says how to go on. */
function pageOf(text: string, offset: number, limit: number) {
  const lines = text.split('\n');
  if (lines.at(-1) === '' && lines.length > 1) lines.pop();
  if (text === '') return { text: '(The file is empty.)', lines: 0, from: 0, to: 0 };
  if (offset > lines.length) {
    return {
      text: `(The file has ${lines.length} lines; there is none from line ${offset} on.)`,
      lines: lines.length,
      from: 0,
      to: 0,
    };
  }
  const shown: string[] = [];
  let characters = 0;
  for (const line of lines.slice(offset - 1, offset - 1 + limit)) {
    const cut =
      line.length > LINE_CHARACTERS_MAX
        ? `${line.slice(0, LINE_CHARACTERS_MAX)} [${line.length - LINE_CHARACTERS_MAX} more characters in this line]`
        : line;
    characters += cut.length + 1;
    if (characters > CHARACTERS_MAX && shown.length > 0) break;
    shown.push(cut);
  }
  const to = offset - 1 + shown.length;
  const rest = lines.length - to;
  const note = rest > 0 ? `\n(${rest} more lines. Go on with offset ${to + 1}.)` : '';
  return { text: shown.join('\n') + note, lines: lines.length, from: offset, to };
}
