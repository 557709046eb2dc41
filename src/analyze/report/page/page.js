// SPDX-License-Identifier: Apache-2.0
// Puts the page together from the document.

(() => {
  const environment = doc.environment || {};

  function tiles() {
    const first = device_timeline;
    const coverage = doc.coverage;
    const seen = coverage.launches_counted > 0 ? percent(coverage.launches_seen / coverage.launches_counted) : null;
    const items = [
      [ns(doc.kernel_ns), 'of kernels, summed'],
      [count(doc.launches), 'launches'],
      doc.wall_ns > 0 ? [ns(doc.wall_ns), 'wall time'] : null,
      first ? [percent(first.busy_ns / first.span_ns), first.devices.length > 1 ? 'first device busy' : 'device busy'] : null,
      first && first.mean_step ? [ns(first.mean_step.duration_ns), 'mean step'] : null,
      seen ? [seen, 'of the launches recorded'] : null,
      [count(doc.page.rows), doc.group_by === 'launch' ? 'launch shapes' : 'kernels'],
    ];
    return el('div', {class: 'tiles'}, items.filter(Boolean).map(([value, text]) => el('div', {class: 'tile'}, el('b', null, value), el('span', null, text))));
  }

  // The kernels that a change is about, as links to their rows.
  function evidence(names) {
    const shown = names.slice(0, 3).map((name) => {
      const row = doc.kernels.find((kernel) => kernel.label === name);
      return [': ', row ? el('a', {href: `#kernel=${row.id}`}, name) : name];
    });
    shown.slice(1).forEach((part) => { part[0] = ', '; });
    return [shown.flat(), names.length > shown.length ? ` and ${names.length - shown.length} more` : ''].flat();
  }

  function advice() {
    const whole = (share) => `${Math.round(100 * share)}%`;
    if (!doc.advice.length && !doc.alerts.length) return null;
    return el('ul', {class: 'findings', id: 'advice'},
      doc.advice.map((one) => el('li', null, one.title, evidence(one.kernels), ` saves ${whole(one.saved_share.mid)} (${whole(one.saved_share.low)} to ${whole(one.saved_share.high)})`)),
      doc.alerts.map((alert) => el('li', {class: 'warning'}, alert.kernel_id ? el('a', {href: `#kernel=${alert.kernel_id}`}, alert.text) : alert.text)));
  }

  function copies() {
    if (!doc.copies.length) return null;
    return section('copies', 'memcpy and memset', table(
      [['kind'], ['device'], ['total', 1], ['count', 1], ['p50', 1], ['p95', 1], ['bytes', 1], ['rate', 1], ['of peak', 1]],
      doc.copies.map((c) => [c.kind, c.device, ns(c.total_ns), count(c.count), ns(c.p50_ns), ns(c.p95_ns),
        c.bytes > 0 ? bytes(c.bytes) : '–', c.bytes > 0 && c.total_ns > 0 ? si(Math.max(c.bytes, c.traffic_bytes ?? 0) / c.total_ns * 1e9, 'B/s') : '–', c.utilization ? percent(c.utilization) : '–'])));
  }

  function waits() {
    if (!doc.waits.length) return null;
    return section('waits', 'What the host waited for', table(
      [['a'], ['total', 1], ['count', 1], ['p50', 1], ['p95', 1]],
      doc.waits.map((w) => [w.kind, ns(w.total_ns), count(w.count), ns(w.p50_ns), ns(w.p95_ns)])));
  }

  function coverage() {
    const c = doc.coverage, wall = doc.wall_ns;
    const limits = [...(doc.timeline ? doc.timeline.limits : [])];
    const unknown = doc.kernels.filter((k) => k.bound === 'unknown' || is_guess(k)).reduce((sum, k) => sum + k.share, 0);
    if (doc.kernels.length && unknown >= 0.001) limits.push(`the bound of kernels with ${percent(unknown)} of the time is not known: counters or a problem shape are missing`);
    return section('coverage', 'Coverage: recorded and missing data',
      facts([
        ['launches', `${count(c.launches_seen)} recorded${c.launches_counted > 0 ? ` of ${count(c.launches_counted)} counted (${percent(c.launches_seen / c.launches_counted)})` : "; the program's launches were not counted"}` +
                     `${c.launches_lost > 0 ? `, ${count(c.launches_lost)} lost` : ', none known to be lost'}${c.launches_sampled_out > 0 ? `, ${count(c.launches_sampled_out)} sampled out` : ''}`],
        ['sampled', c.sampling && c.launches_sampled_out >= 0.5 ? `recording was on for ${percent(c.sampling.recorded_ns / c.sampling.governed_ns)} of the time, in ${counted(c.sampling.windows, 'window')}: counts and times are estimates` : null],
        ['overhead', c.overhead_ns > 0 ? `${ns(c.overhead_ns)}${wall > 0 ? ` (${(100 * c.overhead_ns / wall).toFixed(2)}% of the wall time)` : ''}${c.sampling && c.sampling.hidden_ns >= 1e6 ? `, and ${ns(c.sampling.hidden_ns)} hidden by the program's waits for a device` : ''}` : null],
        ['profile', el('span', {id: `profile-${doc.profile.id}`}, [doc.profile.id, ...doc.profile.files].join(' '))],
        ['recorded by', doc.source],
        ['recorded at', environment.recorded_at],
        ['build', environment.build],
        ['host', [environment.host_os, environment.host_cpu].filter(Boolean).join(', ')],
      ]),
      c.notes.map((note) => el('p', {class: 'warning'}, `${words(note.cause)}: ${note.text}${note.count > 0 ? ` (${count(note.count)})` : ''}${note.seconds > 0 ? ` (${ns(note.seconds * 1e9)})` : ''}`)),
      limits.length ? [el('h3', null, 'Not known'), el('ul', null, limits.map((text) => el('li', null, text)))] : null,
      environment.devices && environment.devices.length ? [el('h3', null, 'Devices'), table([['id'], ['name'], ['arch'], ['units', 1], ['driver'], ['toolkit']],
        [...new Map(environment.devices.map((d) => {
          // Each rank's recording lists the devices of its host: the same row is shown once.
          const row = [d.id || '', d.name || '', d.arch || '', d.compute_units ? String(d.compute_units) : '', d.driver || '', d.toolkit || ''];
          return [row.join('\n'), row];
        })).values()])] : null,
      doc.processes.length ? [el('h3', null, 'Processes'), table([['pid', 1], ['rank', 1], ['captured by'], ['command'], ['']],
        doc.processes.map((p) => [String(p.pid), p.rank === null ? '' : String(p.rank), p.layer, el('span', {class: 'name'}, p.command), p.complete || (doc.source && doc.source !== 'purlin') ? '' : 'cut short']))] : null,
      doc.page.processes_left_out > 0 ? el('p', {class: 'soft'}, `and ${count(doc.page.processes_left_out)} more ${noun_for(doc.page.processes_left_out, 'process')}`) : null);
  }

  const sections = [kernel_table.render(), roofline.render(), timeline.render(), steps.render(), copies(), waits(), coverage()].filter(Boolean);
  const names = {kernels: 'Kernels', roofline: 'Roofline', timeline: 'Timeline', steps: 'Steps', copies: 'memcpy, memset', waits: 'Waits', coverage: 'Coverage'};
  const [first, ...others] = doc.findings;
  document.body.replaceChildren(
    el('a', {class: 'skip', href: '#kernels'}, 'Skip to the kernels'),
    el('header', {class: 'top'},
      el('h1', null, doc.command ? el('code', null, `$ ${doc.command}`) : 'Purlin report'),
      el('div', {class: 'soft'}, [...new Set((environment.devices || []).map((d) => [d.name, d.arch, d.driver ? (d.driver === d.toolkit ? d.driver : `driver ${d.driver}`) : ''].filter(Boolean).join(', ')))].join('; ')),
      doc.coverage.partial ? el('p', {class: 'warning'}, 'Partial profile: it was damaged or cut short. What follows is what was recorded up to the last complete part.') : null,
      el('p', {class: 'finding'}, first.text),
      advice(),
      others.length ? el('ul', {class: 'findings'}, others.slice(0, 3).map((finding) => el('li', null, finding.text))) : null,
      tiles()),
    el('nav', {class: 'jump', 'aria-label': 'sections'}, el('ul', null, sections.map((s) => el('li', null, el('a', {href: `#${s.id}`}, names[s.id]))))),
    el('main', null, sections),
    el('footer', null, `Purlin ${doc.tool_version}. Everything is in this file; it loads nothing.`),
    tip,
    document.getElementById('purlin-report'));
  timeline.redraw();
  kernel_table.follow();
})();
