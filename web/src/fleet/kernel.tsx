// SPDX-License-Identifier: Apache-2.0
// One kernel of the fleet: its history with changes and the environment, shapes, GPUs, verdicts of
// the guard, tasks of the backlog.
import * as f from "../format";
import { sameKernel } from "../names";
import { Series, type Mark } from "../series";
import { Bound, Empty, First, hue, Meter, Notice, Quantiles, Section, ShareBar, Stat } from "../ui";
import { adjust, link, place } from "../url";
import { Entries } from "../views/entries";
import { Verdicts } from "../views/verdicts";
import { useAnswer, type Answer } from "./api";
import { Distribution } from "./distribution";
import { Inside } from "./inside";
import { RawProfiles } from "./raws";
import { Roof } from "./roof";
import { Asking, Coverage, Filters, filters, forAll, halvesOf, kept, Refusal, seconds, short, Waiting } from "./parts";

const bySize = (points: any[] | undefined): any[] => [...(points ?? [])].sort((a, b) => b.gpu_s - a.gpu_s);

// Where most of the GPU time of a step begins to run in another build or under another driver.
function environmentMarks(times: string[], what: string, points: any[]): Mark[] {
  const marks: Mark[] = [];
  let before = "";
  times.forEach((time, at) => {
    const here = points.filter((p) => p.begin === time && p[what]).sort((a, b) => b.gpu_s - a.gpu_s)[0]?.[what] ?? before;
    if (before && here !== before) marks.push({ at, text: `${what} ${before} → ${here}`, tone: "plain" });
    before = here;
  });
  return marks;
}

// Of one shape: a level of several moves with their mix alone.
function History(props: { query: Record<string, string>; slower: Answer; shapes: any[] }) {
  const step = props.query.begin === "-1d" ? "hour" : "day", chosen = place.value.query.shape ?? props.shapes[0]?.shape ?? "";
  const query: Record<string, string> = { ...props.query, step, ...(chosen && chosen !== "all" ? { shape: chosen } : {}) };
  const whole = useAnswer("query/history", { ...query, step: "all", histogram: "1" }), point = whole.data?.points?.[0];
  const all = useAnswer("query/history", query), builds = useAnswer("query/history", { ...query, by: "build" }), drivers = useAnswer("query/history", { ...query, by: "driver" });
  const points: any[] = all.data?.points ?? [], times = points.map((p) => p.begin);
  const found: any[] = (props.slower.data?.kernels ?? []).filter((k: any) => !props.query.model || k.gpu === props.query.model);
  const changes = found.flatMap((k): Mark[] => { const at = times.findIndex((t) => Date.parse(t) + (step === "day" ? 864e5 : 36e5) > Date.parse(k.at)); return at > 0 ? [{ at, text: `${f.relative(k.ratio)} ${k.certainty}`, tone: k.ratio > 1 ? "bad" : "good", change: true }] : []; });
  const marks = [...changes, ...environmentMarks(times, "build", builds.data?.points ?? []), ...environmentMarks(times, "driver", drivers.data?.points ?? [])];
  return <>
    <Section title="History" class="wide" note={`Median and 95th percentile by ${step}. A dashed line: where the level changed, or the build or driver of most of its time.`}
      tools={props.shapes.length > 1 ? <label>shape<select value={chosen} onChange={(e) => adjust({ shape: e.currentTarget.value === props.shapes[0].shape ? "" : e.currentTarget.value })}>{props.shapes.map((s) => <option value={s.shape}>{s.shape || "not known"}</option>)}<option value="all">all, in their mix of the day</option></select></label> : undefined}>
      <Asking of={all} /><Refusal of={all} />
      <Refusal of={props.slower} what="Changes of level" />{([["Changes of build", builds], ["Changes of driver", drivers]] as const).map(([what, of]) => of.error ? <Refusal of={of} what={what} /> : null)}
      {all.data && points.length === 0 && <p class="faint">Nothing was recorded in this time.</p>}
      {points.length > 0 && <Series label="Median duration" height={220} marks={marks} points={points.map((p) => ({ label: step === "day" ? String(p.begin).slice(5, 10) : String(p.begin).slice(11, 16), value: p.p50_ns, high: p.p95_ns, detail: `${f.count(p.launches)} launches, ${f.count(p.recorded)} recorded, ${seconds(p.gpu_s)} of GPU time` }))} />}
      {found.map((k) => (
        <p class="note"><span class={"verdict " + (k.certainty === "alarm" ? "regression" : "inconclusive")}>{k.certainty}</span> <b class="bad">{f.relative(k.ratio)}</b> ({f.relative(k.ratio_low)} to {f.relative(k.ratio_high)}, {f.percent(k.confidence, 0)}) on {short(k.gpu)} since {f.date(k.at)}, on {f.plural(k.nodes, "node")}, mix of shapes held fixed; {seconds(k.lost_gpu_s)} of GPU time lost. {(k.marks ?? []).map((m: any) => `${m.what}: ${m.before} → ${m.after} (${f.percent(m.share_after, 0)} of the time). `)}{k.why_suspect}{k.bisect && <> <code>{k.bisect}</code></>}</p>
      ))}
      {props.slower.data && !props.slower.data.refused && found.length === 0 && <p class="note">No change of level beyond the noise of its history.</p>}
    </Section>
    {(point?.histogram?.count.length > 0 || whole.error) && <Section title="Durations" class="wide" note={point && `${chosen === "all" ? "All shapes" : chosen || "Shape not known"}: ${f.si(point.launches, "").trim()} launches of this time, ${f.si(point.recorded, "").trim()} recorded, ${f.ns(point.min_ns)} to ${f.ns(point.max_ns)}`}>
      <Refusal of={whole} />{point && <Distribution of={point} />}
    </Section>}
  </>;
}

const kFirst = 8;
interface Column { name: string; cell: (p: any) => any; right?: boolean }
function Parts(props: { title: string; note: string; of: Answer; columns: Column[]; after?: Column[]; what: string }) {
  const answer = props.of, points = bySize(answer.data?.points), sum = points.reduce((n, p) => n + p.gpu_s, 0), most = Math.max(...points.map((p) => p.gpu_s), 1e-9), after = props.after ?? [];
  return (
    <Section title={props.title} note={props.note}>
      <Asking of={answer} /><Refusal of={answer} />
      {points.length > 0 && <First of={points} first={kFirst} what={props.what}>{(shown) => <div class="scroll" tabIndex={0}><table class="plain"><thead><tr>{props.columns.map(({ name }) => <th class="left">{name}</th>)}<th class="left">GPU time</th><th>launches</th><th>p50</th><th>p95</th>{after.map(({ name }) => <th>{name}</th>)}</tr></thead><tbody>
        {shown.map((p) => <tr>{props.columns.map(({ cell }) => <td class="left wrap">{cell(p)}</td>)}<td class="left"><ShareBar value={p.gpu_s} of={most} label={f.percent(p.gpu_s / (sum || 1))} /></td><td>{f.si(p.launches, "").trim()}</td><Quantiles of={p} recorded={p.recorded} />{after.map(({ cell }) => <td>{cell(p)}</td>)}</tr>)}
      </tbody></table></div>}</First>}
      {answer.data && !answer.data.refused && points.length === 0 && <p class="faint">Nothing of it was recorded in this time.</p>}
    </Section>
  );
}

const kMostRuns = 50;
function Guard(props: { kernel: string }) {
  const answer = useAnswer("guard", { kernel: props.kernel, documents: "1", limit: String(kMostRuns) }), runs: any[] = answer.data?.runs ?? [];
  const list = runs.flatMap((run) => (run.document?.items ?? []).filter((i: any) => i.kernel === props.kernel && i.verdict).map((item: any) => ({ doc: run.document, item })));
  return (
    <Section title="Verdicts of the guard" note="Runs that were sent to this server">
      <Asking of={answer} /><Refusal of={answer} />
      {answer.data && runs.length === 0 && <p class="faint">No run was sent: <code>purlin guard check SUITE --json</code>, posted to <code>/v1/guard</code>.</p>}
      {list.length > 0 && <First of={list} first={10} what="verdict">{(shown) => <Verdicts list={shown} />}</First>}
      {runs.length === kMostRuns && <p class="note">Of the last {kMostRuns} runs.</p>}
      {runs.length > 0 && list.length === 0 && <ul class="bullets">{runs.map((r) => <li>{f.date(r.time)}: <span class={"verdict " + r.verdict}>{r.verdict}</span> {r.suite} {r.build} {short(r.model ?? "")}</li>)}</ul>}
    </Section>
  );
}

function Tasks(props: { kernel: string }) {
  const answer = useAnswer("backlog", {}), list: any[] = (answer.data?.tasks ?? []).filter((t: any) => t.kernel === props.kernel);
  return (
    <Section title="Backlog" note="What the pool tunes for it, and what that found">
      <Asking of={answer} /><Refusal of={answer} />
      {answer.data && !answer.data.refused && list.length === 0 && <p class="faint">No task is about this kernel. A task needs a spec that computes the same problem. <a href={link("backlog")}>Backlog</a></p>}
      {list.length > 0 && <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">problem</th><th class="left">state</th><th>headroom</th><th>saving</th><th class="left">outcome</th></tr></thead><tbody>{list.map((t) => <tr><td class="left wrap"><span class="mono">{t.shape}</span><small class="under">{short(t.device ?? "")}</small></td><td class="left"><span class={"chip task-" + t.state}>{f.words(t.state)}</span>{t.worker && <small class="under">{t.worker}</small>}</td><td><Meter value={t.headroom} />{t.headroom_assumed && <small class="under">assumed</small>}</td><td>{f.ns(t.saving_ns)}</td><td class="left wrap">{t.outcome}</td></tr>)}</tbody></table></div>}
    </Section>
  );
}

const kMostWinners = 2000;

// Winners of one shared cache, for the kernel or a problem that it has here.
function InCache(props: { cache: string; kernel: string; shapes: Set<string> }) {
  const answer = useAnswer(`caches/${encodeURIComponent(props.cache)}/winners`, { limit: String(kMostWinners) });
  const list: any[] = (answer.data?.entries ?? []).filter((e: any) => sameKernel({ name: props.kernel, label: props.kernel }, e.key.kernel) || props.shapes.has(f.pairs(e.problem)));
  return <><h3>{props.cache}</h3><Asking of={answer} /><Refusal of={answer} />
    {answer.data && list.length === 0 && <p class="faint">No winner for this kernel or its problems.</p>}
    {list.length > 0 && <Entries entries={list} among={answer.data.entries} />}</>;
}

function Winners(props: { kernel: string; shapes: any[] }) {
  const answer = useAnswer("caches", {}), caches: string[] = answer.data?.caches ?? [], shapes = new Set<string>(props.shapes.map((s) => s.shape).filter(Boolean));
  return (
    <Section title="In the shared caches" note="Winners for this kernel or its problems, with their margin">
      <Asking of={answer} /><Refusal of={answer} />
      {answer.data && caches.length === 0 && <p class="faint">This server has no shared cache: <code>purlin cache push {location.origin}/team</code> makes one.</p>}
      <First of={caches} first={kFirst} what="cache">{(shown) => shown.map((cache) => <InCache key={cache} cache={cache} kernel={props.kernel} shapes={shapes} />)}</First>
    </Section>
  );
}

export function Kernel(props: { kernel: string }) {
  const chosen = filters(), models = useAnswer("query/history", { ...chosen, kernel: props.kernel, step: "all", by: "model" }), settled = !!models.data || !!models.error;
  // Durations of several models of GPU have no common level: the one with most time, unless chosen.
  const list = bySize(models.data?.points), model = chosen.model ?? list[0]?.model ?? "";
  const query: Record<string, string> = { ...chosen, kernel: props.kernel, ...(model ? { model } : {}) };
  const part = (path: string, more: Record<string, string> = {}) => useAnswer(settled ? path : "", { ...query, ...more });
  const by = (by: string) => part("query/history", { step: "all", by });
  const shapes = by("shape,dtype,op"), builds = by("build,driver,runtime"), nodes = by("node,job");
  const top = part("query/top", { limit: "1" }), slower = part("query/slower"), roofs = part("query/roofs", { by: "shape", limit: "1000" });
  const halves = halvesOf(query.begin, query.end), roofBefore = part("query/roofs", halves[0]), roofNow = part("query/roofs", halves[1]);
  const first = settled && !forAll(models) ? top : models;
  if (forAll(first) || (!first.data && !first.error)) return <div class="view"><Filters /><Waiting of={first} /></div>;
  const k = top.data?.kernels?.[0];
  return (
    <div class="view kernel">
      <Filters />
      <nav class="crumbs" aria-label="Place"><a href={link("kernels", "", kept())}>Kernels</a></nav>
      <h1><i class={"dot " + hue(k?.role ?? "")} />{props.kernel}</h1>
      <Refusal of={models} what="The GPUs that run it" /><Refusal of={top} what="Its totals" />
      {top.data && !k && !top.data.refused ? <Empty title="Nothing of this kernel here">It was not recorded in this time with these filters.</Empty> : <>
        {k && <Totals k={k} coverage={top.data.coverage} models={list} model={model} before={roofBefore} now={roofNow} />}
        {shapes.data || shapes.error ? <History query={query} slower={slower} shapes={bySize(shapes.data?.points)} /> : <Section title="History" class="wide"><Asking of={shapes} /></Section>}
        <Inside query={query} />
        <div class="columns flow">
          <Parts title="Shapes" note="Problem shapes and types" what="shape" of={shapes} columns={[{ name: "problem", cell: (p) => <><span class="mono">{p.shape || "not known"}</span> {p.dtype}<small class="under">{p.op}</small></> }]} after={[{ name: "of roof", cell: (p) => (roofs.data ? <Roof of={(roofs.data.roofs as any[]).find((r) => r.shape === p.shape && r.dtype === p.dtype)} /> : <span class="faint">–</span>) }]} />
          <Parts title="Builds and drivers" note="Side by side; the mix of shapes is not held fixed here" what="row" of={builds} columns={[{ name: "build", cell: (p) => p.build || "not known" }, { name: "driver", cell: (p) => <>{p.driver}<small class="under">{p.runtime}</small></> }]} />
          <Parts title="Jobs and nodes" note="With most of its time" what="row" of={nodes} columns={[{ name: "node", cell: (p) => <a href={link("nodes", "", { node: p.node })}>{p.node}</a> }, { name: "job", cell: (p) => p.job }]} />
          <Tasks kernel={props.kernel} />
          <RawProfiles query={query} />
        </div>
        <Guard kernel={props.kernel} />
        <Winners kernel={props.kernel} shapes={shapes.data?.points ?? []} />
      </>}
    </div>
  );
}

// How near to its roof it is now, and was in the first half of the time.
function RoofStats(props: { before: Answer; now: Answer; gpu_s: number }) {
  const now = props.now.data?.roofs?.[0], before = props.before.data?.roofs?.[0];
  if (!props.now.data) return <Stat name="of its roof" value={props.now.error ? "–" : "…"} note={props.now.error ? f.reason(props.now.error) : undefined} />;
  return <>
    <Stat name="bound" value={<Bound kernel={{ bound: now?.bound ?? "unknown", roof: { bound_from: now?.bound_from, evidence: now?.evidence } }} />} title={now?.evidence} note={now?.bound_from === "op_class" ? "a guess from its class" : undefined} />
    <Stat name="of its roof" value={now?.utilization == null ? <span class="faint">unknown</span> : f.percent(now.utilization)} title={[now?.evidence, now?.unknown].filter(Boolean).join("; ")} note={now?.utilization == null ? now?.unknown : before?.utilization != null ? `${f.percent(before.utilization)} in the first half` : undefined} />
    <Stat name="headroom" value={now?.headroom == null ? <span class="faint">unknown</span> : seconds(now.headroom * props.gpu_s)} title="GPU time of this period that it would save at its roof" note={now?.headroom == null ? undefined : `${f.percent(now.headroom, 0)} of its time`} />
  </>;
}

function Totals(props: { k: any; coverage: any; models: any[]; model: string; before: Answer; now: Answer }) {
  const { k, models, model } = props, few = f.few(k.recorded);
  return <>
    {k.raw_kernel && k.raw_kernel !== k.kernel && <p class="fullname mono">{k.raw_kernel}</p>}
    <Coverage coverage={props.coverage} />
    {few && <Notice tone="warn">Only {f.plural(k.recorded, "launch", "launches")} of it {k.recorded === 1 ? "was" : "were"} recorded: its durations are hints.</Notice>}
    <dl class="stats">
      <Stat name="GPU time" value={seconds(k.gpu_s)} note={short(model)} /><Stat name="launches" value={f.si(k.launches, "").trim()} note={`${f.si(k.recorded, "").trim()} recorded`} />
      <Stat name="median" value={f.about(k.p50_ns, few)} note={`p95 ${f.about(k.p95_ns, few)}`} /><Stat name="role" value={f.words(k.role)} /><RoofStats before={props.before} now={props.now} gpu_s={k.gpu_s} />
      <Stat name="GPU models" value={models.length ? f.count(models.length) : "–"} note={models.length > 1 ? <select aria-label="GPU model" value={model} onChange={(e) => adjust({ model: e.currentTarget.value })}>{models.map((m) => <option value={m.model}>{m.model}</option>)}</select> : undefined} />
    </dl>
  </>;
}
