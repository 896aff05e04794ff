import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '#base';

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  'X-Frame-Options': 'DENY',
};

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
 * The body of a request that was authenticated; the stream is given up at the bound, whatever its headers said.
 * @throws {GatewayError} `MESSAGE_TOO_LARGE`
 */
export async function readBody(request: IncomingMessage, bytesMax: number): Promise<string> {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > bytesMax) throw tooLarge(bytesMax);
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > bytesMax) throw tooLarge(bytesMax);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

const tooLarge = (bytesMax: number) =>
  new GatewayError('MESSAGE_TOO_LARGE', `The request body has more than ${bytesMax} bytes`);
