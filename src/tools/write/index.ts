import { Type } from 'typebox';
import type { Tool } from '#contract';
import { textResult } from '#contract';
import { openWorkspace } from '#host';

const CHARACTERS_MAX = 5_000_000;

export const write: Tool = {
  name: 'write',
  label: 'Write a file',
  description:
    'Writes a whole text file in the workspace; an existing file is replaced, missing folders are made. To change a part of a file use edit.',
  parameters: Type.Object({
    path: Type.String({ description: 'The file, relative to the workspace.' }),
    content: Type.String({ maxLength: CHARACTERS_MAX, description: 'The whole new content.' }),
  }),
  effect: 'writes',
  async execute({ path, content }, { workspace }) {
    const files = await openWorkspace(workspace);
    const bytes = Buffer.from(content as string);
    const { replaced } = await files.writeBytes(path as string, bytes);
    const name = files.relative(path as string);
    return textResult(`${replaced ? 'Replaced' : 'Created'} ${name} (${bytes.length} bytes).`, {
      path: name,
      bytes: bytes.length,
      replaced,
    });
  },
};
