/** What a scripted model answers, in one neutral form for all three wire formats. Every field is optional. */
export type Reply = {
  /** Text; a list is one delta per element. */
  readonly text?: string | readonly string[];
  readonly thinking?: string | readonly string[];
  /** Anthropic's signature of the thinking, or Gemini's of the thought. */
  readonly thinkingSignature?: string;
  readonly toolCalls?: readonly ScriptedCall[];
  /**
   * Why the response ended. Neutral words are put in each format's own; any other string goes out as it is; `null` leaves it out.
   * By default `stop`, or `toolUse` when there are calls.
   */
  readonly finish?: 'stop' | 'toolUse' | 'length' | 'filtered' | (string & {}) | null;
  readonly usage?: ScriptedUsage;
  /** An HTTP error in the vendor's own envelope. */
  readonly error?: ScriptedError;
  /** An HTTP answer byte for byte; `body` that is not a string is sent as JSON. */
  readonly http?: {
    readonly status: number;
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
  };
  /** Resolves when the status line may be sent. */
  readonly before?: Promise<unknown>;
  /** After this many events the stream waits. */
  readonly pauses?: readonly { readonly afterEvents: number; readonly until: Promise<unknown> }[];
  /** Instead of events made from the fields above: the bytes of the body, each element in a TCP write of its own. */
  readonly raw?: string | Buffer | readonly (string | Buffer)[];
  /** A new TCP write begins at each of these byte offsets of the body. */
  readonly cutAt?: readonly number[];
  /** The body ends cleanly after this many bytes. */
  readonly endAt?: number;
  /** The connection is destroyed after this many bytes. */
  readonly resetAt?: number;
  /** `omit`: the chat format's closing `[DONE]` is not sent. */
  readonly done?: 'omit';
  /** A comment line is sent before each of these events (0 = the first). */
  readonly commentsBefore?: readonly number[];
  /** The response never begins, or begins and never ends. Lasts until the client or the server hangs up. */
  readonly hang?: 'before-headers' | 'before-end';
};

export type ScriptedCall = {
  readonly id?: string;
  readonly name: string;
  /** A string is sent as the raw text of the arguments, whatever it holds. */
  readonly arguments: unknown;
  /** Characters (code points) per delta; by default all in one. */
  readonly pieceLength?: number;
  /** `empty-strings`: later deltas repeat id and name as `""`, as some servers do. */
  readonly laterDeltas?: 'bare' | 'empty-strings';
  /** Gemini's signature on the call. */
  readonly signature?: string;
};

export type ScriptedUsage = {
  /** Prompt tokens in all, cached ones included. */
  readonly prompt: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly thinking?: number;
};

export type ScriptedError = {
  readonly status: number;
  readonly message?: string;
  readonly code?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export type WireFormat = 'openai-completions' | 'anthropic-messages' | 'google-generative-ai';

export const chunksOf = (text: string | readonly string[] | undefined): readonly string[] =>
  text === undefined ? [] : typeof text === 'string' ? [text] : text;

/** The text of a call's arguments. */
export const argumentsText = (call: ScriptedCall): string =>
  typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);

/** The arguments in the pieces that their deltas carry; at least one. */
export function argumentPieces(call: ScriptedCall): readonly string[] {
  const text = argumentsText(call);
  if (call.pieceLength === undefined) return [text];
  const characters = Array.from(text);
  const pieces: string[] = [];
  for (let i = 0; i < characters.length; i += call.pieceLength) {
    pieces.push(characters.slice(i, i + call.pieceLength).join(''));
  }
  return pieces.length > 0 ? pieces : [''];
}
