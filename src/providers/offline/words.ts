/** Everything the guide says, in the languages that it understands. */
export type Words = {
  readonly intro: string;
  readonly help: string;
  readonly unclear: (part: string) => string;
  readonly thoughts: { readonly calls: (count: number) => string; readonly answer: string; readonly lost: string };
  readonly read: (path: string, lines: number) => string;
  readonly emptyFile: (path: string) => string;
  readonly picture: (path: string) => string;
  readonly listed: (command: string) => string;
  readonly ran: (command: string) => string;
  readonly wrote: (path: string, characters: number) => string;
  readonly changed: (path: string) => string;
  readonly time: (now: string) => string;
  readonly timeOfMessage: (when: string) => string;
  readonly remembered: string;
  readonly rememberedAlready: string;
  readonly notRemembered: (why: string) => string;
  readonly recalled: string;
  readonly nothingRemembered: string;
  readonly denied: (what: string) => string;
  readonly failed: (what: string) => string;
  readonly missing: (what: string) => string;
  readonly shortened: (characters: number) => string;
  readonly several: string;
  readonly columns: readonly [string, string];
  readonly whats: {
    readonly read: (path: string) => string;
    readonly write: (path: string) => string;
    readonly edit: (path: string) => string;
    readonly exec: (command: string) => string;
    readonly remember: string;
  };
};

const KEYS = '`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, `DEEPSEEK_API_KEY`, `DASHSCOPE_API_KEY`';

const EN_EXAMPLES = [
  '- `list files and tell the time`',
  '- `write hello to notes.txt`',
  '- `read notes.txt`',
  '- `replace hello with goodbye in notes.txt`',
  '- ``run `uname -a` ``',
  '- `remember that I like short answers`, and later `what do you remember?`',
].join('\n');

const ZH_EXAMPLES = [
  '- `列出文件，现在几点`',
  '- `把 你好 写入 notes.txt`',
  '- `读取 notes.txt`',
  '- `把 notes.txt 里的 你好 改成 再见`',
  '- `运行 "uname -a"`',
  '- `记住 我喜欢简短的回答`，之后问 `你记得什么？`',
].join('\n');

export const WORDS: Readonly<Record<'en' | 'zh', Words>> = {
  en: {
    intro: `**No model is configured.** I am the offline guide that is built into Reins: a fixed program, not a language model, and nothing leaves this machine. For a real model set one of ${KEYS}, or run Ollama, and then restart Reins.`,
    help: `I understand a few plain requests and carry them out with the real tools:\n\n${EN_EXAMPLES}\n\nSeveral at once work too: \`read a.txt and b.txt\`.`,
    unclear: (part) => `I do not understand “${part}”: I know only a few fixed requests.`,
    thoughts: {
      calls: (count) =>
        count === 1 ? 'One tool can do this.' : `These ${count} calls do not need each other: I make them together.`,
      answer: 'The results are here; I put them into words.',
      lost: 'No rule of mine fits these words.',
    },
    read: (path, lines) => `\`${path}\` (${lines} line${lines === 1 ? '' : 's'}):`,
    emptyFile: (path) => `\`${path}\` is empty.`,
    picture: (path) => `\`${path}\` is a picture. I cannot look at it; a model that sees images can.`,
    listed: (command) => `The files (\`${command}\`):`,
    ran: (command) => `\`${command}\` printed:`,
    wrote: (path, characters) => `I wrote \`${path}\` (${characters} characters).`,
    changed: (path) => `I changed \`${path}\`.`,
    time: (now) => `It is **${now}**.`,
    timeOfMessage: (when) => `Your message came at **${when}**; I could not run \`date\`.`,
    remembered: 'I will remember this; it is in `MEMORY.md`:',
    rememberedAlready: 'That is in `MEMORY.md` already:',
    notRemembered: (why) => `I could not write it down: ${why}`,
    recalled: 'This is in `MEMORY.md`:',
    nothingRemembered: 'Nothing yet: there is no `MEMORY.md`, or it is empty. Say `remember that …`.',
    denied: (what) => `I was not allowed to ${what}:`,
    failed: (what) => `I tried to ${what}, and it did not work:`,
    missing: (what) => `I cannot ${what}: this agent does not have the tool for it.`,
    shortened: (characters) => `(${characters} more characters are not shown)`,
    several: 'Here is what came of it:',
    columns: ['What', 'Result'],
    whats: {
      read: (path) => `read \`${path}\``,
      write: (path) => `write \`${path}\``,
      edit: (path) => `change \`${path}\``,
      exec: (command) => `run \`${command}\``,
      remember: 'remember it in `MEMORY.md`',
    },
  },
  zh: {
    intro: `**还没有配置模型。** 我是 Reins 自带的离线向导：一个固定的程序，不是语言模型，任何内容都不会离开这台机器。要使用真正的模型，请设置 ${KEYS} 中的一个，或者运行 Ollama，然后重新启动 Reins。`,
    help: `我能听懂几种简单的请求，并用真正的工具完成：\n\n${ZH_EXAMPLES}\n\n也可以一次说几件事：\`读取 a.txt 和 b.txt\`。`,
    unclear: (part) => `我不明白“${part}”：我只懂几种固定的请求。`,
    thoughts: {
      calls: (count) => (count === 1 ? '一个工具就能完成。' : `这 ${count} 个调用互不依赖，一起进行。`),
      answer: '结果已经有了，整理成文字。',
      lost: '没有一条规则适合这句话。',
    },
    read: (path, lines) => `\`${path}\`（${lines} 行）：`,
    emptyFile: (path) => `\`${path}\` 是空的。`,
    picture: (path) => `\`${path}\` 是一张图片。我看不了图片；支持图像的模型可以。`,
    listed: (command) => `文件列表（\`${command}\`）：`,
    ran: (command) => `\`${command}\` 的输出：`,
    wrote: (path, characters) => `已写入 \`${path}\`（${characters} 个字符）。`,
    changed: (path) => `已修改 \`${path}\`。`,
    time: (now) => `现在是 **${now}**。`,
    timeOfMessage: (when) => `您的消息到达时是 **${when}**；我没能运行 \`date\`。`,
    remembered: '记住了，写在 `MEMORY.md` 里：',
    rememberedAlready: '`MEMORY.md` 里已经有了：',
    notRemembered: (why) => `没能记下来：${why}`,
    recalled: '`MEMORY.md` 里记着：',
    nothingRemembered: '还没有：`MEMORY.md` 不存在或者是空的。可以说 `记住 …`。',
    denied: (what) => `没有得到允许，不能${what}：`,
    failed: (what) => `试着${what}，但没有成功：`,
    missing: (what) => `我不能${what}：这个代理没有所需的工具。`,
    shortened: (characters) => `（还有 ${characters} 个字符没有显示）`,
    several: '结果如下：',
    columns: ['做了什么', '结果'],
    whats: {
      read: (path) => `读取 \`${path}\``,
      write: (path) => `写入 \`${path}\``,
      edit: (path) => `修改 \`${path}\``,
      exec: (command) => `运行 \`${command}\``,
      remember: '记到 `MEMORY.md`',
    },
  },
};
