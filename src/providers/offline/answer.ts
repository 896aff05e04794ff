import { cutAtCharacter, isRecord } from '#base';
import type { ToolCallBlock } from '#domain';
import { type Done, type Exchange, resultText } from './exchange.ts';
import { factsIn, MEMORY_FILE, memoryIn } from './plan.ts';
import type { Intent, Understanding } from './understand.ts';
import { WORDS, type Words } from './words.ts';

const SHOWN_MAX = 4_000;
const CELL_MAX = 60;

/** One part of an answer: a sentence, and what it is about as it came from the tool. */
type Part = { readonly what: string; readonly sentence: string; readonly block?: string; readonly language?: string };

/** The answer in markdown, when there is nothing more to do. */
export function answerFor(exchange: Exchange, understanding: Understanding, missing: readonly Intent[]): string {
  const words = WORDS[understanding.language];
  const parts = [
    ...memoryParts(exchange, understanding.intents, words),
    ...exchange.rounds.flat().flatMap((done) => donePart(done, exchange, understanding.intents, words)),
    ...missing.map((intent) => missingPart(intent, exchange, words)),
  ];
  const paragraphs = parts.length > 1 ? severalParts(parts, words) : parts.map(onePart);
  for (const part of understanding.unclear) paragraphs.push(words.unclear(cutAtCharacter(part, 200)));
  const isLost = parts.length === 0 && understanding.unclear.length > 0;
  const isHelp = understanding.intents.some((intent) => intent.kind === 'help');
  if (isHelp || isLost || paragraphs.length === 0) paragraphs.push(words.help);
  // Said once in a conversation: first of all to someone who asks what this is, else after what they asked for.
  if (!exchange.isKnown) {
    if (parts.length === 0) paragraphs.unshift(words.intro);
    else paragraphs.push('---', words.intro);
  }
  return paragraphs.join('\n\n');
}

const onePart = ({ sentence, block, language }: Part): string =>
  block === undefined ? sentence : `${sentence}\n\n${fenced(block, language)}`;

function severalParts(parts: readonly Part[], words: Words): string[] {
  const rows = parts.map(({ what, sentence, block }) => `| ${cell(what)} | ${cell(firstLine(block) ?? sentence)} |`);
  const [left, right] = words.columns;
  const table = [`| ${left} | ${right} |`, '| --- | --- |', ...rows].join('\n');
  const long = parts.filter(({ block }) => block?.includes('\n') || (block?.length ?? 0) > CELL_MAX);
  return [words.several, table, ...long.map(onePart)];
}

const firstLine = (block: string | undefined): string | undefined => {
  const line = block?.split('\n').find((text) => text.trim() !== '');
  if (line === undefined) return undefined;
  const rest = block!.trim().includes('\n') || line.length > CELL_MAX;
  return rest ? `${cutAtCharacter(line, CELL_MAX)} …` : line;
};

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** A fence longer than any in the text, so that a file cannot end it. */
function fenced(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

function shortened(text: string, words: Words): string {
  if (text.length <= SHOWN_MAX) return text;
  const kept = cutAtCharacter(text, SHOWN_MAX);
  return `${kept}\n${words.shortened(text.length - kept.length)}`;
}

function donePart(
  { call, result }: Done,
  exchange: Exchange,
  intents: readonly Intent[],
  words: Words,
): readonly Part[] {
  // What was done with MEMORY.md is told elsewhere, unless it was asked for by its name.
  const isNamed = intents.some((intent) => 'path' in intent && intent.path === MEMORY_FILE);
  if (call.arguments['path'] === MEMORY_FILE && !isNamed) return [];
  const what = whatOf(call, words);
  const text = resultText(result);
  const isTime = call.arguments['command'] === 'date' && intents.some((intent) => intent.kind === 'time');
  if (result.isError) {
    const isDenied = (isRecord(result.details) && 'denied' in result.details) || /^not run\b/i.test(text);
    const sentence = isDenied ? words.denied(what) : words.failed(what);
    const fallback = isTime ? [timePart(exchange, words)] : [];
    return [{ what, sentence, block: shortened(text, words) }, ...fallback];
  }
  if (isTime) return [{ what, sentence: words.time(text.split('\n')[0] ?? '') }];
  const path = String(call.arguments['path'] ?? '');
  if (call.name === 'write')
    return [{ what, sentence: words.wrote(path, Array.from(String(call.arguments['content'] ?? '')).length) }];
  if (call.name === 'edit') return [{ what, sentence: words.changed(path) }];
  if (call.name === 'read') {
    if (result.content.some((block) => block.type === 'image')) return [{ what, sentence: words.picture(path) }];
    if (text === '' || text === '(The file is empty.)') return [{ what, sentence: words.emptyFile(path) }];
    const language = /\.([a-z0-9]{1,10})$/i.exec(path)?.[1]?.toLowerCase();
    const block = shortened(text, words);
    const sentence = words.read(path, text.split('\n').length);
    return [{ what, sentence, block, ...(language === undefined ? {} : { language }) }];
  }
  const command = String(call.arguments['command'] ?? call.name);
  const isList = intents.some((intent) => intent.kind === 'list') && /^ls(?: |$)/.test(command);
  return [{ what, sentence: (isList ? words.listed : words.ran)(command), block: shortened(text, words) }];
}

function whatOf(call: ToolCallBlock, words: Words): string {
  const path = String(call.arguments['path'] ?? '');
  if (call.name === 'read') return words.whats.read(path);
  if (call.name === 'write') return words.whats.write(path);
  if (call.name === 'edit') return words.whats.edit(path);
  return words.whats.exec(String(call.arguments['command'] ?? call.name));
}

function memoryParts(exchange: Exchange, intents: readonly Intent[], words: Words): readonly Part[] {
  const done = exchange.rounds.flat();
  const parts: Part[] = [];
  const ofMemory = done.filter(({ call }) => call.arguments['path'] === MEMORY_FILE);
  const read = ofMemory.find(({ call }) => call.name === 'read');
  const memory = memoryIn(done);
  const facts = factsIn(intents);
  if (read && facts.length > 0) {
    const added = ofMemory.findLast(({ call }) => call.name !== 'read');
    const what = words.whats.remember;
    const block = facts.map((fact) => `- ${fact}`).join('\n');
    const refusal = added?.result.isError ? added.result : memory === undefined ? read.result : undefined;
    if (refusal) parts.push({ what, sentence: words.notRemembered(resultText(refusal)) });
    else if (added) parts.push({ what, sentence: `${words.remembered}\n\n${block}` });
    else if (facts.every((fact) => memory?.text.split('\n').includes(`- ${fact}`)))
      parts.push({ what, sentence: `${words.rememberedAlready}\n\n${block}` });
    else parts.push({ what, sentence: words.missing(what) });
  }
  if (read && intents.some((intent) => intent.kind === 'recall')) {
    const what = words.whats.read(MEMORY_FILE);
    if (memory === undefined) parts.push({ what, sentence: words.failed(what), block: resultText(read.result) });
    else if (memory.text.trim() === '') parts.push({ what, sentence: words.nothingRemembered });
    else parts.push({ what, sentence: words.recalled, block: shortened(memory.text, words), language: 'md' });
  }
  return parts;
}

function missingPart(intent: Intent, exchange: Exchange, words: Words): Part {
  if (intent.kind === 'time') return timePart(exchange, words);
  const what = missingWhat(intent, words);
  return { what, sentence: words.missing(what) };
}

function missingWhat(intent: Intent, { whats }: Words): string {
  switch (intent.kind) {
    case 'read':
      return whats.read(intent.path);
    case 'write':
      return whats.write(intent.path);
    case 'edit':
      return whats.edit(intent.path);
    case 'run':
      return whats.exec(intent.command);
    case 'list':
      return whats.exec('ls');
    case 'remember':
      return whats.remember;
    default:
      return whats.read(MEMORY_FILE);
  }
}

const timePart = (exchange: Exchange, words: Words): Part => ({
  what: words.whats.exec('date'),
  sentence: words.timeOfMessage(new Date(exchange.saidAt).toUTCString()),
});
