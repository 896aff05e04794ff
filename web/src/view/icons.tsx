import type { JSX } from 'preact';

const PATHS = {
  menu: 'M4 7h16M4 12h16M4 17h10',
  plus: 'M12 5v14M5 12h14',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14Zm5-2 4 4',
  send: 'M12 19V5m0 0-6 6m6-6 6 6',
  stop: 'M7 7h10v10H7z',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  close: 'M6 6l12 12M18 6 6 18',
  down: 'M12 5v14m0 0 6-6m-6 6-6-6',
  chevron: 'm9 6 6 6-6 6',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm0-13v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4M18.4 5.6 17 7M7 17l-1.4 1.4',
  moon: 'M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5Z',
  tool: 'm14.5 6.5 3-3a4.6 4.6 0 0 1-6 6l-6.6 6.6a1.9 1.9 0 0 0 2.7 2.7l6.6-6.6a4.6 4.6 0 0 0 6-6l-3 3-2.7-.1Z',
  shield: 'M12 3.5 5 6v5.5c0 4.2 2.9 7.6 7 9 4.1-1.4 7-4.8 7-9V6Z',
  warning:
    'M12 9v4m0 3.2v.1M10.4 4.6 2.9 17.6A1.8 1.8 0 0 0 4.5 20.4h15a1.8 1.8 0 0 0 1.6-2.8L13.6 4.6a1.8 1.8 0 0 0-3.2 0Z',
  thought: 'M9.5 18h5m-4 2.5h3M8.6 15.2a6 6 0 1 1 6.8 0c-.6.4-.9.9-.9 1.6v.2h-5v-.2c0-.7-.3-1.2-.9-1.6Z',
  leave: 'M14 5H6v14h8m-3-7h10m0 0-3.5-3.5M21 12l-3.5 3.5',
  info: 'M12 11v5m0-8.2v.1M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z',
} as const;

export type IconName = keyof typeof PATHS;

/** Decoration only: the element around it carries the name. */
export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="9" />
      <path d="M8 25C8 12 13 8 18.5 8a4.5 4.5 0 0 1 0 9H13M15 17c4 0 8 3 9 8" />
    </svg>
  );
}
