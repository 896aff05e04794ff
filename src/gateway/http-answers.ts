import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '#base';

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  'X-Frame-Options': 'DENY',
};

const LINGER_MS = 500;

/** On every response, whoever writes it. */
export function setSecurityHeaders(response: ServerResponse): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    ...headers,
  });
  response.end(text);
}

export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

/** The error form of `/v1`. */
export function sendApiError(
  response: ServerResponse,
  status: number,
  message: string,
  type: 'invalid_request_error' | 'unauthorized' | 'rate_limit_error' | 'api_error',
  more: { readonly code?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): void {
  sendJson(
    response,
    status,
    { error: { message, type, ...(more.code === undefined ? {} : { code: more.code }) } },
    more.headers,
  );
}

/**
 * Answers before the body was read. What still comes of it is thrown away for a moment, or a caller in the middle of its body would see
 * a reset in place of the answer; then the connection ends.
 */
export function refuseUnread(request: IncomingMessage, response: ServerResponse, answer: () => void): void {
  if (hasBody(request)) {
    response.once('finish', () => {
      if (request.complete) return;
      const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
      request.once('close', () => clearTimeout(timer));
      request.resume();
    });
  }
  answer();
}

/** The method is wrong here; `allow` names those that are not. */
export function notAllowed(request: IncomingMessage, response: ServerResponse, allow: string): void {
  refuseUnread(request, response, () => sendText(response, 405, 'Method Not Allowed', { Allow: allow }));
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/**
 * The body of a request that was authenticated; past the bound, which is counted and not believed, no more of it is read.
 * @throws {GatewayError} `MESSAGE_TOO_LARGE`
 */
export async function readBody(request: IncomingMessage, bytesMax: number): Promise<string> {
  const tooLarge = () => new GatewayError('MESSAGE_TOO_LARGE', `The request body has more than ${bytesMax} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  // The socket must outlive the loop: the refusal is still to be sent on it.
  for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > bytesMax) throw tooLarge();
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
