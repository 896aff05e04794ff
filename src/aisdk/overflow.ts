/**
 * The words in which providers say that a request is longer than the model's window. Each line is a phrase seen in the wild; they are
 * looked for only in the provider's own error text, never in what a person wrote.
 */
const PHRASES: readonly RegExp[] = [
  /prompt is too long/i,
  /prompt too long/i,
  /context[_ ]length[_ ]exceeded/i,
  /context[_ ]window[_ ]exceed/i,
  /exceeds? (?:the |your |this |its )?(?:model's |available |maximum |max )*context (?:window|size|length|limit)/i,
  /input token count.{0,40}exceeds the maximum/i,
  /maximum prompt length/i,
  /maximum (?:model )?context length/i,
  /max(?:imum)? context length/i,
  /reduce the length of (?:the|your) (?:messages|prompt|input)/i,
  /greater than the context length/i,
  /longer than the (?:model's )?context/i,
  /context window exceeds limit/i,
  /exceed(?:s|ed)? (?:the )?context limit/i,
  /input is too long/i,
  /range of input length should be/i,
  /上下文.{0,12}(?:过长|超)|超[出过].{0,12}上下文|输入.{0,8}过长|超[出过].{0,10}最大.{0,6}长度/,
];
/** A bare limit counts only as a number of tokens: providers bound sizes of images and numbers of things in the same words. */
const BARE_LIMIT =
  /exceeds? the limit of \d{4,}(?!\d)(?!\s*(?:[km]?b\b|bytes|characters|pixels|images|messages|tools))/i;
const ABOUT_SOMETHING_ELSE = /\b(?:image|file|attachment|pdf|audio|video)s?\b/i;
/** Rate limits count tokens too; a smaller request would not be let through sooner. */
const RATE = /tokens? per (?:minute|hour|day)|per-minute|\bTPM\b|rate.?limit|quota|please wait|try again (?:later|in)/i;
/** With these the provider never got as far as the length of the prompt. */
const UNRELATED_STATUS = new Set([401, 402, 403, 404, 408, 429]);

/** Whether an error answer means "this conversation is too long for the model". `status` is absent inside a stream. */
export function isContextOverflow(status: number | undefined, text: string): boolean {
  if (status === 413) return true;
  if (status !== undefined && UNRELATED_STATUS.has(status)) return false;
  if (PHRASES.some((phrase) => phrase.test(text))) return true;
  if (ABOUT_SOMETHING_ELSE.test(text) || RATE.test(text)) return false;
  return BARE_LIMIT.test(text) || (status === 400 && /too many (?:input )?tokens/i.test(text));
}
