// Writes docs/config.md from the schema: `node scripts/config-docs.ts`. A test fails while the page is not what this would write.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConfigKey, configKeys } from '#config';

const FILE = join(import.meta.dirname, '..', 'docs', 'config.md');

const INTRODUCTION = `# Configuration

<!-- Written by scripts/config-docs.ts from the schema in src/config. Change it there. -->

Reins reads \`~/.reins/reins.json\`, which is JSON5: comments, keys without quotes and trailing commas are fine. Everything has a default,
so no file is needed. \`REINS_STATE_DIR\` puts the state folder elsewhere, \`REINS_CONFIG\` the file. The gateway never writes the file by
itself; \`reins config set\` changes one value and keeps every other byte.

- A change counts as soon as the file is saved: for the next run, while the run under way goes on as it began.
- A file with a fault is not taken. What was last good stays in use, \`reins.json.last-good\` in the state folder keeps it, and the log and
  \`reins status\` name the file, the line and the column.
- A key that Reins does not know is ignored with a warning and the nearest name. Keys and sections of the public OpenClaw config that
  nothing in this version acts on are accepted; one line at the start names them.
- \`\${NAME}\` in a text is replaced from the environment; \`$\${NAME}\` is the text itself. A variable that is not set is a fault.
- A secret may be written as \`{ source: "env", id: "NAME" }\` or \`{ source: "file", id: "file-in-the-config-folder" }\`. It is read when
  it is needed, and never shown.
- \`{ $include: "file.json5" }\` stands for what is in a file of the config folder; with a list of files, later ones go over earlier ones,
  and keys beside \`$include\` over all of them.
- \`REINS_GATEWAY_PORT\` and \`REINS_GATEWAY_TOKEN\` win over the file.
`;

/** The page as it should be. */
export function configPage(): string {
  // What is in `agents.entries` is what is in `agents.list`.
  const keys = configKeys().filter((key) => !key.path.startsWith('agents.entries.'));
  const sections = keys.filter((key) => !/[.[]/.test(key.path));
  const inUse = sections.filter((key) => !key.isLater);
  const later = sections.filter((key) => key.isLater).map((key) => `\`${key.path}\``);
  const parts = inUse.filter((key) => key.children.length > 0).map((section) => sectionText(section, keys));
  return `${[
    INTRODUCTION,
    ...parts,
    `## Other sections\n\nAccepted, without effect in this version: ${later.join(', ')}.`,
  ].join('\n')}\n`;
}

function sectionText(section: ConfigKey, keys: readonly ConfigKey[]): string {
  const inside = keys.filter(
    (key) => key.path.startsWith(`${section.path}.`) || key.path.startsWith(`${section.path}[`),
  );
  const rows = inside.filter((key) => !key.isLater).map(rowText);
  const later = inside.filter((key) => key.isLater).map((key) => `\`${key.path}\``);
  const tail = later.length === 0 ? '' : `\nAccepted, without effect in this version: ${later.join(', ')}.\n`;
  return `## ${section.path}\n\n${section.description}\n\n| key | type | default | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n${tail}`;
}

function rowText(key: ConfigKey): string {
  const secret = key.isSecret ? ' Secret.' : '';
  const aliases = key.aliases.length > 0 ? ` Also \`${key.aliases.join('`, `')}\`.` : '';
  const cells = [`\`${key.path}\``, key.type, defaultText(key), `${key.description}${secret}${aliases}`];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function defaultText(key: ConfigKey): string {
  return key.default === undefined ? '' : `\`${JSON.stringify(key.default)}\``;
}

if (import.meta.main) writeFileSync(FILE, configPage());
