import * as Type from 'typebox';
import type { Tool, ToolResult } from '#contract';
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
  execute: async (args, { workspace }) => await writeFile(args as WriteArguments, workspace),
};

type WriteArguments = { readonly path: string; readonly content: string };

async function writeFile({ path, content }: WriteArguments, workspace: string): Promise<ToolResult> {
  const files = await openWorkspace(workspace);
  const bytes = Buffer.from(content);
  const { replaced } = await files.writeBytes(path, bytes);
  const name = files.relative(path);
  const details = { path: name, bytes: bytes.length, replaced };
  return textResult(`${replaced ? 'Replaced' : 'Created'} ${name} (${bytes.length} bytes).`, details);
}
