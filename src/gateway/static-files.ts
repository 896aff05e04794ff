import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join, relative } from 'node:path';
import { sendText } from './http-answers.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
/**
 * The page talks to the gateway that served it, and to nothing else: a script that got in could carry nothing out.
 * @param host checked by the guard: a name of ours, plainly written. Named because not every browser counts ws: as 'self'.
 */
const contentPolicy = (host: string): string =>
  [
    ...["default-src 'self'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:"],
    `connect-src 'self' ws://${host} wss://${host}`,
    ...["object-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; ');
const FILES_MAX = 500;

type Page = { readonly bytes: Buffer; readonly type: string; readonly tag: string; readonly isHashed: boolean };

/** The built web chat. Only files that were there when the folder was first listed are served, by their listed names. */
export class StaticFiles {
  readonly #folder: string;
  #names: Promise<ReadonlySet<string>> | undefined;
  readonly #pages = new Map<string, Page>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Client routes get the page itself. */
  async serve(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#names ??= listed(this.#folder);
    const names = await this.#names;
    if (!names.has('index.html')) {
      // Looked for again next time: the build may be under way.
      this.#names = undefined;
      return sendText(response, 503, 'The web chat is not built. Run: npm run build\n');
    }
    const name = path.replace(/^\/+/, '');
    const isFile = names.has(name);
    if (!isFile && extname(name) !== '') return sendText(response, 404, 'Not Found');
    const page = await this.#page(isFile ? name : 'index.html');
    const headers = {
      ETag: page.tag,
      'Cache-Control': page.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
      'Content-Security-Policy': contentPolicy(request.headers.host ?? ''),
    };
    if (request.headers['if-none-match'] === page.tag) {
      response.writeHead(304, headers);
      response.end();
      return;
    }
    response.writeHead(200, { ...headers, 'Content-Type': page.type, 'Content-Length': page.bytes.length });
    response.end(request.method === 'HEAD' ? undefined : page.bytes);
  }

  async #page(name: string): Promise<Page> {
    const known = this.#pages.get(name);
    if (known) return known;
    const bytes = await readFile(join(this.#folder, name));
    const page = {
      bytes,
      type: TYPES[extname(name)] ?? 'application/octet-stream',
      tag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
      isHashed: name.startsWith('assets/'),
    };
    // The page itself is read anew, so that a fresh build shows without a restart.
    if (page.isHashed) this.#pages.set(name, page);
    return page;
  }
}

async function listed(folder: string): Promise<ReadonlySet<string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).slice(0, FILES_MAX);
  return new Set(files.map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/')));
}
