import { chmodSync, linkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { GatewayError, isGatewayError, randomToken } from '#base';
import { ensurePrivateFolder } from '#host';
import { codeOf, readOwnedFile } from './owned-file.ts';

const BYTES_MAX = 4_096;

/**
 * The token that a first start makes when the config names none: 32 random bytes in a file of the state folder, 0600.
 * Two processes that start at once get the same one.
 * @throws {GatewayError} `STATE_UNWRITABLE`, or `FILE_REFUSED` when the file is not ours alone
 */
export function ensureGatewayToken(tokenFile: string): string {
  const before = readGatewayToken(tokenFile);
  if (before !== undefined) return before;
  ensurePrivateFolder(dirname(tokenFile));
  const beside = `${tokenFile}.${process.pid}.${randomToken(6)}.tmp`;
  try {
    writeFileSync(beside, `${randomToken(32)}\n`, { flag: 'wx', mode: 0o600 });
    // A link fails where the name is taken, and the file is whole from the first moment that it has its name.
    linkSync(beside, tokenFile);
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') {
      throw new GatewayError(
        'STATE_UNWRITABLE',
        `The gateway token cannot be kept in ${tokenFile} (${codeOf(cause)})`,
        {
          next: 'Check who owns the state folder.',
          cause,
        },
      );
    }
  } finally {
    rmSync(beside, { force: true });
  }
  const token = readGatewayToken(tokenFile);
  if (token === undefined)
    throw new GatewayError('STATE_UNWRITABLE', `${tokenFile} holds no token`, { next: 'Delete it.' });
  return token;
}

/** The token in the file; undefined when no start has made one. @throws {GatewayError} `FILE_REFUSED` */
export function readGatewayToken(tokenFile: string): string | undefined {
  try {
    const folder = dirname(tokenFile);
    const { path, text } = readOwnedFile({ name: tokenFile, from: folder, folder, bytesMax: BYTES_MAX });
    // A copy or a backup may have opened it to others; tightening is always right.
    chmodSync(path, 0o600);
    return text.trim() || undefined;
  } catch (error) {
    if (isGatewayError(error, 'FILE_NOT_FOUND')) return undefined;
    throw error;
  }
}
