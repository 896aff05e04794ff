// One streamed turn, asked in the same way of the gateway and of the model itself.

/** Something that serves `POST /v1/chat/completions`. */
export type Target = { readonly url: string; readonly token: string; readonly model: string };

/** Times in milliseconds since the request was made. */
export type TurnTimes = { readonly firstText: number; readonly total: number };

const TURN_MS_MAX = 60_000;

/** @throws when the answer is not the model's, which would make the figures worthless */
export async function turn(target: Target, user: string, key?: string): Promise<TurnTimes> {
  const startedAt = performance.now();
  const response = await fetch(`${target.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${target.token}`,
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    body: JSON.stringify({
      model: target.model,
      stream: true,
      user,
      messages: [{ role: 'user', content: 'ping' }],
    }),
    signal: AbortSignal.timeout(TURN_MS_MAX),
  });
  if (!response.ok || !response.body)
    throw new Error(`status ${response.status}: ${(await response.text()).slice(0, 300)}`);
  let firstText: number | undefined;
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body) {
    text += decoder.decode(part, { stream: true });
    if (firstText === undefined && text.includes('pong')) firstText = performance.now() - startedAt;
  }
  const total = performance.now() - startedAt;
  if (firstText === undefined || !text.includes('[DONE]')) throw new Error(`no whole answer: ${text.slice(0, 300)}`);
  return { firstText, total };
}
