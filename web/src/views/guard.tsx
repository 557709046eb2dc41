// SPDX-License-Identifier: Apache-2.0
// Guard: verdicts with their intervals, pairs, history over builds with changes of level, matrix.
import { useMemo } from "preact/hooks";
import { axis, Chart, color, wholeNumbers } from "../chart";
import { head, names } from "../data";
import * as f from "../format";
import { Series, type Mark } from "../series";
import { itemName, Ratio, RatioHead } from "./verdicts";
import { Empty, First, Loading, Section, Stat, useLoaded } from "../ui";
import { adjust, place } from "../url";

const pairName = (p: any) => p.item ?? itemName(p);

function PairPlot(props: { pairs: any; item: number; name: string }) {
  const events = useMemo(() => (props.pairs.events ?? []).filter((e: any) => e.item === props.item && e.baseline), [props.pairs, props.item]);
  const data = useMemo(() => [events.map((_: any, i: number) => i + 1), events.map((e: any) => 100 * (e.current[0] / e.baseline[0] - 1))] as any, [events]);
  if (!events.length) return <p class="faint">No pair of this item is in the journal.</p>;
  const floor = props.pairs.items?.[props.item]?.floor ?? 0;
  return <Chart label={`Ratios of ${events.length} pairs of ${props.name}`} height={200} data={data} options={() => ({
    legend: { show: false }, scales: { x: { time: false, range: (_u: any, a: number, b: number) => [a - 1, b + 1] }, y: { range: (_u: any, low: number, high: number) => { const most = Math.max(Math.abs(low), Math.abs(high), 100 * floor * 1.3, 1) * 1.1; return [-most, most]; } } },
    axes: [axis((_, t) => t.map((v) => f.count(v)), { label: "pair", size: 30, ...wholeNumbers }), axis((_, t) => t.map((v) => `${v > 0 ? "+" : ""}${v} %`), { size: 56 })],
    series: [{}, { stroke: color("--accent"), width: 0, paths: () => null, points: { show: true, size: 7, fill: color("--accent") } }],
    hooks: { drawClear: [(u: any) => { const zero = u.valToPos(0, "y", true), f0 = u.valToPos(100 * floor, "y", true), f1 = u.valToPos(-100 * floor, "y", true); u.ctx.fillStyle = color("--accent-soft"); if (floor) u.ctx.fillRect(u.bbox.left, f0, u.bbox.width, f1 - f0); u.ctx.strokeStyle = color("--ink-3"); u.ctx.beginPath(); u.ctx.moveTo(u.bbox.left, zero); u.ctx.lineTo(u.bbox.left + u.bbox.width, zero); u.ctx.stroke(); }] },
  } as any)} />;
}

function Verdict(props: { doc: any; pairs: any }) {
  const d = props.doc, items: any[] = d.items ?? [], chosen = place.value.query.item;
  const most = Math.max(0.03, ...items.filter((i) => i.ratio).flatMap((i) => [Math.abs(Math.log(i.ratio.low ?? i.ratio.estimate)), Math.abs(Math.log(i.ratio.high ?? i.ratio.estimate))])) * 1.1;
  const counts: Record<string, number> = {};
  for (const i of items) counts[i.verdict] = (counts[i.verdict] ?? 0) + 1;
  const tone: Record<string, string> = { pass: "good", regression: "bad", improvement: "good", inconclusive: "warn", invalid: "warn" };
  const open = chosen ? items.findIndex((i) => itemName(i) === chosen) : items.findIndex((i) => i.verdict === "regression");
  const pairItem = open >= 0 && props.pairs ? (props.pairs.items ?? []).findIndex((p: any) => pairName(p) === itemName(items[open])) : -1;
  return (
    <Section title={<>Verdict: <span class={"verdict " + d.verdict}>{d.verdict}</span></>} class="wide" note={[f.base(d.suite ?? ""), d.environment?.devices?.[0]?.name, d.seconds && `${f.digits(d.seconds)} s`, d.measurement?.launches && f.plural(d.measurement.launches, "process", "processes")].filter(Boolean).join(" · ")}>
      <dl class="stats">{Object.entries(counts).map(([name, n]) => <Stat name={name} value={f.count(n)} tone={tone[name] ?? ""} />)}
        {d.measurement?.rejected_pairs > 0 && <Stat name="pairs rejected" value={f.count(d.measurement.rejected_pairs)} note={(d.measurement.rejected_because ?? []).map((r: any) => (typeof r === "string" ? r : r.reason ?? "")).join(", ")} />}
        {d.measurement?.device?.sm_clock_mhz && <Stat name="SM clock" value={`${[...new Set(d.measurement.device.sm_clock_mhz)].join(" to ")} MHz`} />}</dl>
      <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">item</th><th class="left">verdict</th><th>change</th><RatioHead most={most} /><th>p</th><th>pairs</th><th>before</th><th>now</th><th class="left">cause and reason</th></tr></thead><tbody>
        {items.map((i, n) => <tr class={n === open ? "chosen" : ""}><td class="left"><button type="button" class="link" onClick={() => adjust({ item: itemName(i) })}>{itemName(i)}</button></td><td class="left"><span class={"verdict " + i.verdict}>{i.verdict}</span></td><td><b>{f.relative(i.ratio?.estimate)}</b></td><td class="left"><Ratio ratio={i.ratio} floor={i.floor} verdict={i.verdict} most={most} /></td><td class="faint">{f.chance(i.p_value)}</td><td>{f.count(i.pairs)}</td><td>{f.ns(i.baseline_ns)}</td><td>{f.ns(i.current_ns)}</td><td class="left why">{[i.cause, i.reason].filter(Boolean).join(": ")}</td></tr>)}
      </tbody></table></div>
      {open >= 0 && <>
        <h3>{itemName(items[open])}</h3>
        {items[open].ratio && <p class="note">{f.relative(items[open].ratio.estimate)}, {f.relative(items[open].ratio.low)} to {f.relative(items[open].ratio.high)} at {f.percent(items[open].ratio.confidence ?? 0.95, 0)} confidence; smallest change that these pairs could show: {f.percent(items[open].detectable)}.</p>}
        {pairItem >= 0 ? <PairPlot pairs={props.pairs} item={pairItem} name={itemName(items[open])} /> : <p class="faint">Each pair is drawn where the journal is given too: <code>purlin guard compare --journal pairs.jsonl</code>, then <code>purlin view verdict.json pairs.jsonl</code>.</p>}
      </>}
      {(d.notes ?? []).map((n: string) => <p class="note">{n}</p>)}
    </Section>
  );
}

export function GuardSeries(props: { series: any }) {
  const s = props.series, annotations: any[] = s.annotations ?? [], label = (p: any) => p.build || p.recorded_at?.slice(0, 10) || "";
  const marks = annotations.filter((a) => a.stands !== false).flatMap((a): Mark[] => [
    { at: a.point, text: f.relative(a.ratio), tone: a.ratio > 1 ? "bad" : "good", change: true },
    ...(a.environment_change ? [{ at: a.point, text: String(a.environment_change), tone: "plain" as const }] : []),
  ]);
  return (
    <div class="series"><h3>{itemName(s)} <small class="faint">{s.device}</small></h3>
      <Series label={`${itemName(s)} over builds`} points={s.points.map((p: any) => ({ label: label(p), value: p.p50_ns, detail: [f.date(p.recorded_at), p.processes ? f.plural(p.processes, "process", "processes") : ""].filter((t) => t && t !== "–").join(" · ") }))} marks={marks} />
      {annotations.map((a) => <p class="note"><b class={a.ratio > 1 ? "bad" : "good"}>{f.relative(a.ratio)}</b> between {a.build_before || f.date(a.recorded_before)} and {a.build_after || f.date(a.recorded_after)}: {f.ns(a.before_ns)} → {f.ns(a.after_ns)}, p {f.chance(a.p_value)}{a.stands === false ? " (does not stand among all series)" : ""}{a.environment_change ? `; ${a.environment_change}` : ""}</p>)}</div>
  );
}

function History(props: { doc: any }) {
  const d = props.doc, all = place.value.query.all === "1", list: any[] = d.series ?? [];
  const moved = list.filter((s) => (s.annotations ?? []).some((a: any) => a.stands !== false)), shown = all || !moved.length ? list : moved;
  return (
    <Section title="Over time" class="wide" note={`${f.plural(typeof d.runs === "number" ? d.runs : (d.runs ?? []).length, "run")}; ${f.count(moved.length)} of ${f.count(list.length)} series changed their level. Changes are hints: a paired run decides.`}
      tools={moved.length > 0 && moved.length < list.length ? <div class="choice" role="group" aria-label="series">{[["", "changed"], ["1", "all"]].map(([v, t]) => <button type="button" aria-pressed={all === (v === "1")} onClick={() => adjust({ all: v })}>{t}</button>)}</div> : undefined}>
      <First of={shown} first={40} what="series" many="series">{(first) => <div class="series-list">{first.map((s) => <GuardSeries series={s} />)}</div>}</First>
      {(d.notes ?? []).map((n: string) => <p class="note">{n}</p>)}
    </Section>
  );
}

function Matrix(props: { doc: any }) {
  const d = props.doc, items: any[] = d.items ?? [], cells: any[] = d.cells ?? [];
  const keys = [...new Set(cells.flatMap((c) => (c.items ?? []).map((i: any) => itemName(i))))];
  const cellText = (c: any) => (typeof c.cell === "string" ? c.cell : Object.entries(c.cell ?? {}).map(([k, v]) => `${k}=${v}`).join(" "));
  return (
    <Section title="Matrix" class="wide" note="Which factor the change comes from, from the first to the last level of each">
      <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">item</th><th>change</th><th>interval</th><th class="left">cause</th><th class="left">shares of the factors</th><th class="left">reason</th></tr></thead><tbody>
        {items.map((i) => <tr><td class="left">{itemName(i)}</td><td><b class={i.ratio > 1.005 ? "bad" : i.ratio < 0.995 ? "good" : ""}>{f.relative(i.ratio)}</b></td><td class="faint">{i.low != null ? `${f.relative(i.low)} to ${f.relative(i.high)}` : "–"}</td><td class="left">{i.cause || "–"}</td><td class="left">{(i.shares ?? []).map((s: any) => <span class="chip">{s.factor} {f.relative(s.ratio)}</span>)}</td><td class="left why">{i.reason}</td></tr>)}
      </tbody></table></div>
      {keys.length > 0 && <><h3>Cells</h3><div class="scroll" tabIndex={0}><table class="plain heat"><thead><tr><th class="left">cell</th>{keys.map((k) => <th>{k}</th>)}</tr></thead><tbody>
        {cells.map((c) => <tr><th class="left">{cellText(c)}</th>{keys.map((k) => { const v = (c.items ?? []).find((i: any) => itemName(i) === k), least = Math.min(...cells.flatMap((x) => (x.items ?? []).filter((i: any) => itemName(i) === k).map((i: any) => i.p50_ns))); const over = v ? v.p50_ns / least - 1 : 0; return <td class={over > 0.1 ? "heat-3" : over > 0.04 ? "heat-2" : over > 0.015 ? "heat-1" : "heat-0"}>{v ? f.ns(v.p50_ns) : <span class="faint">{c.problem || "–"}</span>}</td>; })}</tr>)}
      </tbody></table></div></>}
    </Section>
  );
}

function Bisect(props: { doc: any }) {
  const d = props.doc, steps: any[] = d.steps ?? [], styles: Record<string, string> = { good: "pass", bad: "regression", untriable: "inconclusive" };
  const most = Math.max(0.03, ...steps.filter((s) => s.effect?.ratio).map((s) => Math.abs(Math.log(s.effect.ratio)))) * 1.3;
  return (
    <Section title={<>Bisect: <span class="verdict">{f.words(d.outcome)}</span></>} class="wide" note={`${itemName(d.item ?? {})}; ${f.relative(d.whole?.ratio)} from end to end; ${f.plural(steps.length, "commit")} tried in ${f.ns((d.seconds ?? 0) * 1e9)}`}>
      {d.culprit ? <p class="lead">Culprit: <code>{d.culprit}</code>{d.confirmation?.effect ? ` (${f.relative(d.confirmation.effect.ratio)} against its parent, ${f.plural(d.confirmation.pairs ?? 0, "pair")})` : ""}</p> : <p class="lead">{d.message || `One of ${f.plural((d.candidates ?? []).length, "commit")}.`}</p>}
      <table class="plain"><thead><tr><th>step</th><th class="left">commit</th><th class="left">result</th><th>change</th><RatioHead most={most} what="interval" /><th class="left">reason</th></tr></thead><tbody>
        {steps.map((s, i) => <tr class={s.commit === d.culprit ? "chosen" : ""}><td>{i + 1}</td><td class="left mono">{String(s.commit).slice(0, 12)}</td><td class="left"><span class={"verdict " + (styles[s.result] ?? "")}>{s.result}</span></td><td>{f.relative(s.effect?.ratio)}</td><td class="left"><Ratio ratio={s.effect?.ratio ? { ...s.effect, estimate: s.effect.ratio } : null} most={most} verdict={s.result === "bad" ? "regression" : ""} /></td><td class="left why">{s.reason}</td></tr>)}
      </tbody></table>
    </Section>
  );
}

export function Guard() {
  const list = [...names("guard"), ...names("history"), ...names("matrix"), ...names("bisect"), ...names("pairs")];
  const docs = useLoaded(async () => Promise.all(list.map(async (n) => ({ name: n.replace(/-\d+$/, ""), doc: await head(n) }))), []);
  if (!list.length) return <Empty title="No verdict">Open the JSON of <code>purlin guard check</code>, <code>compare</code>, <code>matrix</code> or a history with <code>purlin view</code>.</Empty>;
  if (!docs) return <Loading />;
  const pairs = docs.find((d) => d.name === "pairs")?.doc;
  return (
    <div class="view guard">
      {docs.map(({ name, doc }) => name === "guard" ? <Verdict doc={doc} pairs={pairs} /> : name === "history" ? <History doc={doc} /> : name === "matrix" ? <Matrix doc={doc} />
        : name === "bisect" ? <Bisect doc={doc} /> : null)}
      {pairs && !docs.some((d) => d.name === "guard") && (pairs.items ?? []).map((i: any, n: number) => <Section title={pairName(i)} class="wide"><PairPlot pairs={pairs} item={n} name={pairName(i)} /></Section>)}
    </div>
  );
}
