// SPDX-License-Identifier: Apache-2.0
// What the devices did over time. One lane per device, in each bucket of time the shares of
// compute, communication, copies and idle; below it the longest gaps, coloured by cause. Drag to
// zoom in, double click to zoom out; the keyboard does the same on the focused lanes.

const timeline = (() => {
  const data = device_timeline;
  const LANE = 54, GAPS = 12, SPACE = 22, AXIS = 22;
  const kinds = [['compute', '--compute'], ['communication', '--communication'], ['copies', '--copy'], ['idle', '--idle']];
  const causes = {host_launch: '--runtime', data_starvation: '--loader', synchronization: '--latency',
                  kernel_to_kernel: '--memory', profiler: '--host', other: '--soft'};
  const device_name = (index) => {
    const device = doc.environment.devices && doc.environment.devices[index];
    return (device && (device.id || device.name)) || `device ${index}`;
  };

  function lanes() {
    const overview = data.overview.filter((lane) => lane.shares.length > 0 && lane.bucket_ns > 0);
    if (!overview.length) return null;
    const origin = Math.min(...overview.map((lane) => lane.begin_ns));
    const end = Math.max(...overview.map((lane) => lane.begin_ns + lane.bucket_ns * lane.shares.length));
    const finest = Math.min(...overview.map((lane) => lane.bucket_ns));
    let from = 0, to = end - origin, drag = null;
    const height = overview.length * (LANE + GAPS + SPACE) + AXIS;
    const canvas = el('canvas', {height, tabindex: 0, role: 'img',
      'aria-label': 'device use over time; arrow keys move, plus and minus zoom, 0 shows all. The figures are in the tables below.'});
    const context = canvas.getContext('2d');

    function draw() {
      const width = canvas.clientWidth || 1000, scale = window.devicePixelRatio || 1;
      canvas.width = width * scale;
      canvas.height = height * scale;
      canvas.style.height = `${height}px`;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      const x = (t) => (t - from) / (to - from) * width;
      const colors = kinds.map(([, variable]) => theme(variable));
      context.font = '12px system-ui, sans-serif';
      overview.forEach((lane, i) => {
        const top = i * (LANE + GAPS + SPACE) + SPACE - 6;
        context.fillStyle = theme('--soft');
        context.fillText(device_name(lane.device), 2, top - 4);
        context.fillStyle = colors[3];
        context.fillRect(0, top, width, LANE);
        // Columns of pixels: the mean of the buckets under each.
        const offset = lane.begin_ns - origin;
        for (let column = 0; column < width; ++column) {
          const t0 = from + column / width * (to - from), t1 = from + (column + 1) / width * (to - from);
          const first = Math.floor((t0 - offset) / lane.bucket_ns), last = Math.max(first, Math.ceil((t1 - offset) / lane.bucket_ns) - 1);
          if (last < 0 || first >= lane.shares.length) continue;
          const sums = [0, 0, 0];
          let n = 0;
          for (let b = Math.max(0, first); b <= Math.min(last, lane.shares.length - 1); ++b, ++n)
            for (let k = 0; k < 3; ++k) sums[k] += lane.shares[b][k];
          let bottom = top + LANE;
          for (let k = 0; k < 3 && n > 0; ++k) {
            const tall = Math.min(bottom - top, sums[k] / n * LANE);
            context.fillStyle = colors[k];
            context.fillRect(column, bottom - tall, 1, tall);
            bottom -= tall;
          }
        }
        for (const gap of data.gaps.filter((g) => g.device === lane.device)) {
          const a = x(gap.start_ns - origin), b = x(gap.start_ns + gap.duration_ns - origin);
          if (b < 0 || a > width) continue;
          context.fillStyle = theme(causes[gap.cause] || '--soft');
          context.fillRect(a, top + LANE + 2, Math.max(2, b - a), GAPS - 4);
        }
      });
      axis(width, x);
      if (drag) {
        context.fillStyle = theme('--accent');
        context.globalAlpha = 0.2;
        context.fillRect(Math.min(drag.x0, drag.x1), 0, Math.abs(drag.x1 - drag.x0), height - AXIS);
        context.globalAlpha = 1;
      }
      range.textContent = `${ns(from)} to ${ns(to)} of ${ns(end - origin)}`;
    }

    function axis(width, x) {
      const rough = (to - from) / Math.max(2, Math.floor(width / 120));
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
      context.strokeStyle = theme('--line');
      context.fillStyle = theme('--soft');
      for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
        context.beginPath();
        context.moveTo(x(t), SPACE - 6);
        context.lineTo(x(t), height - AXIS + 4);
        context.globalAlpha = 0.5;
        context.stroke();
        context.globalAlpha = 1;
        context.fillText(ns(t), Math.min(x(t) + 3, width - 50), height - 6);
      }
    }

    function view(a, b) {
      const span = Math.min(end - origin, Math.max(finest * 4, b - a));
      from = Math.max(0, Math.min(a, end - origin - span));
      to = from + span;
      draw();
    }
    const zoom = (factor, around = (from + to) / 2) => view(around - (around - from) * factor, around + (to - around) * factor);
    const pan = (part) => view(from + (to - from) * part, to + (to - from) * part);
    const time_at = (event) => from + (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth * (to - from);

    function hover(event) {
      const box = canvas.getBoundingClientRect();
      const i = Math.floor((event.clientY - box.top) / (LANE + GAPS + SPACE));
      if (i < 0 || i >= overview.length) return hide_tip();
      const lane = overview[i], t = time_at(event), slack = (to - from) / canvas.clientWidth * 3;
      const gap = data.gaps.find((g) => g.device === lane.device && t >= g.start_ns - origin - slack && t <= g.start_ns + g.duration_ns - origin + slack);
      const shares = lane.shares[Math.floor((t + origin - lane.begin_ns) / lane.bucket_ns)];
      show_tip([`${device_name(lane.device)} at ${ns(t)}`,
        shares && kinds.map(([name], k) => `${name} ${percent(shares[k])}`).join(', '),
        gap && `gap of ${ns(gap.duration_ns)}: ${cause_words(gap.cause)}`, gap && gap.evidence,
        gap && gap.before && `after ${gap.before}`], event.clientX, event.clientY);
    }

    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      const x = event.clientX - canvas.getBoundingClientRect().left;
      drag = {x0: x, x1: x, t0: time_at(event)};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!drag) return hover(event);
      hide_tip();
      drag.x1 = event.clientX - canvas.getBoundingClientRect().left;
      draw();
    });
    canvas.addEventListener('pointerup', (event) => {
      if (!drag) return;
      const [t0, t1, far] = [drag.t0, time_at(event), Math.abs(drag.x1 - drag.x0) > 5];
      drag = null;
      if (far) view(Math.min(t0, t1), Math.max(t0, t1)); else draw();
    });
    canvas.addEventListener('pointercancel', () => { drag = null; draw(); });
    canvas.addEventListener('pointerleave', hide_tip);
    canvas.addEventListener('dblclick', () => view(0, end - origin));
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey) return;  // the wheel alone scrolls the page
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, time_at(event));
    }, {passive: false});
    canvas.addEventListener('keydown', (event) => {
      const act = {ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), '+': () => zoom(0.5), '=': () => zoom(0.5),
                   '-': () => zoom(2), 0: () => view(0, end - origin), Escape: () => view(0, end - origin)}[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    window.addEventListener('resize', draw);
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
    const range = el('span', {class: 'soft', role: 'status'});
    const button = (text, label, act) => el('button', {class: 'plain', type: 'button', 'aria-label': label, onclick: act}, text);
    show_gap = (gap) => {
      view(gap.start_ns - origin - gap.duration_ns, gap.start_ns - origin + 2 * gap.duration_ns);
      canvas.scrollIntoView({block: 'center'});
      canvas.focus({preventScroll: true});
    };
    redraw = draw;
    return el('div', {class: 'lanes'},
      el('div', {class: 'bar-row'}, button('+', 'zoom in', () => zoom(0.5)), button('−', 'zoom out', () => zoom(2)),
        button('←', 'earlier', () => pan(-0.2)), button('→', 'later', () => pan(0.2)),
        button('all', 'show all', () => view(0, end - origin)), range, el('span', {class: 'soft'}, 'drag to zoom in, double click to see all')),
      canvas,
      el('div', {class: 'legend'}, kinds.map(([name, variable]) => el('span', null, el('i', {color: `var(${variable})`}), name)),
        [...new Set(data.gaps.map((gap) => gap.cause))].map((cause) => el('span', null, el('i', {color: `var(${causes[cause] || '--soft'})`}), `gap: ${cause_words(cause)}`))));
  }

  let redraw = () => {}, show_gap = null;

  function device_rows() {
    return table([['device'], ['span', 1], ['busy', 1], ['idle', 1], ['why idle', 'text'], ['compute', 1], ['communication', 1], ['memcpy, memset', 1]],
      data.devices.map((d) => [
        device_name(d.device), ns(d.span_ns), percent(d.busy_ns / d.span_ns), percent(d.idle_ns / d.span_ns),
        Object.entries(d.idle_causes).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1])
          .map(([cause, value]) => `${cause_words(cause)} ${percent(value / d.span_ns)}`).join(', ') || '–',
        percent(d.overlap.compute_ns / d.span_ns),
        d.overlap.communication_ns > 0 ? `${percent(d.overlap.communication_ns / d.span_ns)}, ${percent(d.overlap.compute_and_communication_ns / d.overlap.communication_ns)} of it during compute` : '–',
        d.overlap.copy_ns > 0 ? `${percent(d.overlap.copy_ns / d.span_ns)}, ${percent(d.overlap.compute_and_copy_ns / d.overlap.copy_ns)} of it during compute` : '–',
      ]));
  }

  function host() {
    const out = [], launches = data.launches;
    if (launches && launches.launches > 0)
      out.push(['launches', `${count(launches.launches)} with a known call; ${launches.call_p50_ns > 0 ? `call p50 ${ns(launches.call_p50_ns)}; ` : ''}from call to kernel p50 ${ns(launches.latency_p50_ns)}, p95 ${ns(launches.latency_p95_ns)}` +
        (launches.tiny > 0 ? `; ${counted(launches.tiny, 'kernel')} (${percent(launches.tiny / launches.launches)}) shorter than the call that launched them` : '')]);
    if (data.syncs > 0) out.push(['synchronisation', `${counted(data.syncs, 'wait')} of the host, with ${ns(data.sync_idle_ns)} of idle time`]);
    for (const queue of data.queues.filter((q) => q.max_depth > 0).sort((a, b) => b.max_depth - a.max_depth).slice(0, 4))
      out.push([`queue of ${device_name(queue.device)} stream ${queue.stream}`, `${queue.mean_depth.toFixed(1)} launches on average, ${queue.max_depth} at most${queue.full_ns > 0 ? `, full for ${ns(queue.full_ns)}` : ''}`]);
    return out.length ? [el('h3', null, 'Launching'), facts(out)] : null;
  }

  function sequences() {
    if (!data.sequences.length) return null;
    return [el('h3', null, 'Repeated launch sequences (candidates for a CUDA graph)'),
      table([['kernels', 1], ['repeats', 1], ['span', 1], ['busy', 1], ['where'], ['from'], ['hindrance', 'text']],
        data.sequences.slice(0, 10).map((s) => [count(s.length), count(s.repeats), ns(s.total_ns), ns(s.busy_ns), `${device_name(s.device)} stream ${s.stream}`,
          el('span', {class: 'name'}, s.kernels[0] || ''), s.hindrance || 'none seen']))];
  }

  function gaps() {
    if (!data.gaps.length) return null;
    return [el('h3', null, 'Longest gaps'),
      table([['gap', 1], ['device'], ['cause'], ['evidence', 'text'], ['after'], ['before'], ['']], data.gaps.slice(0, 10).map((gap) => [
        ns(gap.duration_ns), device_name(gap.device), cause_words(gap.cause), gap.evidence, el('span', {class: 'name'}, gap.before), el('span', {class: 'name'}, gap.after),
        show_gap ? el('button', {class: 'plain', type: 'button', onclick: () => show_gap(gap)}, 'show') : '']))];
  }

  function render() {
    if (!data) return section('timeline', 'Timeline', el('p', {class: 'soft'},
      'The profile kept no timeline, only distributions: busy and idle time are not known.'));
    const drawn = lanes();
    return section('timeline', 'Timeline', drawn, device_rows(), host(), sequences(), gaps());
  }
  return {render, redraw: () => redraw()};
})();
