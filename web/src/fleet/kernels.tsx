// SPDX-License-Identifier: Apache-2.0
// The fleet's kernels: what to tune, what got slower, and all of them by GPU time.
import { useMemo, useState } from "preact/hooks";
import * as f from "../format";
import { Brief, First, Section, ShareBar, Spark, Stat, hue } from "../ui";
import { link } from "../url";
import { useAnswer, type Answer } from "./api";
import { TaskName } from "./backlog";
import { Asking, Coverage, Filters, filters, forAll, kernelLink, kept, Refusal, seconds, short, Waiting } from "./parts";
import { Roof } from "./roof";

const kTop = 100, kMostTop = 10_000, kListed = 5;

function TuneThese(props: { backlog: Answer }) {
  const { backlog } = props, model = filters().model, all: any[] = (backlog.data?.tasks ?? []).filter((t: any) => ["open", "leased"].includes(t.state) && (!model || t.device === model)), tasks = all.slice(0, kListed);
  const most = Math.max(...tasks.map((t) => t.saving_ns ?? 0), 1);
  return (
    <Section title="Tune these" note={<>GPU time × headroom, of the backlog. <a href={link("backlog")}>{all.length > kListed ? `All ${f.count(all.length)} tasks` : "All tasks"}</a></>}>
      <Asking of={backlog} /><Refusal of={backlog} />
      {backlog.data && tasks.length === 0 && <p class="faint">The backlog has no open task{model && ` for ${short(model)}`}.</p>}
      <ol class="shortlist">{tasks.map((t) => <li><TaskName task={t} class="name" /><ShareBar value={t.saving_ns} of={most} label={f.ns(t.saving_ns)} />
        <small>{[short(t.device ?? ""), t.shape, `headroom ${f.percent(t.headroom, 0)}${t.headroom_assumed ? " (assumed)" : ""}`, t.state === "leased" ? `tuned now by ${t.worker}` : ""].filter(Boolean).join(" · ")}</small></li>)}</ol>
    </Section>
  );
}

function GotSlower(props: { all: Record<string, string> }) {
  const slower = useAnswer("query/slower", props.all), list: any[] = slower.data?.kernels ?? [];
  const most = Math.max(...list.map((k) => k.lost_gpu_s), 1e-9);
  return (
    <Section title="Got slower" note={slower.data && !slower.data.refused ? `${f.plural(slower.data.tested, "kernel")} tested; an alarm is beyond the noise of the history` : undefined}>
      <Asking of={slower} /><Refusal of={slower} />
      {slower.data && !slower.data.refused && list.length === 0 && <p class="faint">No kernel got slower beyond its history.</p>}
      <First of={list} first={kListed} what="kernel">{(shown) => <ol class="shortlist bad">{shown.map((k) => <li><a class="name" href={kernelLink(k.kernel)} title={k.kernel}><Brief of={k.kernel} /></a><ShareBar value={k.lost_gpu_s} of={most} label={`${seconds(k.lost_gpu_s)} lost`} />
        <small title={`p ${f.chance(k.p_value)} over nodes`}><span class={"verdict " + (k.certainty === "alarm" ? "regression" : "inconclusive")}>{k.certainty}</span> {f.relative(k.ratio)} ({f.relative(k.ratio_low)} to {f.relative(k.ratio_high)}) on {short(k.gpu)}, since {f.date(k.at).slice(0, 10)}{(k.marks ?? []).map((m: any) => `; ${m.what} ${m.before} → ${m.after}`).join("")}{k.why_suspect ? `; ${k.why_suspect}` : ""}</small></li>)}</ol>}</First>
      {(slower.data?.thin ?? []).length > 0 && <details class="note"><summary>{f.plural(slower.data.thin.length, "kernel")} had too little data</summary><First of={slower.data.thin as any[]} first={30} what="kernel">{(shown) => <ul class="bullets">{shown.map((t) => <li>{t.kernel} on {short(t.gpu ?? "")}: {t.refused?.why}</li>)}</ul>}</First></details>}
    </Section>
  );
}

// GPU time of each kernel by whole days or hours, for the sparklines: a part of one would look like a
// fall.
function useTrends(all: Record<string, string>): Map<string, number[]> {
  const answer = useAnswer("query/history", { ...all, step: all.begin === "-1d" ? "hour" : "day", by: "kernel" });
  return useMemo(() => {
    const points: any[] = answer.data?.points ?? [], all = [...new Set<string>(points.map((p) => p.begin))].sort(), times = all.length > 4 ? all.slice(1, -1) : all, out = new Map<string, number[]>();
    for (const p of points.filter((p) => times.includes(p.begin))) { let list = out.get(p.kernel); if (!list) out.set(p.kernel, list = new Array(times.length).fill(0)); list[times.indexOf(p.begin)] += p.gpu_s; }
    return out;
  }, [answer.data]);
}

// What the backlog knows of a kernel: the largest headroom of its tasks, and how far they are.
interface Tuning { headroom: number | null; assumed: boolean; state: string }
const further = ["done", "leased", "open", "failed"];
function useTuning(backlog: Answer): Map<string, Tuning> {
  return useMemo(() => {
    const out = new Map<string, Tuning>();
    for (const t of backlog.data?.tasks ?? []) {
      const known = out.get(t.kernel), larger = known?.headroom == null || (t.headroom ?? -1) > known.headroom;
      out.set(t.kernel, { headroom: larger ? t.headroom ?? null : known!.headroom, assumed: larger ? !!t.headroom_assumed : known!.assumed, state: known && further.indexOf(known.state) < further.indexOf(t.state) ? known.state : t.state });
    }
    return out;
  }, [backlog.data]);
}
const stateNames: Record<string, string> = { done: "tuned", leased: "tuned now", open: "waits", failed: "failed" };

// Of a measured task, else of the roof, else what the backlog assumes. `saved`: of its GPU time.
function Headroom(props: { tuning?: Tuning; roof: any; gpu_s: number }) {
  const { tuning, roof } = props, task = tuning?.headroom != null && !tuning.assumed, share = task ? tuning!.headroom : roof?.headroom ?? tuning?.headroom;
  if (share == null) return <span class="faint">unknown</span>;
  const from = task ? "backlog" : roof?.headroom != null ? "roof" : "assumed";
  return <span title={`${seconds(share * props.gpu_s)} of its GPU time, ${{ backlog: "by its task in the backlog", roof: "if it reached its roof", assumed: "by the backlog's assumption: neither its roof nor a better time is known" }[from]}`}>{f.percent(share, 0)}<small class="under">{from}</small></span>;
}

function Row(props: { k: any; n: number; most: number; trend?: number[]; tuning?: Tuning; roof: any; roofs: Answer }) {
  const { k, tuning, roof } = props, few = f.few(k.recorded), hint = few ? `Of ${f.plural(k.recorded, "recorded launch", "recorded launches")} only: a hint` : undefined, print = (v: number) => f.about(v, few);
  return <tr><td class="faint">{props.n}</td><td class="left clip-name" title={k.raw_kernel ?? k.kernel}><i class={"dot " + hue(k.role)} /><a href={kernelLink(k.kernel)}><Brief of={k.kernel} /></a><small class="under">{f.words(k.role)}</small></td><td class="left"><ShareBar value={k.share} of={props.most} label={f.percent(k.share)} /></td><td class="faint">{f.percent(k.cumulative_share, 0)}</td><td>{seconds(k.gpu_s)}</td><td class="left"><Spark values={props.trend} /></td><td title={`${f.count(k.launches)} launches, ${f.count(k.recorded)} recorded`}>{f.si(k.launches, "").trim()}<small class={"under" + (few ? " warn" : "")}>{f.si(k.recorded, "").trim()}</small></td>
    <td class={few ? "faint" : ""} title={hint}>{print(k.p50_ns)}<small class="under">{print(k.p95_ns)}</small></td><td>{props.roofs.data ? <Roof of={roof} /> : <span class="faint">{props.roofs.error ? "–" : "…"}</span>}</td><td><Headroom tuning={tuning} roof={roof} gpu_s={k.gpu_s} /></td><td class="left">{tuning ? <span class={"chip task-" + tuning.state}>{stateNames[tuning.state] ?? f.words(tuning.state)}</span> : <span class="faint">–</span>}</td></tr>;
}

function List(props: { top: any; all: Record<string, string>; backlog: Answer; more: () => void }) {
  const t = props.top, trends = useTrends(props.all), tuning = useTuning(props.backlog), most = Math.max(...t.kernels.map((k: any) => k.share), 1e-9), left = t.kernel_count - t.kernels.length;
  const roofs = useAnswer("query/roofs", { ...props.all, limit: String(Math.max(1, t.kernels.length)) }), roof = useMemo(() => new Map<string, any>((roofs.data?.roofs ?? []).map((r: any) => [r.kernel, r])), [roofs.data]);
  if (t.kernels.length === 0) return <p class="faint">No kernel was recorded {Object.keys(kept()).length ? "with these filters" : "in this time"}. <code>purlin collect</code> on each node sends what its programs run.</p>;
  return <>
    <Refusal of={roofs} what="What bounds them" />
    <div class="scroll" tabIndex={0}><table class="plain fixed fleet-kernels"><thead><tr><th class="c-rank">#</th><th class="left">kernel</th><th class="left c-share">share</th><th class="c-s"><abbr class="tip" title={f.meanings.cumulative}>cum.</abbr></th><th class="c-m">GPU time</th><th class="left c-trend"><abbr class="tip" title={`GPU time over the whole ${props.all.begin === "-1d" ? "hours" : "days"} of this time`}>trend</abbr></th><th class="c-m"><abbr class="tip" title="Launches, with those that were not recorded; below them, the recorded ones">launches</abbr></th><th class="c-m"><abbr class="tip" title="Median duration of the recorded launches; below it, what 95 % of them stay under">p50, p95</abbr></th><th class="c-roof"><abbr class="tip" title="Share of the ceiling that binds it, by its problem shapes and GPUs; below it, that ceiling">of roof</abbr></th><th class="c-m"><abbr class="tip" title="Part of its GPU time that could be saved; below it, how that is known">headroom</abbr></th><th class="left c-task"><abbr class="tip" title="What the pool did for it: its furthest task">tuning</abbr></th></tr></thead><tbody>
      {t.kernels.map((k: any, i: number) => <Row k={k} n={i + 1} most={most} trend={trends.get(k.kernel)} tuning={tuning.get(k.kernel)} roof={roof.get(k.kernel)} roofs={roofs} />)}
    </tbody></table></div>
    {left > 0 && <p class="note">{f.plural(left, "more kernel")} with {f.percent(1 - t.kernels[t.kernels.length - 1].cumulative_share)} of the GPU time. {t.kernels.length < kMostTop && <button type="button" class="link" onClick={props.more}>Show more</button>}</p>}
  </>;
}

export function Kernels() {
  const [most, setMost] = useState(kTop), all = filters(), top = useAnswer("query/top", { ...all, limit: String(most) }), t = top.data, settled = !!t || !!top.error;
  const backlog = useAnswer(settled && !forAll(top) ? "backlog" : "", {});
  if (!settled || forAll(top)) return <div class="view"><Filters /><Waiting of={top} /></div>;
  return (
    <div class="view">
      <Filters />
      <Coverage coverage={t?.coverage} />
      {t && <dl class="stats"><Stat name="GPU time" value={seconds(t.gpu_s)} /><Stat name="kernels" value={f.count(t.kernel_count)} note={t.kernels_with_80_percent ? `${f.count(t.kernels_with_80_percent)} have 80 % of the time` : undefined} /><Stat name="launches" value={t.launches < 1e7 ? f.count(t.launches) : f.si(t.launches, "")} />
        {(t.roles ?? []).slice(0, 4).map((r: any) => <Stat name={f.words(r.role)} value={f.percent(r.share)} note={seconds(r.gpu_s)} />)}</dl>}
      <div class="columns"><TuneThese backlog={backlog} /><GotSlower all={all} /></div>
      <Section title="Kernels" class="wide" note={t?.kernels.length ? `${f.count(t.kernels.length)} of ${f.plural(t.kernel_count, "kernel")}, by GPU time` : undefined}>
        <Refusal of={top} />
        {t && <List top={t} all={all} backlog={backlog} more={() => setMost(Math.min(kMostTop, most * 10))} />}
      </Section>
    </div>
  );
}
