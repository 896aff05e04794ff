import { effect, signal } from '@preact/signals';
import { keepTheme, keptTheme, type Theme } from './kept.ts';

export const theme = signal<Theme>(keptTheme());

/** Keeps the page in the chosen theme; `system` follows the operating system. */
export function startTheme(): void {
  effect(() => {
    if (theme.value === 'system') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = theme.value;
    keepTheme(theme.value);
  });
}

/** From whatever shows now to the other one; back to `system` when that shows the same. */
export function toggleTheme(): void {
  const systemDark = matchMedia('(prefers-color-scheme: dark)').matches;
  const showsDark = theme.value === 'dark' || (theme.value === 'system' && systemDark);
  const wanted = showsDark ? 'light' : 'dark';
  theme.value = (wanted === 'dark') === systemDark ? 'system' : wanted;
}
