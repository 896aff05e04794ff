import { readFileSync } from 'node:fs';
import { GatewayError, randomToken } from '#base';
import { writeFileAtomicSync } from '#host';

const TOKEN_BYTES = 32;
const TOKEN_CHARACTERS_MIN = 16;

/** The gateway's own token: made at the first start, then always the same. The file is private and holds nothing else. */
export function gatewayToken(file: string): string {
  const known = read(file);
  if (known !== undefined) return known;
  const token = randomToken(TOKEN_BYTES);
  writeFileAtomicSync(file, `${token}\n`, { mode: 0o600 });
  return token;
}

function read(file: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new GatewayError('STATE_UNWRITABLE', `The token file ${file} cannot be read`, { next: 'Check its owner and mode.', cause: error });
  }
  if (text.length >= TOKEN_CHARACTERS_MIN) return text;
  throw new GatewayError('STATE_UNWRITABLE', `The token in ${file} is damaged`, { next: 'Delete the file; a new token is made at the next start.' });
}
