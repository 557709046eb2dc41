// SPDX-License-Identifier: Apache-2.0
// Tuning run: how the search converged, which parameters mattered, the configs, winner and ties.
import { useMemo, useState } from "preact/hooks";
import { axis, Chart, color, logAxis, wholeNumbers } from "../chart";
import { head, names } from "../data";
import * as f from "../format";
import { connection, followed, since } from "../live";
import { useWidth } from "../series";
import { Empty, First, Loading, Section, ShareBar, Stat, useLoaded, useTried } from "../ui";
import { adjust, go, link, place } from "../url";
import { against, deviceOf, fastest, searched, timedRun, worked } from "./runs";

const ms = (value: number | null | undefined) => f.ns(value == null ? null : value * 1e6);
const configText = (config: any) => f.pairs(config, " ");
// Without the parameters that all configs agree in.
const varied = (config: any, constant: Set<string>) => Object.entries(config ?? {}).filter(([k]) => !constant.has(k)).map(([k, v]) => `${k}=${v}`).join(" ");

// Share of the variance of log time that a parameter explains alone, among what was measured.
export function importance(evaluations: any[]): [string, number][] {
  const list = evaluations.filter(worked);
  if (list.length < 2) return [];
  const logs = list.map((e) => Math.log(searched(e))), mean = logs.reduce((a, b) => a + b, 0) / logs.length;
  const total = logs.reduce((sum, v) => sum + (v - mean) ** 2, 0);
  return Object.keys(list[0].config).map((name): [string, number] => {
    const groups = new Map<string, [number, number]>();
    list.forEach((e, i) => { const key = String(e.config[name]), g = groups.get(key) ?? [0, 0]; groups.set(key, [g[0] + 1, g[1] + logs[i]]); });
    let between = 0;
    for (const [n, sum] of groups.values()) between += n * (sum / n - mean) ** 2;
    return [name, groups.size > 1 && total > 1e-12 ? Math.min(1, between / total) : 0];
  }).filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1]);
}

function Convergence(props: { evaluations: any[]; byCost: boolean }) {
  const data = useMemo(() => {
    const rows = props.evaluations.map((e, i) => ({ e, x: props.byCost ? e.cumulative_cost_s ?? i : i + 1 }));
    let best = Infinity;
    const x: number[] = [], dots: (number | null)[] = [], line: (number | null)[] = [], bad: (number | null)[] = [];
    const worst = Math.max(...props.evaluations.filter(worked).map(searched), 1e-9);
    for (const { e, x: at } of rows) {
      const ok = worked(e);
      if (ok && !e.raced_out) best = Math.min(best, searched(e));
      x.push(at); dots.push(ok ? searched(e) : null); line.push(best < Infinity ? best : null); bad.push(ok ? null : worst * 1.15);
    }
    return [x, dots, bad, line] as any;
  }, [props.evaluations, props.byCost]);
  return <Chart grows key={String(props.byCost)} label={`Convergence over ${props.evaluations.length} evaluations`} height={300} data={data} options={() => ({
    cursor: { drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { distr: 3, range: (_u: any, low: number, high: number) => [low / 1.08, high * 1.08] } },
    axes: [axis((_, t) => t.map((v) => (props.byCost ? f.ns(v * 1e9) : f.count(v))), { label: props.byCost ? "measuring time" : "evaluation", size: 30, ...(props.byCost ? {} : wholeNumbers) }), axis((_, t) => t.map((v) => (v == null ? "" : ms(v))), { ...logAxis, size: 64 })],
    series: [{ label: props.byCost ? "cost" : "evaluation", value: (_u: any, v: number) => (v == null ? "–" : props.byCost ? f.ns(v * 1e9) : f.count(v)) },
      { label: "time", stroke: color("--ink-3"), width: 0, paths: () => null, points: { show: true, size: 5, fill: color("--ink-3"), stroke: color("--ink-3") }, value: (_u: any, v: number) => ms(v) },
      { label: "failed", stroke: color("--bad"), width: 0, paths: () => null, points: { show: true, size: 5, fill: color("--surface"), stroke: color("--bad") }, value: (_u: any, v: number) => (v == null ? "–" : "failed") },
      { label: "best so far", stroke: color("--accent"), width: 2, points: { show: false }, value: (_u: any, v: number) => ms(v), paths: stepped }],
  } as any)} />;
}
const stepped = (u: any, series: number, i0: number, i1: number) => {
  const stroke = new Path2D();
  let last: number | null = null;
  for (let i = i0; i <= i1; ++i) {
    const v = u.data[series][i];
    if (v == null) continue;
    const x = u.valToPos(u.data[0][i], "x", true), y = u.valToPos(v, "y", true);
    if (last === null) stroke.moveTo(x, y); else { stroke.lineTo(x, last); stroke.lineTo(x, y); }
    last = y;
  }
  return { stroke, fill: null, clip: null, flags: 1 };
};

function Parallel(props: { evaluations: any[]; winners: string[]; important: [string, number][] }) {
  const [only, setOnly] = useState<{ axis: string; value: string } | null>(null), [place, width] = useWidth<HTMLDivElement>(560);
  const list = props.evaluations.filter(worked);
  const axes = props.important.map(([name, share]) => ({ name, share, values: [...new Set(list.map((e) => e.config[name]))].sort((a: any, b: any) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)))) })).filter((a) => a.values.length > 1).slice(0, 12);
  if (axes.length < 2) return <div ref={place} />;
  const height = 320, left = 40, right = 110, top = 40, bottom = 20;
  const x = (n: number) => left + (width - left - right) * n / axes.length, crowded = axes.length > 8;
  const y = (n: number, v: any) => { const a = axes[n]; return top + (height - top - bottom) * (a.values.length - 1 - a.values.indexOf(v)) / (a.values.length - 1); };
  const times = list.map(searched), low = Math.log(Math.min(...times)), high = Math.log(Math.max(...times));
  const yt = (t: number) => top + (height - top - bottom) * (Math.log(t) - low) / (high - low || 1);
  const sorted = [...list].sort((a, b) => searched(b) - searched(a));
  const step = Math.ceil(sorted.length / 600);
  const shown = sorted.filter((e, i) => i % step === 0 || props.winners.includes(configText(e.config)) || i >= sorted.length - 20);
  return (
    <div ref={place}><svg class="parallel" width={width} height={height} role="group" aria-label={`Parallel coordinates of ${shown.length} configs; press a value to keep its configs`}>
      {shown.map((e) => {
        const top1 = props.winners.includes(configText(e.config)), off = only && String(e.config[only.axis]) !== only.value;
        const rank = (Math.log(searched(e)) - low) / (high - low || 1), tone = rank < 0.1 ? "fast" : rank < 0.4 ? "middle" : "slow";
        return <path class={`config ${tone}` + (top1 ? " winner" : "") + (off ? " off" : "")} d={axes.map((a, n) => `${n ? "L" : "M"}${x(n)} ${y(n, e.config[a.name])}`).join("") + `L${x(axes.length)} ${yt(searched(e))}`}><title>{`${ms(searched(e))}: ${configText(e.config)}`}</title></path>;
      })}
      {axes.map((a, n) => <g key={a.name}>
        <line class="axis" x1={x(n)} x2={x(n)} y1={top} y2={height - bottom} />
        <text class="axis-title" x={x(n)} y={crowded && n % 2 ? 12 : 26} text-anchor="middle">{a.name.length > 18 ? a.name.slice(0, 17) + "…" : a.name}</text>
        {a.values.slice(0, 40).map((v: any) => <text class={"value" + (only?.axis === a.name && only.value === String(v) ? " chosen" : "")} role="button" tabindex={0} aria-label={`${a.name} ${v}`} x={x(n) + 5} y={y(n, v) + 4}
          onClick={() => setOnly(only?.axis === a.name && only.value === String(v) ? null : { axis: a.name, value: String(v) })} onKeyDown={(e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); setOnly(only?.value === String(v) && only.axis === a.name ? null : { axis: a.name, value: String(v) }); } }}>{String(v)}</text>)}
      </g>)}
      <g><line class="axis" x1={x(axes.length)} x2={x(axes.length)} y1={top} y2={height - bottom} /><text class="axis-title" x={x(axes.length)} y={26} text-anchor="middle">time</text>
        <text class="value" x={x(axes.length) + 6} y={top + 4}>{ms(Math.exp(low))}</text><text class="value" x={x(axes.length) + 6} y={height - bottom + 4}>{ms(Math.exp(high))}</text></g>
    </svg></div>
  );
}

function Margin(props: { doc: any }) {
  const d = props.doc, rows: [string, any, string][] = [];
  if (d.best) rows.push(["winner", d.best, "winner"]);
  for (const x of (d.finals?.finalists ?? []).slice(1, 6)) rows.push([configText(x.config) === configText(d.default?.config) ? "default" : "finalist", x, ""]);
  if (d.default && !rows.some(([name]) => name === "default") && configText(d.default.config) !== configText(d.best?.config)) rows.push(["default", d.default, "default"]);
  if (rows.length < 2) return null;
  // Only what these configs differ in: the rest would hide it.
  const first = rows[0][1].config ?? {}, alike = new Set(Object.keys(first).filter((k) => rows.every(([, x]) => x.config?.[k] === first[k])));
  const most = Math.max(...rows.map(([, x]) => x.interval_ms?.[1] ?? x.time_ms)) * 1.05, least = Math.min(...rows.map(([, x]) => x.interval_ms?.[0] ?? x.time_ms)) * 0.97;
  const at = (v: number) => `${100 * (v - least) / (most - least)}%`;
  return (
    <table class="plain margins"><tbody>{rows.map(([name, x, style]) => (
      <tr class={style}><th class="left">{name}</th><td class="left mono wrap" title={configText(x.config)}>{varied(x.config, alike)}</td>
        <td class="margin-cell"><span class="margin">{x.interval_ms && <i style={{ left: at(x.interval_ms[0]), width: `${100 * (x.interval_ms[1] - x.interval_ms[0]) / (most - least)}%` }} />}<b style={{ left: at(x.time_ms) }} /></span></td>
        <td>{ms(x.time_ms)}</td><td>{f.times(x.time_ms / (d.best?.time_ms || x.time_ms))}</td><td class="faint optional">{x.gflops ? `${f.digits(x.gflops)} GFLOP/s` : x.gbytes_per_s ? `${f.digits(x.gbytes_per_s)} GB/s` : ""}</td></tr>
    ))}</tbody></table>
  );
}

const titleOf = (doc: any) => [doc.kernel, f.pairs(doc.problem)].filter(Boolean).join(" ");

// Other runs of the page for the same problem on the same GPU: another kernel, a library's, another day.
function OtherRuns(props: { runs: { name: string; doc: any }[]; here: string }) {
  const own = props.runs.find((r) => r.name === props.here)?.doc, mine = own && fastest(own);
  const rivals = props.runs.filter(({ name, doc }) => own && name !== props.here && fastest(doc) && f.pairs(doc.problem) === f.pairs(own.problem) && deviceOf(doc) === deviceOf(own));
  if (!mine || !rivals.length) return null;
  const all = props.runs.map((r) => r.doc);
  return (
    <Section title="Other runs of this problem" class="wide" note="Best times on the same model of GPU, measured in runs of their own: a paired run (purlin guard compare) decides.">
      <table class="plain narrow"><thead><tr><th class="left">kernel</th><th class="left">spec</th><th>best</th><th><abbr class="tip" title="Its best time over that of this run">against this run</abbr></th><th><abbr class="tip" title="Speedup of its winner over its default config; below it, the default's time">over its default</abbr></th><th><abbr class="tip" title="Speedup of its winner over what a vendor's library chooses for the problem">over library</abbr></th></tr></thead><tbody>
        {rivals.map(({ name, doc }) => { const ratio = fastest(doc) / mine, to = against(doc, all); return <tr><td class="left"><a href={link("tuning", name)}>{doc.kernel}</a></td><td class="left mono faint">{doc.spec?.file ?? ""}</td><td>{ms(fastest(doc))}</td><td class={ratio < 0.995 ? "bad" : ratio > 1.005 ? "good" : ""}>{f.times(ratio)}</td><td>{f.times(to.over_default)}<small class="under">{ms(doc.default?.time_ms)}</small></td><td>{to.library ? f.times(to.over_library) : timedRun(doc).library ? <span class="faint">library</span> : "–"}</td></tr>; })}
      </tbody></table>
    </Section>
  );
}

function Live(props: { end: string | null }) {
  const state = connection.value;
  if (props.end) return <span class="chip" role="status" title="The session ended. Its finals are not in the journal: purlin tune --json has them.">ended: {props.end}</span>;
  return <span class={"chip" + (state === "open" ? " live" : "")} role="status">{state === "open" ? "live" : state === "lost" ? `connection lost at ${new Date(since.value).toTimeString().slice(0, 8)}, trying again` : "as of now"}</span>;
}

export function Tuning() {
  const list = names("tune"), chosen = list.includes(place.value.arg) ? place.value.arg : list[0];
  const d = useLoaded(() => followed(chosen ?? "none"), [chosen])?.value;
  const runs = useTried(async () => (list.length > 1 ? Promise.all(list.map(async (name) => ({ name, doc: await head(name) }))) : []), []).value ?? [];
  const evaluations: any[] = d?.evaluations ?? [];
  const constant = useMemo(() => { const first = evaluations[0]?.config ?? {}; return new Set(Object.keys(first).filter((k) => evaluations.length > 1 && evaluations.every((e) => e.config?.[k] === first[k]))); }, [d]);
  const important = useMemo(() => importance(evaluations), [d]);
  if (!list.length) return <Empty title="No tuning run">Write one with <code>purlin tune SPEC --html page.html</code>, or open its JSON or its session's folder with <code>purlin view</code>.</Empty>;
  if (!d) return <Loading />;
  const good = evaluations.filter(worked), best = d.best ?? (good.length ? [...good].sort((a, b) => searched(a) - searched(b))[0] : null);
  const winners = [configText(best?.config), ...(d.ties ?? []).map(configText)];
  const problem = f.pairs(d.problem, ", ");
  const ranked = [...evaluations].filter((e) => e.rank > 0 || worked(e)).sort((a, b) => (a.rank ?? 1e9) - (b.rank ?? 1e9) || searched(a) - searched(b));
  const to = against(d, runs.map((r) => r.doc)), byCost = place.value.query.x === "cost";
  const failures = Object.entries<any>(d.failures ?? {});
  return (
    <div class="view tuning">
      <header class="view-head"><h1>{d.kernel}{d.of_journal && <Live end={d.end} />}</h1><p class="faint">{[String(d.device ?? "").replace(/^replay:.*\//, "replay:"), problem, `strategy ${d.strategy_used ?? d.strategy ?? "–"}`, d.seed != null && `seed ${d.seed}`, d.budget && `budget ${d.budget}`].filter(Boolean).join(" · ")}</p>
        {list.length > 1 && <label>run<select value={chosen} onChange={(e) => go("tuning", e.currentTarget.value)}>{list.map((n) => { const run = runs.find((r) => r.name === n)?.doc; return <option value={n}>{run ? titleOf(run) : n}</option>; })}</select></label>}</header>
      {evaluations.length === 0 ? <Empty title="No evaluation yet">The session has begun and measured nothing so far. Each evaluation appears here when it is done.</Empty> : <>
        <dl class="stats">
          <Stat name={d.best ? "best" : "best so far"} value={ms(best?.time_ms)} note={d.best?.interval_ms ? `${ms(d.best.interval_ms[0])} to ${ms(d.best.interval_ms[1])}` : undefined} tone="good" />
          {d.default && <Stat name="default" value={ms(d.default.time_ms)} note={d.default.interval_ms ? `${ms(d.default.interval_ms[0])} to ${ms(d.default.interval_ms[1])}` : undefined} />}
          {d.speedup_over_default != null && <Stat name="against default" value={f.times(d.speedup_over_default)} tone={d.speedup_over_default > 1.02 ? "good" : ""} note={d.best?.is_default ? "the default stays" : undefined} />}
          <Stat name="against library" value={to.library ? f.times(to.over_library) : <span class="faint">{timedRun(d).library ? "is one" : "no run"}</span>} tone={(to.over_library ?? 0) > 1.02 ? "good" : to.over_library && to.over_library < 0.98 ? "bad" : ""} title="Speedup over what a vendor's library chooses for the same problem on the same model of GPU; of a run of a spec with [library], given together with this one" note={to.library ? `${to.library.library}, ${ms(to.library.time_ms)}` : timedRun(d).library ? timedRun(d).library : "of one for this problem"} />
          <Stat name="evaluations" value={f.count(evaluations.length)} note={d.space?.valid ? `of ${f.count(d.space.valid)} valid configs` : undefined} />
          <Stat name="worked" value={f.percent(good.length / evaluations.length, 0)} note={failures.length ? failures.map(([s, x]) => `${x.count ?? x} ${s}`).join(", ") : undefined} />
          <Stat name="ties" value={f.count((d.ties ?? []).length)} note="equal to the best within noise" />
          {d.worst_over_best && <Stat name="worst over best" value={f.times(d.worst_over_best)} note="by the search's times" />}
        </dl>
        <Section title="Convergence" class="wide" note="Times of the search. The finals measure the fastest again and decide."
          tools={<div class="choice" role="group" aria-label="x axis">{[["", "evaluations"], ["cost", "measuring time"]].map(([v, t]) => <button type="button" aria-pressed={(v === "cost") === byCost} onClick={() => adjust({ x: v })}>{t}</button>)}</div>}>
          <Convergence evaluations={evaluations} byCost={byCost} /></Section>
        <div class="columns two">
          <Section title="Parameter importance" note="Share of the variance of log time that a parameter explains alone. A hint: a search is no fair sample.">
            <table class="plain"><tbody>{important.map(([name, share]) => <tr><th class="left mono">{name}</th><td class="wide-cell"><ShareBar value={share} /></td></tr>)}</tbody></table>
            {important.length === 0 && <p class="faint">No parameter explains the times.</p>}
          </Section>
          <Section title="Margin" note="The finals, with 95 % intervals">{d.best ? <Margin doc={d} /> : <p class="faint">{d.of_journal ? <>A journal has no finals. <code>purlin tune --json</code> has them at the end.</> : "The finals have not run."}</p>}</Section>
        </div>
        <OtherRuns runs={runs} here={chosen} />
        <Section title="Configs" class="wide" note="Each line is a config, up is later in the parameter's order; the last axis is time, fast on top. The winner and its ties are drawn strongly. Press a value to keep its configs.">
          <Parallel evaluations={evaluations} winners={winners} important={important} />
          <First of={ranked} first={40} what="config">{(shown) => <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th>#</th><th>time</th><th>of best</th><th class="left">from</th><th class="left">config</th><th>registers</th><th>cost</th></tr></thead><tbody>
            {shown.map((e, i) => { const text = configText(e.config); return <tr class={winners.includes(text) ? "winner" : ""}><td>{e.rank ?? i + 1}</td><td>{e.raced_out ? "> " : ""}{ms(e.time_ms)}</td><td>{f.times(e.time_ms / (best?.time_ms || e.time_ms))}</td><td class="left faint">{i === 0 ? "best" : winners.includes(text) ? "tie" : e.from ?? "search"}</td><td class="left mono" title={text}>{varied(e.config, constant)}</td><td>{e.registers ?? "–"}</td><td>{e.cost_s != null ? f.ns(e.cost_s * 1e9) : "–"}</td></tr>; })}
          </tbody></table></div>}</First>
          {constant.size > 0 && <p class="note">The same in all configs: {[...constant].map((k) => `${k}=${evaluations[0].config[k]}`).join(", ")}</p>}
        </Section>
        {failures.length > 0 && <Section title="Failures" class="wide"><table class="plain"><tbody>{failures.map(([status, x]) => <tr><th class="left">{f.words(status)}</th><td>{f.count(x.count)}</td><td class="left mono clipped">{configText(x.first_config)}</td><td class="left faint">{x.first_message}</td></tr>)}</tbody></table></Section>}
        {d.transfer && <Section title={`Started from other runs: ${d.transfer.state}`} class="wide"><p>{d.transfer.why}</p><ul class="bullets">{(d.transfer.sources ?? []).map((s: any) => <li>{s.source} {s.device} {s.shape}: {s.configs} configs, {s.left_out} left out</li>)}</ul></Section>}
        {(d.space?.pruned ?? []).length > 0 && <Section title="Space" class="wide" note={`${f.count(d.space.cartesian)} combinations, ${f.count(d.space.valid)} valid`}><table class="plain"><tbody>{d.space.pruned.map((p: any) => <tr><td class="left mono">{p.constraint}</td><td>{f.count(p.configs)} left out</td><td class="left faint">{p.where}</td></tr>)}</tbody></table></Section>}
      </>}
    </div>
  );
}
