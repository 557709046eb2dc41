// SPDX-License-Identifier: Apache-2.0
// Nodes: the health of their collectors, devices that are slower than others, and what is not seen.
import { useState } from "preact/hooks";
import * as f from "../format";
import { Brief, First, Meter, Section, Stat } from "../ui";
import { adjust, link, place } from "../url";
import { useAnswer } from "./api";
import { Asking, forAll, Refusal, seconds, short, Waiting } from "./parts";
import { AskWindow, useWindows, WindowList } from "./windows";

const kQuietMs = 15 * 60e3, kShown = 200;
const shedOf = (n: any) => (n.shed ?? []).reduce((sum: number, s: any) => sum + (s.rows ?? 0) + (s.launches ?? 0) + (s.batches ?? 0), 0);
// How full the spool is of what the server does not have yet; null: an older collector does not state it.
const fillOf = (n: any): number | null => (n.spool?.limit_bytes > 0 ? Math.min(1, n.spool.bytes / n.spool.limit_bytes) : null);
const kFullSpool = 0.8, kHalfSpool = 0.5;
const Spool = (props: { of: any }) => {
  const fill = fillOf(props.of);
  if (fill === null) return <span class="faint" title="The node's collector is of an older version">not said</span>;
  return <><Meter value={fill} grade={fill >= kFullSpool ? "optimise" : fill >= kHalfSpool ? "ok" : ""} /><small class="under">{f.bytes(props.of.spool.bytes)} of {f.bytes(props.of.spool.limit_bytes)}</small></>;
};
const shedText = (n: any) => (n.shed ?? []).map((s: any) => Object.entries(s).map(([k, v]) => `${f.words(k)} ${v}`).join(", ")).join("; ");

function Stragglers(props: { begin: string }) {
  const answer = useAnswer("query/stragglers", { begin: props.begin }), list: any[] = answer.data?.stragglers ?? [];
  return (
    <Section title="Stragglers" class="wide" note="Devices slower than their peers, or than their own past, on equal kernels and shapes">
      <Asking of={answer} /><Refusal of={answer} />
      {answer.data && list.length === 0 && !answer.data.refused && <p class="faint">None among {f.plural(answer.data.devices ?? 0, "device")}.</p>}
      {list.length > 0 && <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">node</th><th class="left">device</th><th class="left">GPU</th><th><abbr class="tip" title="Peers' time over its own; 100 %: as fast">to peers</abbr></th><th><abbr class="tip" title="Its own time earlier in this period, over now">to its past</abbr></th><th>peers</th><th>lost GPU time</th><th class="left">worst kernel</th></tr></thead><tbody>{list.map((s) => <tr><td class="left"><a href={link("nodes", "", { node: s.node })}>{s.node}</a></td><td class="left mono wrap">{s.device}</td><td class="left">{short(s.gpu)}</td><td class={s.slow_to_peers ? "bad" : ""}>{f.percent(s.relative_score)}</td><td class={s.slow_to_past ? "bad" : ""}>{f.percent(s.individual_score)}</td><td>{f.count(s.peers)}</td><td>{seconds(s.lost_gpu_s)}</td><td class="left wrap" title={s.worst_kernel}><Brief of={s.worst_kernel ?? ""} /></td></tr>)}</tbody></table></div>}
    </Section>
  );
}

function Uncovered(props: { begin: string; node: string }) {
  const answer = useAnswer("query/coverage", { begin: props.begin, step: "all", ...(props.node ? { node: props.node } : {}) });
  const list: any[] = (answer.data?.cells ?? []).filter((c: any) => c.node).map((c: any) => ({ ...c, share: c.busy_s > 0 ? Math.min(1, c.seen_s / c.busy_s) : null })).sort((a: any, b: any) => (a.share ?? 2) - (b.share ?? 2));
  const thin = list.filter((c) => c.share !== null && c.share < 0.5), shown = props.node ? list : thin;
  return (
    <Section title="Not seen" class="wide" note={answer.data ? `${f.count(thin.length)} of ${f.plural(list.length, "device")} had less than half of their busy time recorded` : undefined}>
      <Asking of={answer} /><Refusal of={answer} />
      {answer.data && shown.length === 0 && <p class="faint">Each device was recorded for at least half of its busy time.</p>}
      {shown.length > 0 && <First of={shown} first={40} what="device">{(first) => <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">node</th><th class="left">device</th><th class="left">GPU</th><th>recorded</th><th>busy</th><th>launches seen</th><th>lost</th><th>overhead</th><th class="left">why</th></tr></thead><tbody>{first.map((c) => <tr><td class="left"><a href={link("nodes", "", { node: c.node })}>{c.node}</a></td><td class="left mono wrap">{c.gpu}</td><td class="left">{short(c.model)}</td><td><Meter value={c.share} grade={c.share < 0.1 ? "optimise" : ""} /></td><td>{seconds(c.busy_s)}</td><td>{f.si(c.launches_seen, "").trim()}</td><td class={c.launches_lost ? "bad" : ""}>{f.count(c.launches_lost)}</td><td>{f.percent(c.overhead_s / (c.busy_s || 1), 2)}</td><td class="left why">{c.why}</td></tr>)}</tbody></table></div>}</First>}
    </Section>
  );
}

export function Nodes() {
  const query = place.value.query, begin = query.begin || "-7d", nodes = useAnswer("nodes", {}), windows = useWindows(), [asked, setAsked] = useState("");
  if (forAll(nodes) || (!nodes.data && !nodes.error)) return <Waiting of={nodes} />;
  const all: any[] = nodes.data?.nodes ?? [], now = Date.now(), latest = new Map<string, any>([...windows.list].reverse().map((w) => [w.node, w]));
  const quiet = (n: any) => now - Date.parse(n.last_received) > kQuietMs;
  const trouble = (n: any) => n.missing_batches + n.quarantined_batches + n.too_old_batches + shedOf(n) > 0 || (fillOf(n) ?? 0) >= kFullSpool;
  const fullest = all.filter((n) => fillOf(n) !== null).sort((a, b) => fillOf(b)! - fillOf(a)!)[0];
  const sorted = [...all].sort((a, b) => Number(trouble(b)) - Number(trouble(a)) || Number(quiet(b)) - Number(quiet(a)) || a.node.localeCompare(b.node));
  const list = sorted.filter((n) => (!query.node || n.node === query.node) && (!query.q || n.node.includes(query.q)));
  return (
    <div class="view">
      {nodes.data && <dl class="stats"><Stat name="nodes" value={f.count(all.length)} /><Stat name="silent for 15 min" value={f.count(all.filter(quiet).length)} tone={all.some(quiet) ? "warn" : "good"} />
        <Stat name="missing batches" value={f.count(all.reduce((s, n) => s + n.missing_batches, 0))} tone={all.some((n) => n.missing_batches) ? "warn" : ""} /><Stat name="in quarantine" value={f.count(all.reduce((s, n) => s + n.quarantined_batches, 0))} tone={all.some((n) => n.quarantined_batches) ? "warn" : ""} />
        <Stat name="shed" value={f.count(all.reduce((s, n) => s + shedOf(n), 0))} title="What collectors gave up, because a spool was full or a limit was reached" note={f.plural(all.filter((n) => shedOf(n)).length, "node")} />
        <Stat name="fullest spool" value={fullest ? f.percent(fillOf(fullest), 0) : "not said"} note={fullest && <a href={link("nodes", "", { node: fullest.node })}>{fullest.node}</a>} tone={fullest && fillOf(fullest)! >= kFullSpool ? "bad" : ""} title="What waits on a node for the server, of the limit of its spool. Beyond it, the oldest is given up." />
        <Stat name="greatest collector share" value={f.percent(Math.max(0, ...all.map((n) => n.collector_cpu_share)), 2)} title="CPU time of the collector, of one core" /></dl>}
      <Stragglers begin={begin} />
      <Uncovered begin={begin} node={query.node ?? ""} />
      <WindowList of={windows} node={query.node ?? ""} />
      <Section title="Nodes" class="wide" note={!nodes.data ? undefined : list.length === all.length ? "Those with losses or a full spool first" : <>{f.count(list.length)} of {f.plural(all.length, "node")} <button type="button" class="link" onClick={() => adjust({ node: "", q: "" })}>show all</button></>}
        tools={<label><span class="visually-hidden">filter by name</span><input type="search" placeholder="Filter: part of a name" value={query.q ?? ""} onInput={(e) => adjust({ q: e.currentTarget.value })} /></label>}>
        <Refusal of={nodes} />
        {!nodes.data ? null : all.length === 0 ? <p class="faint">No node has sent anything. <code>purlin collect --server {location.origin}</code> on each node.</p> :
        <First of={list} first={kShown} what="node">{(shown) => <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">node</th><th class="left">last received</th><th>clock</th><th>batches</th><th>missing</th><th>quarantined</th><th>too old</th><th><abbr class="tip" title="Rows, launches and batches that the collector gave up; the reasons are on each number">shed</abbr></th><th><abbr class="tip" title="Batches and raw profiles that wait for the server, of the limit; as the last batch states it">spool</abbr></th><th>collector</th>{windows.may && <th class="left">timeline</th>}</tr></thead><tbody>
          {shown.map((n) => <tr><td class="left"><a href={link("kernels", "", { node: n.node })} title="its kernels">{n.node}</a><small class="under">{n.tool_version}</small></td><td class={"left" + (quiet(n) ? " warn" : "")}>{f.date(n.last_received)}{quiet(n) && <small class="under">silent</small>}</td><td>{seconds(n.skew_s)}</td><td>{f.count(n.batches)}</td><td class={n.missing_batches ? "bad" : ""}>{f.count(n.missing_batches)}</td><td class={n.quarantined_batches ? "bad" : ""}>{f.count(n.quarantined_batches)}</td><td class={n.too_old_batches ? "bad" : ""}>{f.count(n.too_old_batches)}</td><td class={shedOf(n) ? "bad" : ""} title={shedText(n)}>{f.count(shedOf(n))}</td><td><Spool of={n} /></td><td>{f.percent(n.collector_cpu_share, 2)}<small class="under">{f.bytes(n.collector_rss_bytes)}</small></td>{windows.may && <td class="left"><button type="button" aria-label={`Record a window of ${n.node}`} onClick={() => setAsked(n.node)}>Record a window</button>{latest.has(n.node) && <small class="under"><a href={`#windows`} onClick={(e) => { e.preventDefault(); document.getElementById("windows")?.scrollIntoView(); }}>{latest.get(n.node).state}</a></small>}</td>}</tr>)}
        </tbody></table></div>}</First>}
      </Section>
      {asked && <AskWindow node={asked} done={() => { setAsked(""); windows.again(); }} close={() => setAsked("")} />}
    </div>
  );
}
