// SPDX-License-Identifier: Apache-2.0
// Log-log roofline of one GPU model: a point per kernel whose FLOPs and bytes are known, its area
// by its share of the time; ceilings per dtype and memory level, each of which can be hidden.

const roofline = (() => {
  const WIDTH = 1100, HEIGHT = 520, LEFT = 70, RIGHT = 20, TOP = 16, BOTTOM = 44;
  const drawable = (kernel) => kernel.roof && kernel.roof.intensity > 0 && kernel.roof.flops_per_s > 0;
  const NEGLIGIBLE = 0.002;  // of the time: such points do not stretch the axes
  const hidden = new Set();

  function draw(device, ceilings) {
    const points = doc.kernels.map((kernel, index) => ({kernel, index}))
      .filter(({kernel}) => kernel.device === device && drawable(kernel));
    const compute = ceilings.compute.filter((c) => !hidden.has(c.name));
    const memory = ceilings.memory.filter((c) => !hidden.has(c.name));
    const weighty = points.some((p) => p.kernel.share >= NEGLIGIBLE) ? points.filter((p) => p.kernel.share >= NEGLIGIBLE) : points;
    const xs = weighty.map((p) => p.kernel.roof.intensity), ys = weighty.map((p) => p.kernel.roof.flops_per_s);
    const top_compute = compute.reduce((most, c) => Math.max(most, c.peak), 0);
    for (const level of memory) for (const c of compute) xs.push(c.peak / level.peak);
    for (const c of compute) ys.push(c.peak);
    if (!xs.length || !ys.length) return el('p', {class: 'soft'}, 'Nothing to draw.');
    const range = (values, low, high) => [Math.floor(Math.log10(Math.min(...values)) - low), Math.ceil(Math.log10(Math.max(...values)) + high)];
    const [x0, x1] = range(xs, 0.5, 0.5), [y0, y1] = range(ys, 0.2, 0.1);
    const inside = (value, low, high) => Math.max(low, Math.min(high, value));
    const px = (value) => LEFT + (WIDTH - LEFT - RIGHT) * (Math.log10(value) - x0) / (x1 - x0);
    const py = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (Math.log10(value) - y0) / (y1 - y0);
    const out = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'group', 'aria-label': `roofline of ${device || 'the device'}`});

    for (let e = x0; e <= x1; ++e) {
      out.append(svg('line', {class: 'grid', x1: px(10 ** e), x2: px(10 ** e), y1: TOP, y2: HEIGHT - BOTTOM}),
        svg('text', {x: px(10 ** e), y: HEIGHT - BOTTOM + 16, 'text-anchor': 'middle'}, e < 0 ? `${10 ** e}` : (10 ** e).toLocaleString('en-US')));
    }
    for (let e = y0; e <= y1; ++e) {
      out.append(svg('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: py(10 ** e), y2: py(10 ** e)}),
        svg('text', {x: LEFT - 8, y: py(10 ** e) + 4, 'text-anchor': 'end'}, si(10 ** e, 'F/s').replace(/\.00|\.0/, '')));
    }
    out.append(svg('text', {x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, 'text-anchor': 'middle'}, 'arithmetic intensity, FLOP/B'),
      svg('text', {x: 14, y: HEIGHT / 2, 'text-anchor': 'middle', transform: `rotate(-90 14 ${HEIGHT / 2})`}, 'FLOP/s'));
    const clip = svg('clipPath', {id: 'plot'}, svg('rect', {x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM}));
    const plot = svg('g', {'clip-path': 'url(#plot)'});
    out.append(svg('defs', null, clip), plot);

    const dram = memory.length ? memory[0].peak : 0;
    const named = [];  // where names of roofs are, so that near ones stand side by side
    for (const c of [...compute].sort((a, b) => b.peak - a.peak)) {
      const ridge = dram > 0 ? c.peak / dram : 10 ** x0;
      plot.append(svg('line', {class: 'roof compute', x1: px(Math.max(10 ** x0, Math.min(...memory.map((m) => c.peak / m.peak), ridge))),
                               x2: WIDTH - RIGHT, y1: py(c.peak), y2: py(c.peak)}),
        svg('text', {class: 'roof-name', x: name_end(named, py(c.peak)), y: py(c.peak) - 5, 'text-anchor': 'end'}, `${c.name}: ${si(c.peak, 'FLOP/s')} (${c.provenance})`));
    }
    memory.forEach((level, i) => {
      const highest = top_compute > 0 ? top_compute : 10 ** y1;
      const end = highest / level.peak;
      plot.append(svg('line', {class: 'roof memory', x1: px(10 ** x0), x2: px(end), y1: py(level.peak * 10 ** x0), y2: py(highest)}));
      // Named on the line, at the left, where it is inside the plot.
      const at = Math.max(10 ** x0, 10 ** y0 / level.peak) * (i % 2 ? 3.2 : 1.5);
      const slope = -Math.atan2((HEIGHT - TOP - BOTTOM) / (y1 - y0), (WIDTH - LEFT - RIGHT) / (x1 - x0)) * 180 / Math.PI;
      const [x, y] = [px(at), py(at * level.peak)];
      plot.append(svg('text', {class: 'roof-name', x, y: y - 6, transform: `rotate(${slope} ${x} ${y})`}, `${level.name}: ${si(level.peak, 'B/s')} (${level.provenance})`));
    });

    // Largest first, so that small ones stay within reach.
    points.sort((a, b) => b.kernel.share - a.kernel.share);
    for (const {kernel, index} of points) {
      const roof = kernel.roof;
      const lines = [kernel.label, [kernel.dtype, kernel.shape].filter(Boolean).join(' '),
        `${percent(kernel.share)} of the time, ${counted(kernel.count, 'launch')}, p50 ${ns(kernel.p50_ns)}`,
        `${si(roof.flops_per_s, 'FLOP/s')}, ${si(roof.bytes_per_s, 'B/s')}, ${Number(roof.intensity.toPrecision(3))} FLOP/B`,
        roof_text(kernel), roof.evidence];
      const circle = svg('circle', {
        cx: inside(px(roof.intensity), LEFT, WIDTH - RIGHT), cy: inside(py(roof.flops_per_s), TOP, HEIGHT - BOTTOM), r: 3.5 + 26 * Math.sqrt(kernel.share), tabindex: 0, role: 'button',
        'aria-label': lines.filter(Boolean).join('; '),
        onpointermove: (event) => show_tip(lines, event.clientX, event.clientY), onpointerleave: hide_tip,
        onfocus: (event) => { const box = event.target.getBoundingClientRect(); show_tip(lines, box.right, box.bottom); }, onblur: hide_tip,
        onclick: () => kernel_table.reveal(index),
        onkeydown: (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); kernel_table.reveal(index); } },
      });
      circle.style.fill = class_color(kernel.op_class);
      plot.append(circle);
    }
    return out;
  }

  function name_end(named, y) {
    let x = WIDTH - RIGHT - 6;
    while (named.some((other) => Math.abs(other.y - y) < 14 && Math.abs(other.x - x) < 1)) x -= 270;
    named.push({x, y});
    return x;
  }

  function one(device, ceilings) {
    const kernels = doc.kernels.filter((kernel) => kernel.device === device);
    const known = kernels.filter(drawable);
    // At first the roofs that kernels are held against, and those of memory.
    const used = new Set(known.map((kernel) => kernel.roof.ceiling));
    for (const c of ceilings.compute) if (!used.has(c.name) && ceilings.compute.some((other) => used.has(other.name))) hidden.add(c.name);
    const holder = el('div', null, draw(device, ceilings));
    const toggle = (c) => el('label', null, el('input', {type: 'checkbox', checked: !hidden.has(c.name), onchange: (event) => {
      event.target.checked ? hidden.delete(c.name) : hidden.add(c.name);
      holder.replaceChildren(draw(device, ceilings));
    }}), ` ${c.name}`);
    const classes = OP_CLASSES.filter((name) => known.some((kernel) => kernel.op_class === name));
    const left_out = kernels.filter((kernel) => !drawable(kernel)).reduce((sum, kernel) => sum + kernel.share, 0);
    return [
      el('h3', null, device || 'unknown device'), holder,
      el('div', {class: 'legend'}, 'roofs: ', ceilings.compute.map(toggle), ceilings.memory.map(toggle)),
      el('div', {class: 'legend'}, classes.map((name) => el('span', null, el('i', {color: class_color(name)}), name))),
      left_out > 0 ? el('p', {class: 'soft'}, `Kernels with ${percent(left_out)} of the time are not drawn: they do no floating-point work, or their FLOPs or bytes are not known.`) : null,
    ];
  }

  function render() {
    const with_points = [...new Set(doc.kernels.filter(drawable).map((kernel) => kernel.device))];
    if (!with_points.length)
      return section('roofline', 'Roofline', el('p', {class: 'soft'},
        'No kernel has known FLOPs and bytes: the profile has neither counters nor problem shapes.'));
    return section('roofline', 'Roofline', with_points.map((device) =>
      one(device, doc.ceilings.find((c) => c.device === device) || {compute: [], memory: []})),
      el('p', {class: 'soft'}, 'Area of a point: share of the kernel time. Click it, or press Enter on it, for all about the kernel.'));
  }
  return {render};
})();
