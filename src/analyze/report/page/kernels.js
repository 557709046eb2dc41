// SPDX-License-Identifier: Apache-2.0
// The table of kernels: sorted by a click on a title, filtered by text and op class, each row
// opened by a click, Enter or from the roofline.

const kernel_table = (() => {
  const SHOWN = 25;
  const most_share = Math.max(...doc.kernels.map((kernel) => kernel.share), 1e-9);
  const bound_rank = {compute: 0, memory: 1, latency: 2, unknown: 3};
  // title, key to sort by, numeric, first direction
  const columns = [
    ['kernel', (k) => k.label.toLowerCase(), false, 1],
    ['share', (k) => k.share, true, -1],
    ['total', (k) => k.total_ns, true, -1],
    ['count', (k) => k.count, true, -1],
    ['p50', (k) => k.p50_ns, true, -1],
    ['p95', (k) => k.p95_ns, true, -1],
    ['bound', (k) => bound_rank[k.bound], false, 1],
    ['of roof', (k) => k.utilization, true, 1],
    ['headroom', (k) => k.roof && k.roof.headroom_ns, true, -1],
  ];
  const rows = doc.kernels.map((kernel, index) => ({
    kernel, index,
    text: `${kernel.name}\n${kernel.label}\n${kernel.op}\n${kernel.op_class}\n${kernel.shape}\n${kernel.dtype}`.toLowerCase(),
  }));
  const open = new Set();
  let sorted_by = null, direction = -1, shown = SHOWN;

  const filter = el('input', {type: 'search', id: 'filter', placeholder: 'filter by name, op, class or shape  ( / )',
                              'aria-label': 'filter kernels', oninput: () => { shown = SHOWN; draw(); }});
  const classes = [...new Set(rows.map((row) => row.kernel.op_class))].sort();
  const op_class = el('select', {'aria-label': 'op class', onchange: () => { shown = SHOWN; draw(); }},
    el('option', {value: ''}, 'all classes'), classes.map((name) => el('option', {value: name}, name)));
  const status = el('span', {class: 'soft', role: 'status'});
  const body = el('tbody');
  const more = el('button', {class: 'plain', hidden: true, onclick: () => { shown = Infinity; draw(); }});

  const heads = columns.map(([title, key, numeric, first], i) =>
    el('th', {class: numeric ? 'num' : null, scope: 'col'},
      el('button', {type: 'button', onclick: () => {
        direction = sorted_by === i ? -direction : first;
        sorted_by = i;
        draw();
      }}, title)));

  const several_devices = new Set(doc.kernels.map((k) => k.device)).size > 1;
  const several_builds = new Set(doc.kernels.map((k) => k.build)).size > 1;
  const roofs_known = doc.kernels.some((k) => k.utilization !== null);

  function under(kernel) {
    return [kernel.op_class === kernel.label ? '' : kernel.op_class, kernel.kernels > 1 ? `${kernel.kernels} kernels` : '', [kernel.dtype, kernel.shape].filter(Boolean).join(' '),
            doc.group_by === 'launch' ? launch_text(kernel.launch)
              : kernel.launch_shapes > 1 ? `${kernel.launch_shapes} launch shapes` : '',
            several_devices ? kernel.device : '', several_builds ? kernel.build || 'build unknown' : ''].filter(Boolean).join(' · ');
  }

  function kernel_row(row) {
    const {kernel, index} = row;
    const toggle = () => { open.has(index) ? open.delete(index) : open.add(index); draw(); focus(index); };
    return el('tr', {class: 'kernel', id: `kernel-${index}`, 'data-kernel': kernel.id, 'data-profile': doc.profile.id,
                     onclick: (event) => { if (!window.getSelection().toString() && !event.target.closest('button')) toggle(); }},
      el('td', {class: 'what'},
        el('button', {type: 'button', class: 'name', 'aria-expanded': open.has(index) ? 'true' : 'false', onclick: toggle}, kernel.label),
        el('div', {class: 'soft'}, under(kernel))),
      el('td', {class: 'num'}, percent(kernel.share),
        el('span', {class: 'meter', 'aria-hidden': 'true'}, el('i', {'width%': 100 * kernel.share / most_share, color: class_color(kernel.op_class)}))),
      [kernel.count > 0 ? kernel.total_ns : null, null, kernel.p50_ns, kernel.p95_ns].map((value, i) =>
        el('td', {class: 'num'}, i === 1 ? count(kernel.count) : ns(value))),
      el('td', null, el('span', {class: `tag b-${kernel.bound}`, title: is_guess(kernel) ? 'the usual bound of such kernels; not measured' : null}, bound_text(kernel))),
      el('td', {class: 'num'}, kernel.utilization === null ? '–' : `${percent(kernel.utilization)} ${kernel.roof.ceiling}`),
      el('td', {class: 'num'}, kernel.roof ? ns(kernel.roof.headroom_ns) : '–'));
  }

  function focus(index) {
    const button = document.querySelector(`#kernel-${index} button`);
    if (button) button.focus({preventScroll: true});
  }

  function draw() {
    const wanted = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = rows.filter((row) => wanted.every((word) => row.text.includes(word)) &&
                                        (!op_class.value || row.kernel.op_class === op_class.value));
    if (sorted_by !== null) {
      const key = columns[sorted_by][1];
      chosen.sort((a, b) => {
        const [x, y] = [key(a.kernel), key(b.kernel)];
        // What is not known comes last, whatever the direction.
        if ((x === null) !== (y === null)) return x === null ? 1 : -1;
        return (x < y ? -1 : x > y ? 1 : 0) * direction || a.index - b.index;
      });
    }
    heads.forEach((head, i) => {
      if (i === sorted_by) head.setAttribute('aria-sort', direction > 0 ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    });
    body.replaceChildren(...chosen.slice(0, shown).flatMap((row) => {
      const line = kernel_row(row);
      if (!open.has(row.index)) return [line];
      return [line, el('tr', {class: 'detail'},
        el('td', {colspan: columns.length}, detail_of(row.kernel, doc.page.details[row.index])))];
    }));
    const share = chosen.reduce((sum, row) => sum + row.kernel.share, 0);
    status.textContent = `${count(chosen.length)} of ${counted(doc.page.rows, 'row')}, ${percent(share)} of the kernel time`;
    more.hidden = chosen.length <= shown;
    more.textContent = `show all ${count(chosen.length)}`;
  }

  // Opens a row from elsewhere on the page.
  function reveal(index) {
    filter.value = '';
    op_class.value = '';
    shown = Math.max(shown, index + 1);
    if (sorted_by !== null) shown = Infinity;
    open.add(index);
    draw();
    document.getElementById(`kernel-${index}`).scrollIntoView({block: 'center'});
    focus(index);
  }

  function render() {
    const other = doc.page.other;
    const out = section('kernels', 'Kernels',
      el('div', {class: 'bar-row'}, filter, op_class, status),
      doc.kernels.length
        ? el('div', {class: 'wide'}, el('table', null, el('thead', null, el('tr', null, heads)), body))
        : el('p', {class: 'soft'}, 'No kernels.'),
      more,
      other.rows > 0 ? el('p', {class: 'soft'},
        `Not on this page: ${count(other.rows)} more ${noun_for(other.rows, 'row')} with ${percent(other.share)} of the time (${ns(other.total_ns)} in ${counted(other.count, 'launch')}). ` +
        'purlin report --json has all rows.') : null,
      doc.filter ? el('p', {class: 'soft'}, `Only matches of '${doc.filter}': ${counted(doc.rows_left_out, 'row')} left out.`) : null,
      roofs_known || !doc.kernels.length ? null : el('p', {class: 'soft'},
        'The distance of these kernels to their roofs is not known: the profile has neither counters nor problem shapes.'));
    draw();
    return out;
  }

  // "#kernel=ID" is a link to a row: other documents have it (alerts, purlin advise --json).
  function follow() {
    const wanted = /^#kernel=([0-9a-f]+)$/.exec(location.hash);
    const index = wanted ? doc.kernels.findIndex((kernel) => kernel.id === wanted[1]) : -1;
    if (index >= 0) reveal(index);
  }
  window.addEventListener('hashchange', follow);

  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      filter.focus();
    } else if (event.key === 'Escape') {
      hide_tip();
      const row = document.activeElement.closest && document.activeElement.closest('tr.kernel');
      if (row && open.delete(Number(row.id.slice(7)))) { draw(); focus(Number(row.id.slice(7))); }
    }
  });
  return {render, reveal, follow};
})();
