// SPDX-License-Identifier: Apache-2.0
// Shared by all parts of the page: the document, elements, figures for people, the tip that
// follows the pointer. Text from the profile reaches the page through textContent alone; the page
// has no other way to make elements than el() and svg().
'use strict';

const doc = JSON.parse(document.getElementById('purlin-report').textContent);

// What the devices did over time; null where the profile kept no timeline.
const device_timeline = doc.timeline && doc.timeline.devices.length ? doc.timeline : null;

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'width%') node.style.width = `${Math.max(0, Math.min(100, value))}%`;
    else if (key === 'color') node.style.background = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== '') node.append(child);
  return node;
}

// Three significant digits, as the terminal has them.
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function ns(value) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size < 999.5) return `${value.toFixed(0)} ns`;
  if (size < 999.5e3) return `${digits(value / 1e3)} µs`;
  if (size < 999.5e6) return `${digits(value / 1e6)} ms`;
  return `${digits(value / 1e9)} s`;
}

function si(value, unit) {
  if (value === null || value === undefined) return '–';
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
  let prefix = 0;
  while (Math.abs(value) >= 999.5 && prefix < 6) value /= 1000, ++prefix;
  return `${digits(value)} ${prefixes[prefix]}${unit}`;
}

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(value) >= 1023.95 && unit < 4) value /= 1024, ++unit;
  return unit === 0 ? `${value} B` : `${value.toFixed(1)} ${units[unit]}`;
}

function count(value) {
  return value < 1e6 ? Math.round(value).toLocaleString('en-US') : si(value, '').trim();
}

// A regular English noun in the number that goes with the value.
function noun_for(value, noun) {
  if (value === 1) return noun;
  if (/[^aeiou]y$/.test(noun)) return `${noun.slice(0, -1)}ies`;
  return noun + (/(s|x|z|ch|sh)$/.test(noun) ? 'es' : 's');
}

function counted(value, noun) {
  return `${count(value)} ${noun_for(value, noun)}`;
}

const percent = (share) => (share === null || share === undefined ? '–' : `${(share * 100).toFixed(1)}%`);
const words = (identifier) => identifier.replaceAll('_', ' ');
const cause_words = (cause) => (cause === 'other' ? 'no cause found' : words(cause));
const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const OP_CLASSES = ['gemm', 'conv', 'attention', 'norm', 'softmax', 'elementwise', 'reduction',
                    'copy', 'layout', 'optimizer', 'embedding', 'communication', 'other'];
const class_color = (name) => `var(--c-${OP_CLASSES.includes(name) ? name : 'other'})`;

// Extents that were not recorded are null.
const dims = (list) => list ? list.slice(0, Math.max(1, list.findLastIndex((n) => n > 1) + 1)).join('×') : '?';
const launch_text = (launch) => `${dims(launch.grid)} / ${dims(launch.block)}`;

// A table from column descriptions [title, kind] and rows of cells; kind is 1 for figures, 'text'
// for sentences.
function table(columns, rows) {
  const cell = (tag, content, kind) =>
    el(tag, {class: kind === 1 ? 'num' : kind === 'text' ? 'wide-text' : null, scope: tag === 'th' ? 'col' : null}, content);
  return el('div', {class: 'wide'},
    el('table', null,
      el('thead', null, el('tr', null, columns.map(([title, kind]) => cell('th', title, kind)))),
      el('tbody', null, rows.map((row) =>
        el('tr', null, row.map((content, i) => cell('td', content, columns[i][1])))))));
}

function facts(pairs) {
  return el('dl', null, pairs.filter(([, value]) => value !== null && value !== '' && value !== undefined)
    .map(([key, value]) => [el('dt', null, key), el('dd', null, value)]));
}

const tip = el('div', {id: 'tip', role: 'status', hidden: true});

// Shows lines, the first one bold, beside a point of the window.
function show_tip(lines, x, y) {
  tip.replaceChildren(...lines.filter(Boolean).map((line, i) => el(i === 0 ? 'b' : 'div', null, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 16 + box.height > window.innerHeight ? Math.max(4, y - box.height - 10) : y + 16}px`;
}

function hide_tip() { tip.hidden = true; }

function section(id, title, ...children) {
  return el('section', {id, 'aria-label': title}, el('h2', null, title), children);
}
