import { signal } from '@preact/signals';
import { render } from 'preact';
import { readAddress } from './state/address.ts';
import { keepToken } from './state/kept.ts';
import { startTheme } from './state/theme.ts';
import './styles/base.css';
import './styles/layout.css';
import './styles/markdown.css';
import './styles/transcript.css';
import './styles/tools.css';
import './styles/composer.css';
import { App } from './view/app.tsx';

// Before anything else runs: a token must not stay where it is shown, bookmarked or synchronised.
const facts = readAddress(location.href);
history.replaceState(null, '', facts.cleaned);
if (facts.token !== undefined) keepToken(facts.token);

startTheme();
render(<App notices={signal(facts.notices)} />, document.getElementById('app')!);
