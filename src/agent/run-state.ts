import {
  type AssistantMessage,
  addUsage,
  ENTRY,
  type NewEntry,
  NO_USAGE,
  type ToolCallBlock,
  type TranscriptEntry,
  textOf,
  toolCallsOf,
  type Usage,
} from '#domain';

/** How far a run got, by its transcript alone: the truth after a crash. */
export type RunState =
  | { readonly at: 'not-started' }
  | { readonly at: 'ended'; readonly texts: readonly string[]; readonly last: AssistantMessage; readonly turns: number }
  | { readonly at: 'under-way'; readonly turns: number; readonly texts: readonly string[]; readonly usage: Usage };

/** Looks for the run's message from the end of the branch. */
export function runStateOf(branch: readonly TranscriptEntry[], runId: string): RunState {
  const start = branch.findLastIndex(
    (e) => e.type === 'message' && e.message.role === 'user' && e.message.runId === runId,
  );
  if (start < 0) return { at: 'not-started' };
  const texts: string[] = [];
  let turns = 0;
  let usage = NO_USAGE;
  let last: AssistantMessage | undefined;
  for (const entry of branch.slice(start + 1)) {
    if (entry.type !== 'message' || entry.message.role !== 'assistant') continue;
    turns++;
    usage = addUsage(usage, entry.message.usage);
    last = entry.message;
    const text = textOf(entry.message);
    if (text !== '') texts.push(text);
    // The first message that asks for nothing more ended the run; what follows belongs to another.
    if (toolCallsOf(entry.message).length === 0) return { at: 'ended', texts, last, turns };
  }
  return { at: 'under-way', turns, texts, usage };
}

/** Calls of the newest model message that have no result yet. */
export function openCalls(
  branch: readonly TranscriptEntry[],
): readonly { readonly call: ToolCallBlock; readonly started: boolean }[] {
  const place = branch.findLastIndex((e) => e.type === 'message' && e.message.role === 'assistant');
  const asked = branch[place];
  if (asked?.type !== 'message' || asked.message.role !== 'assistant') return [];
  const answered = new Set<string>();
  const started = new Set<string>();
  for (const entry of branch.slice(place + 1)) {
    if (entry.type === 'message' && entry.message.role === 'toolResult') answered.add(entry.message.toolCallId);
    if (entry.type === 'custom' && entry.customType === ENTRY.toolStart)
      started.add((entry.data as { callId: string }).callId);
  }
  return toolCallsOf(asked.message)
    .filter((call) => !answered.has(call.id))
    .map((call) => ({ call, started: started.has(call.id) }));
}

/**
 * What to add before a run goes on after a restart: an honest result for each call without one, and a note for the model. Nothing is
 * run again: whether to do so is the model's decision, knowing what is known.
 */
export function recoveryEntries(branch: readonly TranscriptEntry[], now: number): readonly NewEntry[] {
  const entries: NewEntry[] = openCalls(branch).map(({ call, started }) => ({
    type: 'message',
    message: {
      role: 'toolResult',
      toolCallId: call.id,
      toolName: call.name,
      content: [{ type: 'text', text: started ? UNKNOWN_OUTCOME : NOT_STARTED }],
      details: { recovered: started ? 'unknown-outcome' : 'not-started' },
      isError: true,
      outcome: started ? 'failed' : 'aborted',
      timestamp: now,
    },
  }));
  entries.push({ type: 'custom_message', customType: ENTRY.recovery, content: RECOVERY_NOTE, display: false });
  return entries;
}

const UNKNOWN_OUTCOME =
  'Outcome unknown: the gateway stopped while this call was running, so it may or may not have taken effect. Check before doing it again.';
const NOT_STARTED = 'Not run: the gateway stopped before this call was started. Call it again if it is still needed.';
const RECOVERY_NOTE =
  'Note from the gateway: it was restarted in the middle of this answer. Results above are what is known. Go on from here; do not repeat finished steps.';
