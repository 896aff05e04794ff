// Reads transcripts as a stranger would, by the public format alone, and says what is wrong with them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type StoredCall = {
  readonly type: string;
  readonly id: string;
  readonly text?: string;
  readonly arguments?: unknown;
};
export type StoredMessage = {
  readonly role: 'user' | 'assistant' | 'toolResult';
  readonly content: string | readonly StoredCall[];
  readonly runId?: string;
  readonly toolCallId?: string;
  readonly isError?: boolean;
  readonly stopReason?: string;
  readonly details?: { readonly recovered?: string };
};
export type StoredEntry = {
  readonly type: string;
  readonly id: string;
  readonly parentId?: string | null;
  readonly message?: StoredMessage;
};

export type TranscriptAudit = {
  /** In words; empty when all is well. */
  readonly problems: readonly string[];
  /** Final answers by run id, over all sessions. */
  readonly answers: ReadonlyMap<string, readonly string[]>;
  readonly calls: readonly AuditedCall[];
  /** Files with lines that could not be read and were put aside. */
  readonly setAside: readonly string[];
};

export type AuditedCall = {
  /** The arguments as JSON text. */
  readonly arguments: string;
  readonly outcome: 'ok' | 'failed' | 'unknown-outcome' | 'not-started';
  readonly resultText: string;
};

export function auditTranscripts(folder: string): TranscriptAudit {
  const problems: string[] = [];
  const answers = new Map<string, string[]>();
  const calls: AuditedCall[] = [];
  const files = existsSync(folder) ? readdirSync(folder).sort() : [];
  for (const file of files.filter((name) => name.endsWith('.jsonl'))) {
    const report = (what: string) => problems.push(`${file}: ${what}`);
    const entries = readEntries(join(folder, file), report);
    auditChain(entries, report);
    auditCalls(entries, report, calls);
    auditAnswers(entries, report, answers);
  }
  return { problems, answers, calls, setAside: files.filter((name) => name.includes('.damaged.')) };
}

/** All entries after the header, in the order of the file. */
export function readEntries(path: string, report: (what: string) => void): readonly StoredEntry[] {
  const text = readFileSync(path, 'utf8');
  if (text !== '' && !text.endsWith('\n')) report('the last line has no end');
  const lines = text.split('\n').slice(0, -1);
  const values = lines.flatMap((line, i) => {
    try {
      return [JSON.parse(line) as StoredEntry];
    } catch {
      report(`line ${i + 1} is not JSON`);
      return [];
    }
  });
  if (values[0]?.type !== 'session') report('the first line is no header');
  const entries = values.slice(1);
  if (entries.some((entry) => entry.type === 'session')) report('there is a second header');
  return entries;
}

function auditChain(entries: readonly StoredEntry[], report: (what: string) => void): void {
  const ids = new Set<string>();
  entries.forEach((entry, i) => {
    if (ids.has(entry.id)) report(`id ${entry.id} occurs twice`);
    ids.add(entry.id);
    if (entry.parentId !== (entries[i - 1]?.id ?? null)) report(`entry ${entry.id} does not follow the one before it`);
  });
}

const blocksOf = (message: StoredMessage): readonly StoredCall[] =>
  typeof message.content === 'string' ? [{ type: 'text', id: '', text: message.content }] : message.content;
const callsOf = (message: StoredMessage) => blocksOf(message).filter((block) => block.type === 'toolCall');
export const storedText = (message: StoredMessage): string =>
  blocksOf(message)
    .map((block) => block.text ?? '')
    .join('');

function auditCalls(entries: readonly StoredEntry[], report: (what: string) => void, calls: AuditedCall[]): void {
  let open = new Map<string, StoredCall>();
  for (const { message } of entries) {
    if (message?.role === 'assistant') {
      if (open.size > 0) report(`no result of ${[...open.keys()].join(', ')}`);
      open = new Map(callsOf(message).map((call) => [call.id, call]));
    }
    if (message?.role !== 'toolResult') continue;
    const call = open.get(message.toolCallId ?? '');
    if (!call) report(`the result of ${message.toolCallId} has no call, or is its second`);
    else calls.push({ arguments: JSON.stringify(call.arguments), ...outcomeOf(message) });
    open.delete(message.toolCallId ?? '');
  }
  if (open.size > 0) report(`no result of ${[...open.keys()].join(', ')} at the end`);
}

function outcomeOf(message: StoredMessage): Pick<AuditedCall, 'outcome' | 'resultText'> {
  const recovered = message.details?.recovered;
  const resultText = storedText(message);
  if (recovered === 'unknown-outcome' || recovered === 'not-started') return { outcome: recovered, resultText };
  return { outcome: message.isError ? 'failed' : 'ok', resultText };
}

/** A run's answer is the first message of the model after the person's words that asks for nothing more; there must be one. */
function auditAnswers(
  entries: readonly StoredEntry[],
  report: (what: string) => void,
  answers: Map<string, string[]>,
): void {
  /** Runs without an answer yet: more than one when messages were put into a run under way. */
  let waiting: string[] = [];
  let finals = 0;
  for (const { message } of entries) {
    if (message?.role === 'user') {
      if (message.runId === undefined) report('a message of a person has no run');
      else {
        if (answers.has(message.runId)) report(`the message of ${message.runId} is there twice`);
        answers.set(message.runId, []);
        waiting.push(message.runId);
      }
      finals = 0;
    }
    if (message?.role !== 'assistant' || callsOf(message).length > 0) continue;
    if (++finals > 1) report('two answers follow one message');
    if (message.stopReason !== 'stop') report(`an answer ended with ${message.stopReason}`);
    for (const run of waiting) answers.get(run)?.push(storedText(message));
    waiting = [];
  }
  for (const run of waiting) report(`${run} has no answer`);
}
