import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { ModelRequest, ToolSpec } from '#contract';
import type { AssistantMessage, ToolResultMessage, UserContent, UserMessage } from '#domain';
import { CallIds } from './call-ids.ts';
import { isOwn, type PromptFacts, type PromptRules } from './wire-family.ts';

type SdkMessage<R extends LanguageModelV4Message['role']> = Extract<LanguageModelV4Message, { role: R }>;
type UserPart = SdkMessage<'user'>['content'][number];
type AssistantPart = SdkMessage<'assistant'>['content'][number];
type ToolPart = SdkMessage<'tool'>['content'][number];

/** A conversation as the SDK takes it. A pure function: the same messages give the same bytes, so that prompt caches hit. */
export function toPrompt(
  request: ModelRequest,
  rules: PromptRules,
): { readonly prompt: LanguageModelV4Prompt; readonly facts: PromptFacts } {
  const ids = new CallIds();
  const seesImages = request.model.input.includes('image');
  const prompt: LanguageModelV4Prompt = [];
  if (request.system !== '') prompt.push({ role: 'system', content: request.system.toWellFormed() });
  const lastUser = request.messages.findLastIndex((message) => message.role === 'user');
  let waitingImages: UserContent[] = [];
  const showImages = () => {
    if (waitingImages.length > 0) prompt.push(imagesOfResults(waitingImages));
    waitingImages = [];
  };
  for (const [i, message] of request.messages.entries()) {
    if (message.role === 'toolResult') {
      const apart = rules.resultImages === 'after' || !seesImages;
      if (apart && seesImages) waitingImages.push(...message.content.filter((block) => block.type === 'image'));
      addResult(prompt, toolPart(message, ids.of(message.toolCallId), apart ? 'text' : 'content'));
      continue;
    }
    showImages();
    if (message.role === 'user') prompt.push(userMessage(message, seesImages));
    else {
      const thinks = isOwn(message, request) && (rules.thinking === 'signed' || i > lastUser);
      const content = assistantParts(message, rules, ids, isOwn(message, request), thinks);
      if (content.length > 0) prompt.push({ role: 'assistant', content });
    }
  }
  showImages();
  if (rules.cacheMark) mark(prompt, rules.cacheMark);
  return { prompt, facts: { chainWithoutThinking: isChainWithoutThinking(prompt) } };
}

export const toTools = (tools: readonly ToolSpec[]): LanguageModelV4FunctionTool[] =>
  tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    inputSchema: parameters as LanguageModelV4FunctionTool['inputSchema'],
  }));

function userMessage(message: UserMessage, seesImages: boolean): SdkMessage<'user'> {
  const blocks: readonly UserContent[] =
    typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content;
  const content = blocks.flatMap((block) => userParts(block, seesImages));
  // Providers refuse a message without content; an empty one still says that the person wrote.
  return { role: 'user', content: content.length > 0 ? content : [{ type: 'text', text: '(empty message)' }] };
}

function userParts(block: UserContent, seesImages: boolean): readonly UserPart[] {
  if (block.type === 'text') return block.text === '' ? [] : [{ type: 'text', text: block.text.toWellFormed() }];
  if (!seesImages) return [{ type: 'text', text: `[an image (${block.mimeType}) that this model cannot see]` }];
  return [{ type: 'file', mediaType: block.mimeType, data: { type: 'data', data: block.data } }];
}

const imagesOfResults = (images: readonly UserContent[]): SdkMessage<'user'> => ({
  role: 'user',
  content: [
    { type: 'text', text: 'The images that the tools above returned:' },
    ...images.flatMap((image) => userParts(image, true)),
  ],
});

function assistantParts(
  message: AssistantMessage,
  rules: PromptRules,
  ids: CallIds,
  own: boolean,
  thinks: boolean,
): AssistantPart[] {
  const parts: AssistantPart[] = [];
  for (const block of message.content) {
    if (block.type === 'thinking') {
      const signature = block.thinkingSignature;
      // Without its signature a provider refuses thinking, and with another one's it is wrong.
      if (!thinks || signature === undefined) continue;
      const providerOptions = rules.signature(block.redacted ? 'redacted' : 'thinking', signature);
      parts.push({ type: 'reasoning', text: block.thinking.toWellFormed(), providerOptions });
    } else if (block.type === 'text') {
      const signature = own ? block.textSignature : undefined;
      if (block.text === '' && signature === undefined) continue;
      parts.push({
        type: 'text',
        text: block.text.toWellFormed(),
        ...(signature === undefined ? {} : { providerOptions: rules.signature('text', signature) }),
      });
    } else {
      const signature = own ? block.thoughtSignature : undefined;
      parts.push({
        type: 'tool-call',
        toolCallId: ids.of(block.id),
        toolName: block.name,
        input: block.arguments,
        ...(signature === undefined ? {} : { providerOptions: rules.signature('call', signature) }),
      });
    }
  }
  // A message of nothing but thinking is no answer, and providers refuse it as the last one.
  return parts.some((part) => part.type !== 'reasoning') ? parts : [];
}

/** Results of one response go back together. */
function addResult(prompt: LanguageModelV4Prompt, part: ToolPart): void {
  const last = prompt.at(-1);
  if (last?.role === 'tool') last.content.push(part);
  else prompt.push({ role: 'tool', content: [part] });
}

function toolPart(message: ToolResultMessage, toolCallId: string, images: 'text' | 'content'): ToolPart {
  return { type: 'tool-result', toolCallId, toolName: message.toolName, output: resultOutput(message, images) };
}

function resultOutput(message: ToolResultMessage, images: 'text' | 'content'): LanguageModelV4ToolResultOutput {
  const shown = message.content.filter((block) => block.type === 'image');
  const said = message.content
    .flatMap((block) => (block.type === 'text' ? [block.text] : []))
    .join('\n')
    .toWellFormed();
  const text =
    said === '' ? (shown.length > 0 ? `(${shown.length} image${shown.length > 1 ? 's' : ''})` : '(no output)') : said;
  if (message.isError) return { type: 'error-text', value: text };
  if (images === 'text' || shown.length === 0) return { type: 'text', value: text };
  const files = shown.map((block) => ({
    type: 'file' as const,
    mediaType: block.mimeType,
    data: { type: 'data' as const, data: block.data },
  }));
  return { type: 'content', value: [{ type: 'text', text }, ...files] };
}

/** On the system text and on the two newest messages of the person's side: the older mark is what the last request wrote. */
function mark(prompt: LanguageModelV4Prompt, cacheMark: SharedV4ProviderOptions): void {
  let left = 2;
  for (let i = prompt.length - 1; i >= 0; i--) {
    const { role } = prompt[i]!;
    if (role === 'assistant' || (role !== 'system' && left-- <= 0)) continue;
    prompt[i] = { ...prompt[i]!, providerOptions: cacheMark };
  }
}

function isChainWithoutThinking(prompt: LanguageModelV4Prompt): boolean {
  if (prompt.at(-1)?.role !== 'tool') return false;
  const answer = prompt.findLast((message) => message.role === 'assistant');
  return answer?.role === 'assistant' && answer.content[0]?.type !== 'reasoning';
}
