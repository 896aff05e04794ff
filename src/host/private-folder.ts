import { accessSync, chmodSync, constants, lstatSync, mkdirSync } from 'node:fs';
import { GatewayError, messageOf } from '#base';

const MODE = 0o700;

/**
 * Makes sure that a folder exists, is ours, is writable and that nobody else can look into it.
 * @throws {GatewayError} `STATE_UNWRITABLE` in one line, with what to do
 */
export function ensurePrivateFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: MODE });
    const found = lstatSync(path);
    if (!found.isDirectory() && !found.isSymbolicLink()) throw new Error('it is not a folder');
    const owner = process.getuid?.();
    if (owner !== undefined && owner !== 0 && found.uid !== owner) throw new Error('it belongs to another user');
    if (found.isDirectory() && (found.mode & 0o077) !== 0) chmodSync(path, MODE);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new GatewayError('STATE_UNWRITABLE', `The folder ${path} cannot be used (${messageOf(cause)})`, {
      next: 'Make it yours and writable, or choose another one with REINS_STATE_DIR.',
      cause,
    });
  }
}
