// SPDX-License-Identifier: Apache-2.0
// What is known of the selected slice, or the statistics of the area.
import { useMemo } from "preact/hooks";
import * as f from "../format";
import type { ProfileData } from "../profile";
import { hue, KernelLink, ShareBar } from "../ui";
import { link } from "../url";
import { kNone, totals, type Slices, type Track } from "./model";
import type { Selection } from "./timeline";

function Statistics(props: { tracks: Track[]; area: { from: number; to: number }; clear: () => void }) {
  const { from, to } = props.area;
  const device = props.tracks.filter((t) => t.kind === "stream" && !t.after), idle = props.tracks.filter((t) => t.kind === "idle" && !t.after);
  const work = useMemo(() => totals(device, from, to), [props.tracks, from, to]);
  const gaps = useMemo(() => totals(idle, from, to), [props.tracks, from, to]);
  const host = useMemo(() => totals(props.tracks.filter((t) => t.kind === "thread" && !t.after), from, to).filter((t) => !["op", "range", "step"].includes(t.all.items[t.item].class)), [props.tracks, from, to]);
  const sum = work.reduce((n, t) => n + t.ns, 0);
  const table = (list: typeof work, of: number) => <table class="plain"><tbody>{list.slice(0, 12).map((t) => { const item = t.all.items[t.item]; return <tr><td class="left clipped"><i class={"dot " + (item.class === "idle" ? "idle-" + item.name : hue(item.class))} />{item.kernel ? <KernelLink id={item.kernel}>{item.name}</KernelLink> : f.words(item.name)}</td><td>{f.count(t.count)}</td><td>{f.ns(t.ns)}</td><td><ShareBar value={t.ns / (of || 1)} /></td></tr>; })}</tbody></table>;
  return (
    <div class="details">
      <h2>Area: {f.ns(to - from)} <button type="button" class="link" onClick={props.clear}>clear</button></h2>
      <p class="faint">{f.ns(from)} to {f.ns(to)} · work {f.ns(sum)} in {f.plural(work.reduce((n, t) => n + t.count, 0), "slice")}{to > from ? `, ${f.digits(sum / (to - from))} at once on average` : ""}</p>
      <div class="stat-columns">
        <div><h3>On the devices</h3>{work.length ? table(work, sum) : <p class="faint">nothing</p>}</div>
        {gaps.length > 0 && <div><h3>Idle, by cause</h3>{table(gaps, to - from)}</div>}
        {host.length > 0 && <div><h3>Host calls</h3>{table(host, to - from)}</div>}
      </div>
    </div>
  );
}

export function sentence(all: Slices, slice: number): string {
  const item = all.items[all.item[slice]], track = all.trackOf(slice), call = all.callOf(slice);
  const place = track ? `${track.title} of ${track.owner}` : "";
  if (item.class === "idle" && track) {
    const share = all.shareOf(track, slice);
    return `Idle for ${f.ns(all.duration[slice])} at ${f.ns(all.begin[slice])} on ${track.owner}, cause: ${f.words(item.name)}${share !== undefined ? `, ${share} % of it explained` : ""}`;
  }
  return `${item.name}, ${item.class}, ${f.ns(all.duration[slice])}, begins at ${f.ns(all.begin[slice])} on ${place}${call !== kNone ? `, launched by ${all.items[all.item[call]].name} ${f.ns(all.begin[slice] - all.begin[call])} earlier` : ""}`;
}

export function Details(props: { data: ProfileData; base: Slices; selected: Selection | null; area: { from: number; to: number } | null; tracks: Track[]; show: (s: Selection) => void; clear: () => void }) {
  if (props.area) return <Statistics tracks={props.tracks} area={props.area} clear={props.clear} />;
  const s = props.selected;
  if (!s) {
    const work = props.base.tracks.filter((t) => t.kind === "stream");
    return (
      <div class="details idle-details">
        <h2>{f.plural(props.base.size, "slice")}, {f.ns(props.base.span)}</h2>
        <p class="faint">{f.plural(work.length, "stream")}, {f.plural(props.base.tracks.filter((t) => t.kind === "thread").length, "host thread")}. Click a slice, or drag over an area. <kbd>W</kbd><kbd>A</kbd><kbd>S</kbd><kbd>D</kbd> move, <kbd>Ctrl</kbd>+wheel zooms, <kbd>?</kbd> lists all keys.</p>
        <ul class="legend idle-legend">{["host_launch", "data_starvation", "synchronization", "kernel_to_kernel", "profiler", "other"].map((c) => <li><i class={"idle-" + c} />{f.words(c)}</li>)}</ul>
      </div>
    );
  }
  const { all, slice } = s, item = all.items[all.item[slice]], track = all.trackOf(slice), call = all.callOf(slice);
  const work = call === kNone ? all.workOf(slice, 200) : [], bytes = all.bytesOf(slice);
  const gap = track?.kind === "idle" ? all.gapAt(track, slice) : null, share = track ? all.shareOf(track, slice) : undefined;
  const row = item.kernel ? props.data.rows.find((r) => r.id === item.kernel) : undefined;
  const advice = row ? (props.data.advice?.interventions ?? []).filter((i: any) => (i.kernels ?? []).includes(row.label)).slice(0, 2) : [];
  const facts: [string, any][] = [
    ["duration", <b>{f.ns(all.duration[slice])}</b>], ["begins", `${f.ns(all.begin[slice])} after the first event`], ["on", track ? `${track.title}, ${track.owner}` : "–"],
    ["class", item.class], ["op", item.op], ["problem", item.shape], ["launch", item.launch], ["registers", item.registers],
    ["bytes", bytes !== undefined ? `${f.bytes(bytes)}, ${f.rate(bytes / (all.duration[slice] || 1) * 1e9)}` : undefined],
    ["median", row ? `${f.about(row.p50_ns, f.few(row.recorded))} (this launch: ${row.p50_ns ? f.times(all.duration[slice] / row.p50_ns) : "–"})` : undefined],
  ];
  return (
    <div class="details">
      <h2><i class={"dot " + (item.class === "idle" ? "idle-" + item.name : hue(item.class))} />{item.class === "idle" ? `idle: ${f.words(item.name)}` : item.kernel ? <KernelLink id={item.kernel}>{item.name}</KernelLink> : item.name}</h2>
      <dl class="facts">
        {facts.filter(([, v]) => v !== undefined && v !== null && v !== "").map(([name, value]) => <div><dt>{name}</dt><dd>{value}</dd></div>)}
        {share !== undefined && <div><dt>confidence</dt><dd>{share} % of the gap has this cause</dd></div>}
        {gap && <><div><dt>between</dt><dd>{gap.before || "the begin"} and {gap.after || "the end"}</dd></div><div><dt>evidence</dt><dd>{gap.evidence || "none"}</dd></div></>}
        {call !== kNone && <div><dt>launched by</dt><dd><button type="button" class="link" onClick={() => props.show({ all, slice: call })}>{all.items[all.item[call]].name}</button>, {f.ns(all.begin[slice] - all.begin[call])} earlier</dd></div>}
        {work.length > 0 && <div><dt>launched</dt><dd>{work.slice(0, 6).map((w) => <><button type="button" class="link" onClick={() => props.show({ all, slice: w })}>{all.items[all.item[w]].name}</button> </>)}{work.length > 6 ? `and ${work.length >= 200 ? "more" : f.count(work.length - 6) + " more"}` : ""}</dd></div>}
        {advice.map((i: any) => <div><dt>advice</dt><dd><a href={link("advice", i.id)}>{i.title}</a>, saves {f.percent(i.saved_share.low)} to {f.percent(i.saved_share.high)}</dd></div>)}
      </dl>
    </div>
  );
}
