import type { ImageBlock, Message, TextBlock } from './message.ts';

/** Line 1 of a transcript: the public session format, version 3. */
export type TranscriptHeader = {
  readonly type: 'session';
  readonly version: 3;
  /** The session id, which is also the file's name. */
  readonly id: string;
  readonly timestamp: string;
  readonly cwd: string;
  readonly parentSession?: string;
};

type EntryBase = { readonly id: string; readonly parentId: string | null; readonly timestamp: string };

export type MessageEntry = EntryBase & { readonly type: 'message'; readonly message: Message };
export type ModelChangeEntry = EntryBase & {
  readonly type: 'model_change';
  readonly provider: string;
  readonly modelId: string;
};
export type ThinkingChangeEntry = EntryBase & {
  readonly type: 'thinking_level_change';
  readonly thinkingLevel: string;
};
/** State that a model never sees. */
export type CustomEntry = EntryBase & { readonly type: 'custom'; readonly customType: string; readonly data?: unknown };
/** Goes to the model as a user message; made by the gateway, not by a person. */
export type CustomMessageEntry = EntryBase & {
  readonly type: 'custom_message';
  readonly customType: string;
  readonly content: string | readonly (TextBlock | ImageBlock)[];
  readonly display: boolean;
  readonly details?: unknown;
};
export type CompactionEntry = EntryBase & {
  readonly type: 'compaction';
  readonly summary: string;
  readonly firstKeptEntryId: string;
  readonly tokensBefore: number;
  readonly details?: unknown;
};
/** `branch_summary`, `label`, `session_info` and whatever a later version adds: kept as they are. */
export type OtherEntry = EntryBase & { readonly type: 'branch_summary' | 'label' | 'session_info' } & Readonly<
    Record<string, unknown>
  >;

export type TranscriptEntry =
  | MessageEntry
  | ModelChangeEntry
  | ThinkingChangeEntry
  | CustomEntry
  | CustomMessageEntry
  | CompactionEntry
  | OtherEntry;

type WithoutPlace<T> = T extends unknown ? Omit<T, 'id' | 'parentId' | 'timestamp'> : never;
/** An entry before the transcript gave it its id, parent and time. */
export type NewEntry = WithoutPlace<
  MessageEntry | ModelChangeEntry | ThinkingChangeEntry | CustomEntry | CustomMessageEntry | CompactionEntry
>;

/** Names of the `custom` and `custom_message` entries that Reins writes itself. */
export const ENTRY = {
  /** `custom` {runId, callId, name}: the call is about to have effects. Without a result after it, its outcome is unknown. */
  toolStart: 'reins:tool-start',
  /** `custom_message`: what the gateway tells the model beside the person's words. */
  runtimeContext: 'openclaw.runtime-context',
  /** `custom_message`: earlier messages that a stateless caller sent along. */
  history: 'reins:history',
  /** `custom_message`: told to the model when a run goes on after a restart, or when its last response was cut. */
  recovery: 'reins:recovery',
} as const;
