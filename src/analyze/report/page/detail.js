// SPDX-License-Identifier: Apache-2.0
// All about one kernel: opened under its row.

function histogram(detail, kernel) {
  const bins = detail.histogram;
  if (!bins.count.length) return null;
  const [width, height, base] = [520, 150, 118];
  const most = Math.max(...bins.count);
  const step = (width - 20) / bins.count.length;
  const low = bins.low_ns[0], high = bins.high_ns[bins.high_ns.length - 1];
  // Bins are of equal ratio, so the axis is logarithmic; all durations equal: one bin.
  const place = (value) =>
    high > low ? 10 + (width - 20) * Math.log(value / low) / Math.log(high / low) : width / 2;
  const out = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
                          'aria-label': `durations from ${ns(low)} to ${ns(high)}`});
  bins.count.forEach((n, i) => {
    const tall = n > 0 ? Math.max(1.5, 100 * n / most) : 0;
    const bar = svg('rect', {class: 'bin', x: 10 + i * step, y: base - tall,
                             width: Math.max(1, step - 1), height: tall});
    const text = [counted(n, 'launch'), `${ns(bins.low_ns[i])} to ${ns(bins.high_ns[i])}`];
    bar.addEventListener('pointermove', (event) => show_tip(text, event.clientX, event.clientY));
    bar.addEventListener('pointerleave', hide_tip);
    out.append(bar);
  });
  out.append(svg('line', {class: 'axis', x1: 10, x2: width - 10, y1: base, y2: base}));
  const p50 = place(kernel.p50_ns), p95 = place(kernel.p95_ns);
  const label = (x, y, text) => svg('text', {x, y, 'text-anchor': x < 60 ? 'start' : x > width - 60 ? 'end' : 'middle'}, text);
  for (const x of [p50, p95]) out.append(svg('line', {class: 'quantile', x1: x, x2: x, y1: 10, y2: base}));
  out.append(label(p50, 9, `p50 ${ns(kernel.p50_ns)}`));
  if (Math.abs(p95 - p50) > 110) out.append(label(p95, 9, `p95 ${ns(kernel.p95_ns)}`));
  out.append(svg('text', {x: 10, y: base + 16}, ns(low)));
  if (high > low) out.append(svg('text', {x: width - 10, y: base + 16, 'text-anchor': 'end'}, ns(high)));
  return out;
}

function work(kernel) {
  const roof = kernel.roof;
  if (!roof) return null;
  const from = (source) => (source === 'counter' ? 'counters' : words(source));
  const amount = (value, source, model, unit) => {
    if (value === null) return null;
    const model_text = source === 'counter' && model !== null ? `; shape model ${si(model, unit)}` : '';
    return `${si(value, unit)} a launch (${from(source)}${model_text})`;
  };
  return [
    ['FLOPs', amount(kernel.flops, roof.flops_from, roof.model_flops, 'FLOP')],
    ['bytes', amount(kernel.bytes, roof.bytes_from, roof.model_bytes, 'B')],
    ['rates', [roof.flops_per_s !== null ? si(roof.flops_per_s, 'FLOP/s') : '',
               roof.bytes_per_s !== null ? si(roof.bytes_per_s, 'B/s') : ''].filter(Boolean).join(', ')],
    ['intensity', roof.intensity === null ? null : `${Number(roof.intensity.toPrecision(3))} FLOP/B`],
    ['attainable', roof.attainable_flops_per_s === null ? null : si(roof.attainable_flops_per_s, 'FLOP/s')],
    ['target', kernel.target === null ? null
      : kernel.target.speedup > 1 ? `${percent(kernel.target.fraction)} of that roof, ${kernel.target.speedup.toFixed(2)} times as fast`
        : `reached: ${percent(kernel.target.fraction)} of that roof`],
    ['headroom', roof.headroom_ns === null ? null : `${ns(roof.headroom_ns)} less at its roof`],
  ];
}

// Told by what such kernels usually are, not by anything the profile has of this one.
const is_guess = (kernel) => Boolean(kernel.roof) && kernel.roof.bound_from === 'op_class';

// The bound as every row shows it: with a question mark where it is a guess.
const bound_text = (kernel) => kernel.bound + (is_guess(kernel) ? '?' : '');

function resources_text(kernel) {
  const shared = kernel.launch.dynamic_shared_bytes;
  if (kernel.registers === null && !kernel.static_shared_bytes && !kernel.local_bytes)
    return `registers and memory not recorded${shared > 0 ? `; ${bytes(shared)} dynamic shared memory a block` : ''}`;
  const registers = kernel.registers === null ? 'unknown registers' : counted(kernel.registers, 'register');
  return `${registers} a thread, ${bytes(kernel.static_shared_bytes || 0)} static and ${bytes(shared)} dynamic shared memory a block, ` +
         `${bytes(kernel.local_bytes || 0)} local memory a thread`;
}

function roof_text(kernel) {
  if (is_guess(kernel)) return `not known; the usual bound of such kernels is ${kernel.bound}`;
  if (kernel.bound === 'unknown' && kernel.utilization === null)
    return kernel.roof ? kernel.roof.evidence || 'not known' : 'not known: neither counters nor a problem shape';
  const at = kernel.utilization === null ? '' : `, at ${percent(kernel.utilization)} of the ${kernel.roof.ceiling} roof`;
  return `${kernel.bound} bound${at}`;
}

function occupancy_text(kernel) {
  const occupancy = kernel.occupancy;
  if (!occupancy) return null;
  return [occupancy.theoretical === null ? '' : `${percent(occupancy.theoretical)} theoretical`,
          occupancy.limiter ? `limited by ${occupancy.limiter}` : '',
          occupancy.achieved === null ? '' : `${percent(occupancy.achieved)} achieved (${occupancy.measured ? 'counter' : 'estimated from the grid'})`].filter(Boolean).join(', ');
}

// What the kernel's name tells of how it was built.
function built_text(built) {
  return [built.dtype, built.accumulator ? `summed in ${built.accumulator}` : '', built.tile ? `tile ${built.tile}` : '',
          built.stages ? `${built.stages} stages` : '', built.layout ? `layout ${built.layout}` : '', built.arch,
          built.tensor_cores === true ? 'tensor cores' : built.tensor_cores === false ? 'no tensor cores' : '',
          built.split_k ? 'split K' : ''].filter(Boolean).join(', ');
}

function detail_of(kernel, detail) {
  const shapes = detail.shapes.map((row) => [
    percent(row.share), ns(row.total_ns), count(row.count), ns(row.p50_ns), ns(row.p95_ns),
    row.utilization === null ? bound_text(row) : `${bound_text(row)} ${percent(row.utilization)}`,
    launch_text(row.launch), [kernel.kernels > 1 ? `${row.label}:` : '', row.op, row.dtype, row.shape].filter(Boolean).join(' '),
  ]);
  const launch = kernel.launch;
  return el('div', null,
    el('p', {class: 'name'}, kernel.name),
    el('div', {class: 'split'},
      el('div', null, facts([
        ['what', kernel.op_class + (kernel.family ? ` (${kernel.family})` : '') + (kernel.kernels > 1 ? `, ${kernel.kernels} kernels` : '') +
                 (kernel.op ? `, of ${kernel.op}` : '')],
        ['built', built_text(kernel.built)],
        ['build', kernel.build],
        ['problem', [kernel.dtype, kernel.shape].filter(Boolean).join(' ')],
        ['device', kernel.device],
        ['roof', roof_text(kernel)],
        ['evidence', kernel.roof && kernel.roof.evidence],
        ...(work(kernel) || []),
        ['occupancy', occupancy_text(kernel)],
        ['link', el('a', {href: `#kernel=${kernel.id}`}, `#kernel=${kernel.id}`)],
        ['profile', el('a', {href: `#profile-${doc.profile.id}`}, [doc.profile.id, ...doc.profile.files].join(' '))],
        ['resources', resources_text(kernel)],
        ['launch', `${launch_text(launch)}${kernel.launch_shapes > 1 ? `, and ${kernel.launch_shapes - 1} more` : ''}`],
      ])),
      el('div', null,
        kernel.count > 0 ? el('h3', null, `Durations of ${counted(kernel.count, 'launch')}, ${ns(kernel.min_ns)} to ${ns(kernel.max_ns)}`) : null,
        histogram(detail, kernel))),
    shapes.length ? [el('h3', null, 'Launch shapes'), table(
      [['share', 1], ['total', 1], ['count', 1], ['p50', 1], ['p95', 1], ['bound'], ['grid / block'], ['op and problem']], shapes)] : null,
    detail.shapes_left_out > 0 ? el('p', {class: 'soft'}, `and ${count(detail.shapes_left_out)} more ${noun_for(detail.shapes_left_out, 'shape')}`) : null,
    kernel.stalls ? [el('h3', null, 'What warps wait for'), table(
      [['of all', 1], ['of stalls', 1], ['reason', 'text']],
      kernel.stalls.reasons.slice(0, 10).map((r) => [percent(r.share), percent(r.stalled_share), `${words(r.reason)}${r.meaning ? `: ${r.meaning}` : ''}`])),
      kernel.stalls.occupancy ? el('p', {class: 'soft'}, `More occupancy does not help: ${kernel.stalls.occupancy}`) : null] : null,
    kernel.counters.length ? [el('h3', null, 'Counters, mean of a launch'), table(
      [['counter'], ['value', 1], ['launches', 1]],
      kernel.counters.map((c) => [el('span', {class: 'name'}, c.name), Number(c.value.toPrecision(7)).toLocaleString('en-US'), count(c.launches)]))] : null);
}
