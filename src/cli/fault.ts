import { GatewayError, isGatewayError, messageOf, printable } from '#base';
import type { Terminal } from './terminal.ts';

/** What the process says on its way out. docs/cli.md has the same table. */
export const EXIT = { done: 0, failed: 1, usage: 2, noGateway: 3, interrupted: 130, terminated: 143 } as const;

/** The command line itself is wrong. */
export class UsageError extends Error {
  readonly next: string;

  constructor(message: string, next: string) {
    super(message);
    this.name = 'UsageError';
    this.next = next;
  }
}

export type Fault = { readonly code: string; readonly message: string; readonly next: string };

/** Anything thrown, as a person and a program are told of it. Text from outside cannot steer the terminal. */
export function faultOf(thrown: unknown): Fault {
  const shown = (text: string) => printable(text).trim();
  if (thrown instanceof UsageError) return { code: 'USAGE', message: shown(thrown.message), next: shown(thrown.next) };
  if (thrown instanceof GatewayError) {
    const next = thrown.next ?? (thrown.retryable ? 'Try again in a moment.' : `See docs/errors.md, ${thrown.code}.`);
    return { code: thrown.code, message: shown(thrown.message), next: shown(next) };
  }
  return {
    code: 'INTERNAL',
    message: shown(messageOf(thrown)),
    next: 'This is a fault of Reins: run it again with --debug and report what it prints.',
  };
}

export function exitCodeOf(thrown: unknown): number {
  if (thrown instanceof UsageError) return EXIT.usage;
  if (isGatewayError(thrown, 'GATEWAY_UNREACHABLE')) return EXIT.noGateway;
  if (isGatewayError(thrown, 'RUN_ABORTED')) return EXIT.interrupted;
  return EXIT.failed;
}

export type FaultForm = { readonly json: 'yes' | 'no'; readonly debug: 'yes' | 'no' };

/** One line on stderr, or with `--json` one document on stdout, so that a program gets a document in every case. */
export function reportFault(terminal: Terminal, thrown: unknown, form: FaultForm): void {
  const { code, message, next } = faultOf(thrown);
  if (form.json === 'yes') terminal.json({ ok: false, error: { code, message, next } });
  else terminal.note(faultLine(message, next));
  if (form.debug === 'yes' && thrown instanceof Error) terminal.note(stackOf(thrown));
}

/** `✗ what happened — what to do`. */
export function faultLine(message: string, next: string): string {
  return `✗ ${message.replace(/[.\s]+$/, '')} — ${next}`;
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by: ${stackOf(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}
