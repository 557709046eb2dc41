// SPDX-License-Identifier: Apache-2.0
// The page of `purlin serve`: the fleet's kernels, what got slower, nodes and the backlog, from the
// server's API (docs/formats/server.md). A separate script: it needs no charts and no timeline.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as f from "../format";
import { choose, chosen, type Choice as ThemeChoice } from "../theme";
import { Choice, Empty, hue, Loading, Meter, Notice, Section, ShareBar, Stat } from "../ui";
import { adjust, go, link, place } from "../url";
import { Refused, setToken, token, useAnswer } from "./api";

const dimensions = ["model", "role", "build", "driver", "runtime", "job", "node"];
const ranges: [string, string][] = [["-1d", "day"], ["-7d", "week"], ["-30d", "month"]];
const seconds = (value: number) => f.ns(value * 1e9);
const relative = (ratio: number | null | undefined) => (ratio == null ? "–" : `${ratio >= 1 ? "+" : ""}${(100 * (ratio - 1)).toFixed(1)} %`);

function filters(): Record<string, string> {
  const q = place.value.query, out: Record<string, string> = { begin: q.begin || "-7d" };
  for (const d of [...dimensions, "kernel"]) if (q[d]) out[d] = q[d];
  return out;
}

function Filters() {
  const [open, setOpen] = useState(""), query = place.value.query;
  const values = useAnswer(open ? "query/values" : "", { dimension: open, begin: query.begin || "-7d" });
  return (
    <div class="filters">
      <Choice label="time" value={query.begin || "-7d"} options={ranges} onChange={(v) => adjust({ begin: v === "-7d" ? "" : v })} />
      {dimensions.map((d) => <label>{d}<select value={query[d] ?? ""} onFocus={() => setOpen(d)} onChange={(e) => adjust({ [d]: e.currentTarget.value })}>
        <option value="">all</option>{[...new Set([...(query[d] ? [query[d]] : []), ...(open === d ? values.data?.values ?? [] : [])])].map((v: string) => <option value={v}>{v || "(not known)"}</option>)}</select></label>)}
      {query.kernel && <button type="button" onClick={() => adjust({ kernel: "" })}>kernel: {query.kernel} ×</button>}
    </div>
  );
}

function Coverage(props: { coverage: any }) {
  const c = props.coverage;
  if (!c) return null;
  const thin = c.seen_share != null && c.seen_share < 0.5;
  return <Notice tone={thin || c.lost_share > 0.01 ? "warn" : "info"}>
    {f.plural(c.nodes, "node")}, {f.plural(c.devices, "device")}; {c.seen_share == null ? "the recorded share is not known" : `${f.percent(c.seen_share)} of the busy time was recorded`}; {f.count(c.launches_lost)} launches lost ({f.percent(c.lost_share)}); capture took {seconds(c.overhead_s)}{c.bad_timestamps ? `; ${f.count(c.bad_timestamps)} records had a wrong clock` : ""}{(c.why ?? []).length ? `; ${c.why.join("; ")}` : ""}.
  </Notice>;
}

function Kernels() {
  const all = filters(), top = useAnswer("query/top", { ...all, limit: "100" }), slower = useAnswer("query/slower", all);
  if (!top.data) return <Waiting of={top} />;
  const t = top.data, most = Math.max(...t.kernels.map((k: any) => k.share), 1e-9);
  return (
    <div class="view">
      <Filters />
      <Coverage coverage={t.coverage} />
      <dl class="stats"><Stat name="GPU time" value={seconds(t.gpu_s)} /><Stat name="kernels" value={f.count(t.kernel_count)} /><Stat name="launches" value={t.launches < 1e7 ? f.count(t.launches) : f.si(t.launches, "")} />
        {(t.roles ?? []).slice(0, 4).map((r: any) => <Stat name={r.role} value={f.percent(r.share)} note={seconds(r.gpu_s)} />)}</dl>
      <Section title="Got slower" class="wide" note={slower.data ? `${f.count(slower.data.tested)} kernels tested; an alarm is beyond the history's noise` : undefined}>
        <Refusal of={slower} />
        {slower.data && slower.data.kernels.length === 0 && !slower.data.refused && <p class="faint">No kernel got slower beyond its history.{slower.data.thin?.length ? ` ${f.plural(slower.data.thin.length, "kernel")} had too little data.` : ""}</p>}
        {slower.data?.kernels.length > 0 && <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">kernel</th><th class="left">GPU</th><th class="left">certainty</th><th>change</th><th>lost GPU time</th><th class="left">since</th><th>nodes</th><th class="left">environment</th></tr></thead><tbody>
          {slower.data.kernels.map((k: any) => <tr><td class="left"><a href={link("kernels", "", { ...place.value.query, kernel: k.kernel })}>{k.kernel}</a></td><td class="left">{k.gpu}</td><td class="left"><span class={"verdict " + (k.certainty === "alarm" ? "regression" : "inconclusive")}>{k.certainty}</span></td><td><b class="bad">{relative(k.ratio)}</b><br /><small class="faint">{relative(k.ratio_low)} to {relative(k.ratio_high)}</small></td><td>{seconds(k.lost_gpu_s)}</td><td class="left">{f.date(k.at)}</td><td>{f.count(k.nodes)}</td><td class="left why">{(k.marks ?? []).map((m: any) => `${m.what}: ${m.before} → ${m.after}`).join("; ") || k.why_suspect}{k.bisect && <code>{k.bisect}</code>}</td></tr>)}
        </tbody></table></div>}
      </Section>
      <Section title="Kernels" class="wide" note={`${f.count(t.kernels.length)} of ${f.plural(t.kernel_count, "kernel")}, by GPU time`}>
        <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th>#</th><th class="left">kernel</th><th class="left">role</th><th class="left">share</th><th>cum.</th><th>GPU time</th><th>launches</th><th>recorded</th><th>p50</th><th>p95</th></tr></thead><tbody>
          {t.kernels.map((k: any, i: number) => <tr><td class="faint">{i + 1}</td><td class="left clipped" title={k.raw_kernel ?? k.kernel}><i class={"dot " + hue(k.role)} /><a href={link("kernels", "", { ...place.value.query, kernel: k.kernel })}>{k.kernel}</a></td><td class="left">{k.role}</td><td class="left"><ShareBar value={k.share} of={most} label={f.percent(k.share)} /></td><td class="faint">{f.percent(k.cumulative_share, 0)}</td><td>{seconds(k.gpu_s)}</td><td>{f.count(k.launches)}</td><td>{f.count(k.recorded)}</td><td>{f.ns(k.p50_ns)}</td><td>{f.ns(k.p95_ns)}</td></tr>)}
        </tbody></table></div>
      </Section>
      {all.kernel && <History kernel={all.kernel} />}
    </div>
  );
}

function History(props: { kernel: string }) {
  const answer = useAnswer("query/history", { ...filters(), step: "day" }), points: any[] = answer.data?.points ?? [];
  if (points.length < 2) return null;
  const most = Math.max(...points.map((p) => p.p95_ns)), width = 900, height = 160;
  const x = (i: number) => 60 + (width - 80) * i / (points.length - 1), y = (v: number) => 10 + (height - 34) * (1 - v / most);
  const line = (key: string) => points.map((p, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(p[key]).toFixed(1)}`).join("");
  return <Section title={props.kernel} class="wide" note="median and 95th percentile by day"><svg class="days" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Median ${f.ns(points[0].p50_ns)} to ${f.ns(points[points.length - 1].p50_ns)}`}>
    <path class="p95" d={line("p95_ns")} /><path class="p50" d={line("p50_ns")} />{points.map((p, i) => <circle cx={x(i)} cy={y(p.p50_ns)} r="3"><title>{`${f.date(p.begin)}: p50 ${f.ns(p.p50_ns)}, p95 ${f.ns(p.p95_ns)}, ${f.count(p.launches)} launches`}</title></circle>)}
    <text x="56" y={y(most) + 4} text-anchor="end">{f.ns(most)}</text><text x="56" y={y(0)} text-anchor="end">0</text><text x={x(0)} y={height - 4}>{String(points[0].begin).slice(0, 10)}</text><text x={x(points.length - 1)} y={height - 4} text-anchor="end">{String(points[points.length - 1].begin).slice(0, 10)}</text></svg></Section>;
}

function Nodes() {
  const nodes = useAnswer("nodes", {}), stragglers = useAnswer("query/stragglers", { begin: place.value.query.begin || "-7d" });
  if (!nodes.data) return <Waiting of={nodes} />;
  const list: any[] = nodes.data.nodes, now = Date.now();
  const quiet = (n: any) => now - Date.parse(n.last_received) > 15 * 60e3;
  const shedOf = (n: any) => (n.shed ?? []).reduce((sum: number, s: any) => sum + (s.rows ?? 0) + (s.batches ?? 0), 0);
  return (
    <div class="view">
      <dl class="stats"><Stat name="nodes" value={f.count(list.length)} /><Stat name="silent for 15 min" value={f.count(list.filter(quiet).length)} tone={list.some(quiet) ? "warn" : "good"} />
        <Stat name="missing batches" value={f.count(list.reduce((s, n) => s + n.missing_batches, 0))} /><Stat name="in quarantine" value={f.count(list.reduce((s, n) => s + n.quarantined_batches, 0))} />
        <Stat name="greatest collector share" value={f.percent(Math.max(0, ...list.map((n) => n.collector_cpu_share)), 2)} title="CPU time of the collector, of one core" /></dl>
      <Section title="Stragglers" class="wide" note="Devices slower than their peers, or than their own past">
        <Refusal of={stragglers} />
        {stragglers.data && !stragglers.data.stragglers?.length && !stragglers.data.refused && <p class="faint">None among {f.plural(stragglers.data.devices ?? 0, "device")}.</p>}
        {stragglers.data?.stragglers?.length > 0 && <table class="plain"><thead><tr><th class="left">node</th><th class="left">device</th><th class="left">GPU</th><th>to peers</th><th>to its past</th><th>peers</th><th>lost GPU time</th><th class="left">worst kernel</th></tr></thead><tbody>{stragglers.data.stragglers.map((s: any) => <tr><td class="left">{s.node}</td><td class="left mono">{s.device}</td><td class="left">{s.gpu}</td><td class={s.slow_to_peers ? "bad" : ""}>{f.percent(s.relative_score)}</td><td class={s.slow_to_past ? "bad" : ""}>{f.percent(s.individual_score)}</td><td>{f.count(s.peers)}</td><td>{seconds(s.lost_gpu_s)}</td><td class="left">{s.worst_kernel}</td></tr>)}</tbody></table>}
      </Section>
      <Section title="Nodes" class="wide"><div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">node</th><th class="left">version</th><th class="left">last received</th><th>clock</th><th>batches</th><th>missing</th><th>quarantined</th><th>too old</th><th>shed</th><th>collector CPU</th><th>memory</th></tr></thead><tbody>
        {list.map((n) => <tr class={quiet(n) ? "uncertain" : ""}><td class="left"><a href={link("kernels", "", { node: n.node })}>{n.node}</a></td><td class="left">{n.tool_version}</td><td class="left">{f.date(n.last_received)}</td><td>{seconds(n.skew_s)}</td><td>{f.count(n.batches)}</td><td class={n.missing_batches ? "bad" : ""}>{f.count(n.missing_batches)}</td><td class={n.quarantined_batches ? "bad" : ""}>{f.count(n.quarantined_batches)}</td><td>{f.count(n.too_old_batches)}</td><td title={(n.shed ?? []).map((s: any) => Object.entries(s).map(([k, v]) => `${k} ${v}`).join(", ")).join("; ")}>{f.count(shedOf(n))}</td><td>{f.percent(n.collector_cpu_share, 2)}</td><td>{f.bytes(n.collector_rss_bytes)}</td></tr>)}
      </tbody></table></div></Section>
    </div>
  );
}

function Backlog() {
  const answer = useAnswer("backlog", {});
  if (!answer.data) return <Waiting of={answer} />;
  const tasks: any[] = answer.data.tasks, states = [...new Set(tasks.map((t) => t.state))];
  const name = (t: any) => t.kernel || t.op || t.id;
  return (
    <div class="view">
      <dl class="stats">{states.map((s) => <Stat name={f.words(s)} value={f.count(tasks.filter((t) => t.state === s).length)} />)}<Stat name="GPU time spent today" value={seconds(answer.data.tuning_gpu_s_today)} /><Stat name="possible saving" value={f.ns(tasks.reduce((s, t) => s + (t.saving_ns || 0), 0))} title="GPU time × headroom of all tasks" /></dl>
      <Section title="Backlog" class="wide" note="What the pool tunes, in order of the possible saving"><div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">task</th><th class="left">problem</th><th class="left">device</th><th class="left">state</th><th class="left">worker</th><th>GPU time</th><th>headroom</th><th>saving</th><th>attempts</th><th class="left">until</th><th class="left">outcome</th></tr></thead><tbody>
        {tasks.map((t) => <tr class={t.stale ? "uncertain" : ""}><td class="left">{name(t)}</td><td class="left mono clipped">{typeof t.problem === "object" && t.problem ? Object.entries(t.problem).map(([k, v]) => `${k}=${v}`).join(",") : t.shape ?? ""}</td><td class="left">{t.device ?? t.gpu ?? ""}</td><td class="left"><span class="chip">{f.words(t.state)}</span></td><td class="left">{t.worker}</td><td>{f.ns(t.gpu_time_ns)}{t.gpu_time_assumed ? " (assumed)" : ""}</td><td><Meter value={t.headroom} /></td><td>{f.ns(t.saving_ns)}</td><td>{f.count(t.attempts)}</td><td class="left">{t.until ? f.date(t.until) : ""}</td><td class="left">{t.outcome}</td></tr>)}
      </tbody></table></div>{tasks.length === 0 && <p class="faint">The backlog is empty.</p>}</Section>
    </div>
  );
}

function Compare() {
  const q = place.value.query, [by, setBy] = useState(q.by || "build"), ready = q.before && q.after;
  const values = useAnswer(by === "time" ? "" : "query/values", { dimension: by, begin: q.begin || "-7d" });
  const answer = useAnswer(ready ? "query/compare" : "", { ...filters(), by, before: q.before ?? "", after: q.after ?? "" });
  const options: string[] = values.data?.values ?? [];
  const rows: any[] = (answer.data?.kernels ?? []).filter((k: any) => q.all === "1" || ["slower", "faster"].includes(k.change));
  return (
    <div class="view">
      <Filters />
      <Section title="Compare" class="wide" tools={<><label>by<select value={by} onChange={(e) => { setBy(e.currentTarget.value); adjust({ by: e.currentTarget.value, before: "", after: "" }); }}>{["build", "driver", "runtime", "job"].map((d) => <option>{d}</option>)}</select></label>
        {["before", "after"].map((side) => <label>{side}<select value={q[side] ?? ""} onChange={(e) => adjust({ [side]: e.currentTarget.value })}><option value="">choose</option>{options.map((v) => <option>{v}</option>)}</select></label>)}
        <Choice label="rows" value={q.all === "1" ? "1" : ""} options={[["", "significant"], ["1", "all"]]} onChange={(v) => adjust({ all: v })} /></>}>
        {!ready && <p class="faint">Choose what to compare, before and after.</p>}
        <Refusal of={answer} />
        {answer.data && !answer.data.refused && <table class="plain"><thead><tr><th class="left">kernel</th><th class="left">GPU</th><th class="left">verdict</th><th>change</th><th>interval</th><th>nodes</th><th>GPU time before</th><th>after</th></tr></thead><tbody>{rows.map((k) => <tr><td class="left">{k.kernel}</td><td class="left">{k.gpu}</td><td class="left"><span class={"verdict " + (k.change === "slower" ? "regression" : k.change === "faster" ? "improvement" : "")}>{f.words(k.change)}</span></td><td><b>{relative(k.ratio)}</b></td><td class="faint">{k.ratio_low != null ? `${relative(k.ratio_low)} to ${relative(k.ratio_high)}` : k.refused?.why}</td><td>{f.count(k.nodes_paired)}</td><td>{seconds(k.gpu_s_before)}</td><td>{seconds(k.gpu_s_after)}</td></tr>)}</tbody></table>}
        {answer.data && rows.length === 0 && !answer.data.refused && <p class="faint">No kernel differs beyond the noise of its nodes.</p>}
      </Section>
    </div>
  );
}

function Refusal(props: { of: { data?: any; error?: unknown } }) {
  if (props.of.error) return <Notice tone="warn">{String((props.of.error as Error).message)}</Notice>;
  return props.of.data?.refused ? <Notice tone="warn">No conclusion: {props.of.data.refused.why}</Notice> : null;
}

function Waiting(props: { of: { error?: unknown } }) {
  const [text, setText] = useState("");
  if (!props.of.error) return <Loading />;
  if (props.of.error instanceof Refused && [401, 403].includes(props.of.error.status))
    return <form class="empty" onSubmit={(e) => { e.preventDefault(); setToken(text); }}><h2>This server wants a token</h2><p>{props.of.error.message}</p><p><label>token of scope read <input type="password" autocomplete="off" value={text} onInput={(e) => setText(e.currentTarget.value)} /></label> <button>Open</button></p><p>It is kept until this tab is closed.</p></form>;
  return <Empty title="The server did not answer as expected">{String((props.of.error as Error).message)}</Empty>;
}

const views: [string, string, () => any][] = [["kernels", "Kernels", Kernels], ["compare", "Compare", Compare], ["nodes", "Nodes", Nodes], ["backlog", "Backlog", Backlog]];
function App() {
  const [, name, View] = views.find(([v]) => v === place.value.view) ?? views[0];
  void token.value;
  useEffect(() => { document.title = `${name} · Purlin fleet`; }, [name]);
  return <>
    <header class="top"><a class="brand" href={link("kernels")} onClick={(e) => { e.preventDefault(); go("kernels"); }}>purlin</a><nav aria-label="Views">{views.map(([v, text]) => <a href={link(v)} aria-current={text === name ? "page" : undefined}>{text}</a>)}</nav><span class="title">fleet at {location.host}</span><Choice<ThemeChoice> label="Colours" value={chosen.value} options={[["auto", "auto"], ["light", "light"], ["dark", "dark"]]} onChange={choose} /></header>
    <main id="main" tabIndex={-1}><View /></main>
  </>;
}
render(<App />, document.body.appendChild(document.createElement("div")));
