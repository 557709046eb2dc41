// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes, on average and step by step.

const steps = (() => {
  const parts = [['kernel_ns', 'kernels', '--compute'], ['communication_ns', 'communication', '--communication'],
                 ['copy_ns', 'memcpy', '--copy'], ['set_ns', 'memset', '--set'], ['runtime_ns', 'runtime calls', '--runtime'],
                 ['data_loader_ns', 'data loader', '--loader'], ['cpu_ns', 'host code', '--host'], ['other_ns', 'other', '--idle']];
  const SHOWN = 60;

  function bar(step, longest) {
    const text = [`${step.name}: ${ns(step.duration_ns)}`, ...parts.filter(([key]) => step[key] > 0).map(([key, name]) => `${name} ${ns(step[key])} (${percent(step[key] / step.duration_ns)})`)];
    const row = el('div', {class: 'stack', role: 'img', 'aria-label': text.join('; '), 'width%': 100 * step.duration_ns / longest,
                           onpointermove: (event) => show_tip(text, event.clientX, event.clientY), onpointerleave: hide_tip},
      parts.map(([key, , color]) => step[key] > 0 ? el('i', {'width%': 100 * step[key] / step.duration_ns, color: `var(${color})`}) : null));
    return el('tr', null, el('td', {class: 'num'}, step.name), el('td', {class: 'num'}, ns(step.duration_ns)), el('td', {class: 'grow'}, row));
  }

  function render() {
    const data = device_timeline;
    if (!data || !data.steps.length) return null;
    const mean = data.mean_step, shown = data.steps.slice(0, SHOWN);
    const longest = Math.max(...shown.map((step) => step.duration_ns), mean ? mean.duration_ns : 0);
    const all = data.steps.length + (doc.page.steps_left_out || 0);
    return section('steps', 'Steps',
      mean ? el('div', {class: 'narrow'}, table([['where the step goes'], ['time', 1], ['share', 1]],
        [[mean.name || 'mean step', ns(mean.duration_ns), '100.0%'],
         ...parts.filter(([key]) => mean[key] > 0).map(([key, name, color]) => [el('span', null, el('i', {class: 'swatch', color: `var(${color})`}), name), ns(mean[key]), percent(mean[key] / mean.duration_ns)])])) : null,
      el('h3', null, 'Step by step'),
      el('div', {class: 'wide'}, el('table', {class: 'steps'}, el('tbody', null, shown.map((step) => bar(step, longest))))),
      all > shown.length ? el('p', {class: 'soft'}, `and ${count(all - shown.length)} more ${noun_for(all - shown.length, 'step')}`) : null);
  }
  return {render};
})();
