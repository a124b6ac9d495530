import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/pages.css';
import { connect } from './api/live';
import { App } from './app';
import { applySettings, language, theme } from './lib/settings';

const root = document.documentElement;
applySettings(root);
language.subscribe(() => applySettings(root));
theme.subscribe(() => applySettings(root));

const host = document.getElementById('app');
if (host) {
  host.textContent = '';
  render(<App />, host);
}
connect();
