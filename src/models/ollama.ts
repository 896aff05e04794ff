import { isRecord } from '#base';
import { OLLAMA } from './vendors.ts';

const PROBE_MS = 400;

/**
 * Whether an Ollama answers here, and its models. `OLLAMA_HOST` says where; else the loopback address. Never throws: no answer is
 * an answer.
 */
export async function findOllama(
  env: Readonly<Record<string, string | undefined>>,
  fetcher: typeof fetch = fetch,
): Promise<{ readonly baseUrl: string; readonly models: readonly string[] } | undefined> {
  const address = env['OLLAMA_HOST']?.trim() || `127.0.0.1:${OLLAMA.port}`;
  const origin = (/^https?:\/\//.test(address) ? address : `http://${address}`)
    .replace(/\/+$/, '')
    .replace('//0.0.0.0', '//127.0.0.1');
  try {
    const response = await fetcher(`${origin}/v1/models`, { signal: AbortSignal.timeout(PROBE_MS) });
    if (!response.ok) return undefined;
    const body: unknown = await response.json();
    if (!isRecord(body) || !Array.isArray(body['data'])) return undefined;
    const models = body['data'].flatMap((m: unknown) => (isRecord(m) && typeof m['id'] === 'string' ? [m['id']] : []));
    return { baseUrl: `${origin}/v1`, models };
  } catch {
    // Nothing listens, or it is not Ollama: both mean that there is none.
    return undefined;
  }
}
