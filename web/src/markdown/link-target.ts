const ALLOWED_SCHEMES = new Set(['http:', 'https:', 'mailto:']);

/**
 * The address a link may lead to, or undefined when it must stay text: only absolute http, https and mailto addresses
 * (security model T18). A relative address is refused too: in an answer it could only point into this page.
 */
export function linkTarget(href: string): string | undefined {
  // URL parsing drops tabs and line breaks and trims controls, exactly as a browser would before it follows the link.
  const url = URL.parse(href);
  return url !== null && ALLOWED_SCHEMES.has(url.protocol) ? url.href : undefined;
}
