/** One thing that a person asked for. Paths, commands and texts are as they were written, without their quotes. */
export type Intent =
  | { readonly kind: 'read'; readonly path: string }
  | { readonly kind: 'list'; readonly path?: string }
  | { readonly kind: 'write'; readonly path: string; readonly content: string }
  | { readonly kind: 'edit'; readonly path: string; readonly oldText: string; readonly newText: string }
  | { readonly kind: 'run'; readonly command: string }
  | { readonly kind: 'remember'; readonly fact: string }
  | { readonly kind: 'recall' }
  | { readonly kind: 'time' }
  | { readonly kind: 'help' };

export type Understanding = {
  readonly language: 'en' | 'zh';
  readonly intents: readonly Intent[];
  /** Parts of the request that match nothing. */
  readonly unclear: readonly string[];
};

const INTENTS_MAX = 8;
const TEXT_MAX = 20_000;
const CONNECTORS_MAX = 24;

/** What a message asks for, by fixed patterns: no guessing, and the same words always mean the same. */
export function understand(message: string): Understanding {
  const language = /\p{Script=Han}/u.test(message) ? 'zh' : 'en';
  const masked = new MaskedText(message.slice(0, TEXT_MAX).trim());
  const { intents, unclear } = parseAll(masked.text, masked);
  const different = [...new Map(intents.map((intent) => [JSON.stringify(intent), intent])).values()];
  // A greeting before a request is only a greeting.
  const asked = different.length > 1 ? different.filter((intent) => intent.kind !== 'help') : different;
  return { language, intents: asked.slice(0, INTENTS_MAX), unclear: unclear.map((part) => masked.raw(part)) };
}

/** Quoted parts stand aside while the rest is looked at, so that what is in them is never taken for words of the request. */
class MaskedText {
  readonly text: string;
  readonly #quoted: { readonly raw: string; readonly inner: string }[] = [];

  constructor(message: string) {
    const quotes =
      /`([^`\n]+)`|"([^"]*)"|“([^”]*)”|「([^」]*)」|『([^』]*)』|《([^》]*)》|(?<=^|[\s(:：])'([^'\n]*)'(?=$|[\s,.;:!?)])/gu;
    this.text = message.replace(/[\ue000\ue001]/g, '').replace(quotes, (raw, ...groups) => {
      const inner = groups.slice(0, 7).find((group) => group !== undefined) as string;
      this.#quoted.push({ raw, inner });
      return `\ue000${this.#quoted.length - 1}\ue001`;
    });
  }

  /** As written, quotes and all. */
  raw(part: string): string {
    return part.replace(/\ue000(\d+)\ue001/g, (_, n) => this.#quoted[Number(n)]!.raw);
  }

  /** Without the quotes when the whole part is one quoted text, else as written. */
  inner(part: string): string {
    const alone = /^\ue000(\d+)\ue001$/.exec(part.trim());
    return alone ? this.#quoted[Number(alone[1])]!.inner : this.raw(part.trim());
  }

  isQuoted(part: string): boolean {
    return /^\ue000\d+\ue001$/.test(part.trim());
  }
}

type Parsed = { readonly intents: readonly Intent[]; readonly unclear: readonly string[] };

const CONNECTOR =
  /\s*(?:[;；\n]+|，\s*(?:然后|再|并且?)?|,\s*(?:and then|and|then)?(?=\s)|\s(?:and then|and also|and|then|&)\s|然后|以及|并且|和|、)\s*/gi;
function parseAll(text: string, masked: MaskedText): Parsed {
  // From the right: what is to be written or remembered may hold any words, and gets those that nothing else claims.
  const connectors = [...text.matchAll(CONNECTOR)].slice(0, CONNECTORS_MAX);
  for (const connector of connectors.toReversed()) {
    const tail = parseOne(text.slice(connector.index + connector[0].length), masked);
    if (!tail || tail.kind === 'help') continue;
    const head = parseAll(text.slice(0, connector.index), masked);
    if (head.unclear.length === 0) return { intents: [...head.intents, tail], unclear: [] };
  }
  const whole = parseOne(text, masked);
  if (whole) return { intents: [whole], unclear: [] };
  return parseParts(text.split(CONNECTOR), masked);
}

/** Part by part; a part that is only a name or a quoted command goes on with what the part before it did. */
function parseParts(parts: readonly string[], masked: MaskedText): Parsed {
  const intents: Intent[] = [];
  const unclear: string[] = [];
  let before: Intent | undefined;
  for (const part of parts.map((p) => p.trim()).filter((p) => p !== '')) {
    const intent = parseOne(part, masked) ?? continued(before, part, masked);
    if (intent) intents.push(intent);
    else unclear.push(part);
    before = intent;
  }
  return { intents, unclear };
}

function continued(before: Intent | undefined, part: string, masked: MaskedText): Intent | undefined {
  if (before?.kind === 'read' && isPath(part, masked)) return { kind: 'read', path: pathOf(part, masked) };
  if (before?.kind === 'run' && masked.isQuoted(part)) return { kind: 'run', command: masked.inner(part) };
  return undefined;
}

/** A quoted name, or one word without marks of a sentence. */
const P = String.raw`(\ue000\d+\ue001|[^\s\ue000,;:，；：、。"']+)`;
/** In Chinese nothing separates a name from what follows but its extension. */
const PZ = String.raw`(\ue000\d+\ue001|[^\s\ue000,;:，；：、。"']+?\.[A-Za-z0-9]{1,8})`;
const FILE = String.raw`(?:(?:a|an|the|my)\s+)?(?:new\s+)?(?:text\s+)?(?:file\s+)?(?:named\s+|called\s+)?`;
const pattern = (source: string): RegExp => new RegExp(source, 'isu');

type Rule = {
  readonly when: RegExp;
  readonly make: (groups: readonly string[], masked: MaskedText) => Intent | undefined;
};

const write = (path: string, content: string, masked: MaskedText): Intent | undefined =>
  isPath(path, masked) ? { kind: 'write', path: pathOf(path, masked), content: masked.inner(content) } : undefined;
const edit = (path: string, oldText: string, newText: string, masked: MaskedText): Intent | undefined =>
  isPath(path, masked)
    ? { kind: 'edit', path: pathOf(path, masked), oldText: masked.inner(oldText), newText: masked.inner(newText) }
    : undefined;
const read = (path: string, masked: MaskedText): Intent | undefined =>
  isPath(path, masked) ? { kind: 'read', path: pathOf(path, masked) } : undefined;
const HERE = /^(?:here|the|this|my|your|workspace|folder|directory)$/i;
const list = (path: string | undefined, masked: MaskedText): Intent =>
  path === undefined || HERE.test(path) ? { kind: 'list' } : { kind: 'list', path: pathOf(path, masked) };

/** In the order in which they are tried. */
const RULES: readonly Rule[] = [
  {
    when: /^(?:(?:what|which)\b.*\b(?:remember|memor(?:y|ies)|know about me|tell you|told you)\b|(?:show|read|list|open)\s+(?:me\s+)?(?:your|my|the)\s+memor(?:y|ies)|do you remember\b)|(?:记得|记住了?|记着|记了)(?:些|了)?(?:什么|哪些|啥)/isu,
    make: () => ({ kind: 'recall' }),
  },
  {
    when: /^(?:remember|note|memori[sz]e|keep in mind|don['’]t forget)(?:\s+that\b|\s+this\b)?\s*[:：,]?\s+(.+)$/isu,
    make: ([fact], masked) => ({ kind: 'remember', fact: masked.inner(withoutThanks(fact!)) }),
  },
  {
    when: /^(?:记住|记得|记一下|记下)[，,：:\s]*(.+)$/su,
    make: ([fact], masked) => ({ kind: 'remember', fact: masked.inner(withoutThanks(fact!)) }),
  },
  {
    when: pattern(String.raw`^(?:replace|change|swap)\s+(.+?)\s+(?:with|to|by|into)\s+(.+?)\s+in\s+${FILE}${P}$`),
    make: ([from, to, path], masked) => edit(path!, from!, to!, masked),
  },
  {
    when: pattern(String.raw`^in\s+${FILE}${P}\s*,?\s+(?:replace|change|swap)\s+(.+?)\s+(?:with|to|by|into)\s+(.+)$`),
    make: ([path, from, to], masked) => edit(path!, from!, to!, masked),
  },
  {
    when: pattern(
      String.raw`^(?:把|将)\s*${PZ}\s*(?:里面?的?|中的?)\s*(.+?)\s*(?:改成|换成|替换成|替换为|改为)\s*(.+)$`,
    ),
    make: ([path, from, to], masked) => edit(path!, from!, to!, masked),
  },
  {
    when: pattern(
      String.raw`^(?:create|make|write|add|save)\s+${FILE}${P}\s*(?:(?:with|containing|saying|that says)(?:\s+(?:the\s+)?(?:text|contents?|words?))?\s*[:：]?\s+|[:：]\s*)(.+)$`,
    ),
    make: ([path, content], masked) => write(path!, content!, masked),
  },
  {
    when: pattern(String.raw`^(?:write|save|put|store)\s+(.+?)\s+(?:to|into|in|as)\s+${FILE}${P}$`),
    make: ([content, path], masked) => write(path!, content!, masked),
  },
  {
    when: pattern(String.raw`^(?:把|将)\s*(.+?)\s*(?:写入|写到|写进|保存到|存到|存入)(?:文件)?\s*${PZ}(?:里面?|中)?$`),
    make: ([content, path], masked) => write(path!, content!, masked),
  },
  {
    when: pattern(String.raw`^(?:写入|写|保存)\s*(.+?)\s*(?:到|进)(?:文件)?\s*${PZ}(?:里面?|中)?$`),
    make: ([content, path], masked) => write(path!, content!, masked),
  },
  {
    when: pattern(
      String.raw`^(?:创建|新建|建立)(?:一个)?(?:文件)?\s*${PZ}\s*[，,：:]?\s*(?:内容)?(?:为|是)?\s*[：:]?\s*(.+)$`,
    ),
    make: ([path, content], masked) => write(path!, content!, masked),
  },
  {
    when: /^(?:(?:run|execute|exec)\s+(?:(?:the\s+)?(?:shell\s+)?command\s*)?|\$\s*|(?:运行|执行)(?:一下)?(?:命令)?)[:：]?\s*(.+)$/isu,
    make: ([part], masked) => {
      const command = commandOf(part!, masked);
      return command === undefined ? undefined : { kind: 'run', command };
    },
  },
  {
    when: pattern(String.raw`^(?:ls|dir)(?:\s+${P})?$`),
    make: ([path], masked) => list(path, masked),
  },
  {
    when: pattern(
      String.raw`^(?:list|show|display|see)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?(?:(?:the|my|your)\s+)?(?:files|folders?|directory|contents|workspace)(?:\s+(?:in|of|under|inside)\s+(?:the\s+|my\s+|your\s+|this\s+)?(?:folder\s+|directory\s+)?${P}(?:\s+(?:folder|directory))?|\s+here)?$`,
    ),
    make: ([path], masked) => list(path, masked),
  },
  {
    when: pattern(
      String.raw`^(?:what|which)\s+files\b(?:[^\ue000]*?\bin\s+(?:the\s+|my\s+|your\s+|this\s+)?(?:folder\s+|directory\s+)?${P})?[^\ue000]*$`,
    ),
    make: ([path], masked) => list(path, masked),
  },
  {
    when: pattern(
      String.raw`^(?:列出|显示|看看|查看)\s*([A-Za-z0-9_./-]+)\s*(?:目录|文件夹)?(?:里面?|中|下面?)(?:的|有哪些)?(?:所有)?(?:文件)?$`,
    ),
    make: ([path], masked) => list(path, masked),
  },
  {
    when: /^(?:列出|显示|看看|查看)?(?:一下)?(?:所有|当前|这里)?的?(?:有哪些|有什么)?(?:文件|目录)(?:列表)?$|有(?:哪些|什么)文件/u,
    make: () => ({ kind: 'list' }),
  },
  {
    when: /^(?:(?:what(?:['’]s| is)?|tell|show|give)\b[^\ue000]*\b(?:time|date)\b[^\ue000]*|what day is (?:it|today)[^\ue000]*|(?:the\s+)?(?:current\s+)?(?:time|date)(?:\s+now)?)$|几点|几号|现在(?:的)?时间|什么时间|今天(?:的)?日期|报时|告诉我时间/isu,
    make: () => ({ kind: 'time' }),
  },
  {
    when: /^(?:help|\/help|\?|hi|hello|hey|good (?:morning|afternoon|evening)|tour|start|what can you do.*|who are you.*|what are you.*|how do (?:i|you) .*|帮助|你好|您好|你能做(?:什么|些什么).*|你会(?:什么|做什么).*|你是谁.*|怎么用.*)$/isu,
    make: () => ({ kind: 'help' }),
  },
  {
    when: pattern(
      String.raw`^(?:read|show|open|cat|print|display|view)\s+(?:me\s+)?(?:(?:the\s+)?contents?\s+of\s+)?(?:(?:the|my)\s+)?(?:file\s+)?${P}(?:\s+file)?$`,
    ),
    make: ([path], masked) => read(path!, masked),
  },
  {
    when: pattern(
      String.raw`^what(?:['’]s|\s+is|\s+does)\s+(?:in(?:side)?\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:file\s+)?${P}(?:\s+(?:say|contain|hold))?$`,
    ),
    make: ([path], masked) => read(path!, masked),
  },
  {
    when: pattern(
      String.raw`^(?:读取|读|查看|打开|显示|看看|看)(?:一下)?(?:文件)?\s*(\ue000\d+\ue001|[^\s\ue000,;:，；：、。"']+?)(?:的内容|文件)?$`,
    ),
    make: ([path], masked) => read(path!, masked),
  },
];

const POLITE_START =
  /^(?:(?:hi|hello|hey)[,!，！]\s*|(?:please|pls|kindly|can you|could you|would you|will you|now|then|also|i want you to|i['’]d like you to|let['’]s)\b[\s,]*|(?:你好|您好)[，,！!]\s*|请你?|麻烦你?|帮我|能不能|可以)(?=\S)/iu;
const POLITE_END = /(?:[\s,]+(?:please|pls|for me|now|thanks|thank you)|[，,\s]*(?:谢谢|好吗|吗|吧))?[.!?。！？\s]*$/iu;

function parseOne(text: string, masked: MaskedText): Intent | undefined {
  let wish = text.trim();
  for (let i = 0; i < 3; i++) wish = wish.replace(POLITE_START, '');
  const plain = wish.replace(POLITE_END, '');
  // As it is first: what is to be written or remembered keeps its own full stop, while a name of a file has none.
  for (const candidate of plain === wish ? [wish] : [wish, plain]) {
    for (const { when, make } of RULES) {
      const match = when.exec(candidate);
      const intent = match && make(match.slice(1), masked);
      if (intent) return intent;
    }
  }
  return undefined;
}

const FILE_NAMES = /^(?:makefile|dockerfile|license|readme|changelog|gemfile|procfile)$/i;

function isPath(part: string, masked: MaskedText): boolean {
  const path = part.trim();
  if (masked.isQuoted(path)) return masked.inner(path) !== '' && !masked.inner(path).includes('\n');
  return /^[^\s\ue000]*[./][^\s\ue000]*[^\s\ue000.!?]$/u.test(path) || FILE_NAMES.test(path);
}

const pathOf = (part: string, masked: MaskedText): string => masked.inner(part);

const withoutThanks = (part: string): string => part.replace(/[\s,]+(?:please|thanks|thank you)[.!]*\s*$/i, '');

/** A quoted command may have words after it; one without quotes is all of the rest. Several quoted ones are several requests. */
function commandOf(part: string, masked: MaskedText): string | undefined {
  const command = withoutThanks(part.trim());
  if (/^\ue000\d+\ue001\s*(?:,|and|then|和|、|，)/iu.test(command)) return undefined;
  const quoted = /^(\ue000\d+\ue001)(?:\s+(?:now|for me|command))?[.!?。？]*$/iu.exec(command);
  return masked.inner(quoted?.[1] ?? command);
}
