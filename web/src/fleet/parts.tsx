// SPDX-License-Identifier: Apache-2.0
// What the views of a fleet share: filters of the URL, coverage, and answers that are not there.
import { useEffect, useState } from "preact/hooks";
import * as f from "../format";
import { Again, Choice, Empty, Notice } from "../ui";
import { adjust, link, place } from "../url";
import { Refused, setToken, useAnswer, type Answer } from "./api";

export const dimensions = ["model", "role", "build", "driver", "runtime", "job", "node"];
const ranges: [string, string][] = [["-1d", "day"], ["-7d", "week"], ["-30d", "month"]];
export const seconds = (value: number | null | undefined) => f.ns(value == null ? null : value * 1e9);
export const short = f.device;

export function filters(): Record<string, string> {
  const q = place.value.query, out: Record<string, string> = { begin: q.begin || "-7d", ...(q.end ? { end: q.end } : {}) };
  for (const d of dimensions) if (q[d]) out[d] = q[d];
  return out;
}
// The two halves of the chosen time, in whole hours.
export function halvesOf(begin: string, end?: string): { begin: string; end: string }[] {
  const hour = 36e5, to = Math.floor((Date.parse(end ?? "") || Date.now()) / hour) * hour, from = Date.parse(begin) || to - ({ "-1d": 1, "-30d": 30 }[begin] ?? 7) * 24 * hour;
  const text = (at: number) => new Date(at).toISOString().replace(".000", ""), middle = text(from + Math.round((to - from) / 2 / hour) * hour);
  return [{ begin: text(from), end: middle }, { begin: middle, end: text(to) }];
}
// Of the URL, without those of a view.
export function kept(): Record<string, string> {
  const q = place.value.query;
  return Object.fromEntries(["begin", "end", ...dimensions].filter((d) => q[d]).map((d) => [d, q[d]]));
}
export const kernelLink = (name: string) => link("kernels", name, kept());

export function Filters(props: { without?: string[] }) {
  const [open, setOpen] = useState(""), query = place.value.query;
  const values = useAnswer(open ? "query/values" : "", { dimension: open, begin: query.begin || "-7d", ...(query.end ? { end: query.end } : {}) });
  // Days that were chosen, in UTC, as the server counts them.
  const chosen = !!query.end || /^\d{4}-/.test(query.begin ?? ""), day = (at: number) => new Date(at).toISOString().slice(0, 10) + "T00:00:00Z";
  const shown = dimensions.filter((d) => !props.without?.includes(d)), used = shown.filter((d) => query[d]);
  return (
    <div class="filters">
      <Choice label="time" value={chosen ? "days" : query.begin || "-7d"} options={[...ranges, ["days", "days…"]]} onChange={(v) => adjust(v === "days" ? { begin: day(Date.now() - 7 * 864e5), end: day(Date.now() + 864e5) } : { begin: v === "-7d" ? "" : v, end: "" })} />
      {chosen && (["begin", "end"] as const).map((side) => <label>{side === "begin" ? "from" : "before"}<input type="date" value={(query[side] ?? "").slice(0, 10)} onChange={(e) => e.currentTarget.value && adjust({ [side]: day(Date.parse(e.currentTarget.value)) })} /></label>)}
      {shown.map((d) => <label>{d}<select value={query[d] ?? ""} onFocus={() => setOpen(d)} onChange={(e) => adjust({ [d]: e.currentTarget.value })}>
        <option value="">all</option>{[...new Set([...(query[d] ? [query[d]] : []), ...(open === d ? values.data?.values ?? [] : [])])].map((v: string) => <option value={v}>{v || "(not known)"}</option>)}</select></label>)}
      {used.length > 0 && <button type="button" class="link" onClick={() => adjust(Object.fromEntries(used.map((d) => [d, ""])))}>no filter</button>}
    </div>
  );
}

export function Coverage(props: { coverage: any }) {
  const c = props.coverage;
  if (!c) return null;
  const thin = c.seen_share != null && c.seen_share < 0.5;
  return <Notice tone={thin || c.lost_share > 0.01 ? "warn" : "info"}>
    {f.plural(c.nodes, "node")}, {f.plural(c.devices, "device")}; {c.seen_share == null ? "the recorded share is not known" : `${f.percent(c.seen_share)} of the busy time was recorded`}; {f.plural(c.launches_lost, "launch", "launches")} lost{c.lost_share > 0 ? ` (${f.percent(c.lost_share, 2)})` : ""}; capture took {seconds(c.overhead_s)}{c.busy_s > 0 ? `, ${f.percent(c.overhead_s / c.busy_s, 2)} of the busy time` : ""}{c.bad_timestamps ? `; ${f.count(c.bad_timestamps)} records had a wrong clock` : ""}{(c.why ?? []).length ? `; ${c.why.map((w: any) => (typeof w === "string" ? w : w.why ?? "")).join("; ")}` : ""}.
  </Notice>;
}

// Why there is no answer, or none newer than the one that is shown. `what`: where it is not plain.
export function Refusal(props: { of: Answer; what?: string }) {
  const { data, error, at, again } = props.of;
  if (error) return <Notice tone="warn">{props.what && `${props.what}: `}{f.reason(error)}.{data && at ? ` This is of ${new Date(at).toTimeString().slice(0, 5)}.` : ""} {again && <Again of={again} name="Ask again" />}</Notice>;
  return data?.refused ? <Notice tone="warn">No conclusion: {data.refused.why}</Notice> : null;
}
const kLongMs = 6e3;
// A part of a view that has its own question.
export function Asking(props: { of: Answer }) {
  const waits = !props.of.data && !props.of.error, [long, setLong] = useState(false);
  useEffect(() => {
    const timer = waits ? setTimeout(() => setLong(true), kLongMs) : 0;
    return () => { clearTimeout(timer); setLong(false); };
  }, [waits]);
  return waits ? <p class="faint" role="status">Asking the server…{long && " It takes long: the server is busy, or the time holds many rows."}</p> : null;
}

// Nothing else would be answered either: the server is not there, or wants a token.
export const forAll = (of: Answer) => of.error instanceof Refused && [0, 401, 403].includes(of.error.status);

export function Waiting(props: { of: Answer }) {
  const [text, setText] = useState("");
  if (!props.of.error) return <div class="loading"><Asking of={props.of} /></div>;
  if (props.of.error instanceof Refused && [401, 403].includes(props.of.error.status))
    return <form class="empty" onSubmit={(e) => { e.preventDefault(); setToken(text); }}><h2>This server wants a token</h2><p>{props.of.error.message}</p><p><label>token of scope read <input type="password" autocomplete="off" value={text} onInput={(e) => setText(e.currentTarget.value)} /></label> <button>Open</button></p><p>It is kept until this tab is closed.</p></form>;
  return <Empty title="The server did not answer as expected">{f.reason(props.of.error)}. {props.of.again && <Again of={props.of.again} name="Ask again" />}</Empty>;
}
