import { realpathSync } from 'node:fs';
import { GatewayError } from '#base';
import { writeFileAtomicSync } from '#host';
import { checkConfigText, hashOf, type LoadedConfig, readConfigText } from './load.ts';
import { codeOf } from './owned-file.ts';
import type { Environment } from './substitute.ts';

/**
 * Puts a whole new text in place of the owner's file, 0600, after looking whether it is a config and whether the file is still the one
 * that was edited. All in one step of this process, so that of two writers the second sees what the first did.
 * @param expectedHash `LoadedConfig.hash` of what was edited; empty for a file that did not exist
 * @throws {GatewayError} `CONFIG_CHANGED` somebody else wrote it meanwhile; `CONFIG_INVALID`, `CONFIG_UNREADABLE` as by `loadConfig`;
 *   `STATE_UNWRITABLE`
 */
export function writeConfig(options: {
  readonly file: string;
  readonly text: string;
  readonly expectedHash: string;
  readonly env: Environment;
}): LoadedConfig {
  const { file, text, expectedHash, env } = options;
  const checked = checkConfigText(text, { file, env });
  if (hashOf(readConfigText(file)) !== expectedHash) {
    throw new GatewayError('CONFIG_CHANGED', `${file} was changed by someone else since it was read`, {
      next: 'Read it again and repeat the change.',
    });
  }
  try {
    // Through a link, so that the link stays one.
    writeFileAtomicSync(expectedHash === '' ? file : realpathSync.native(file), text, { mode: 0o600 });
  } catch (cause) {
    throw new GatewayError('STATE_UNWRITABLE', `${file} cannot be written (${codeOf(cause)})`, {
      next: 'Check who owns the folder and how much space is left.',
      cause,
    });
  }
  return checked;
}
