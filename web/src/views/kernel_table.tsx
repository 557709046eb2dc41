// SPDX-License-Identifier: Apache-2.0
// The kernels by time: filtered and sorted by what the URL says, drawn as far as it is scrolled to.
import { useMemo, useRef, useState } from "preact/hooks";
import { head } from "../data";
import * as f from "../format";
import { rest, type ProfileData, type Row } from "../profile";
import { ofKernel } from "../names";
import { Again, Bound, hue, KernelLink, Meter, Notice, Quantiles, Section, Spark, Tip, useTried } from "../ui";
import { adjust, place } from "../url";

type Key = "total_ns" | "count" | "p50_ns" | "p95_ns" | "utilization" | "headroom";
const kRowHeight = 34, kMargin = 12;

const columns: [Key | "", string, string][] = [
  ["", "#", ""], ["", "kernel", ""], ["", "share", f.meanings.share], ["", "cum.", f.meanings.cumulative],
  ["total_ns", "total", f.meanings.total], ["", "trend", f.meanings.spark], ["count", "launches", f.meanings.count],
  ["p50_ns", "p50", f.meanings.p50], ["p95_ns", "p95", f.meanings.p95], ["", "bound", f.meanings.bound],
  ["utilization", "of roof", f.meanings.utilization], ["headroom", "headroom", f.meanings.headroom],
];

// Whether the page's config cache has a winner for a row's kernel or its problem.
function useTuned(): (row: Row) => boolean {
  const { value } = useTried(() => head("cache"), []);
  return useMemo(() => {
    const entries: any[] = value?.entries ?? [], known = new Map<Row, boolean>();
    return (row) => {
      if (!entries.length) return false;
      let found = known.get(row);
      if (found === undefined) known.set(row, found = entries.some((e) => ofKernel(e, row)));
      return found;
    };
  }, [value]);
}

function select(rows: Row[], query: Record<string, string>): Row[] {
  const text = (query.q ?? "").toLowerCase(), op = query.class ?? "", bound = query.bound ?? "", device = query.device ?? "";
  let pattern: RegExp | null = null;
  if (text.startsWith("/")) try { pattern = new RegExp(text.slice(1).replace(/\/$/, ""), "i"); } catch { /* as text */ }
  const out = rows.filter((row) =>
    (!op || row.op_class === op) && (!bound || row.bound === bound) && (!device || row.device === device) &&
    (!text || (pattern ? pattern.test(row.label) || pattern.test(row.name)
      : row.label.toLowerCase().includes(text) || row.name.toLowerCase().includes(text) || (row.full?.op ?? "").toLowerCase().includes(text))));
  const key = (query.sort || "") as Key;
  if (key) out.sort((a, b) => (b[key] ?? -1) - (a[key] ?? -1));
  return out;
}

export function KernelTable(props: { data: ProfileData }) {
  const { report } = props.data;
  const query = place.value.query;
  const more = report.page?.other?.rows ?? 0;
  const others = useTried(async () => (more ? rest(props.data) : []), [props.data]), tuned = useTuned();
  const rows = useMemo(() => [...props.data.rows, ...(others.value ?? [])], [props.data, others.value]);
  const cumulative = useMemo(() => {
    const byTotal = [...rows].sort((a, b) => b.total_ns - a.total_ns), out = new Float64Array(rows.length);
    let sum = 0;
    for (const row of byTotal) { sum += row.share; out[row.place] = sum; }
    return out;
  }, [rows]);
  const shown = useMemo(() => select(rows, query), [rows, query.q, query.class, query.bound, query.device, query.sort]);
  const options = (key: "op_class" | "bound" | "device") => [...new Set(rows.map((r) => r[key]))].filter((v) => v).sort();
  const box = useRef<HTMLDivElement>(null);
  const [from, setFrom] = useState(0);
  const height = Math.min(shown.length * kRowHeight, 22 * kRowHeight);
  const first = Math.max(0, Math.min(from, shown.length - 1) - kMargin), last = Math.min(shown.length, from + 22 + kMargin);
  const most = Math.max(...rows.slice(0, 1).map((r) => r.share), ...shown.slice(0, 50).map((r) => r.share), 1e-9);
  const roofs = rows.some((r) => r.utilization);
  const share = shown.reduce((sum, r) => sum + r.share, 0);
  const pick = (key: string, label: string, list: string[]) => list.length > 1 && (
    <label>{label}<select value={query[key] ?? ""} onChange={(e) => adjust({ [key]: e.currentTarget.value })}>
      <option value="">all</option>{list.map((v) => <option value={v}>{v}</option>)}</select></label>
  );
  return (
    <Section title="Kernels" id="kernels" class="wide"
      note={<>{f.count(shown.length)} of {f.plural(rows.length + (others.value ? 0 : more), "row")}, {f.percent(share)} of the kernel time{more > 0 && !others.value && !others.error ? <>; {f.count(more)} more rows are being read</> : null}</>}
      tools={<>
        <label class="grow"><span class="visually-hidden">filter by name</span>
          <input type="search" placeholder="Filter: part of a name, or /pattern/" value={query.q ?? ""} onInput={(e) => { setFrom(0); box.current?.scrollTo(0, 0); adjust({ q: e.currentTarget.value }); }} /></label>
        {pick("class", "class", options("op_class"))}{pick("bound", "bound", options("bound"))}{pick("device", "device", options("device"))}
      </>}>
      {others.error ? <Notice tone="warn">{f.plural(more, "row")} with less time could not be read: {f.reason(others.error)}. <Again of={others.again} /></Notice> : null}
      <div class={"grid kernels" + (roofs ? "" : " no-roof")} role="table" aria-label="Kernels by time" aria-rowcount={shown.length + 1}>
        <div class="grid-head" role="row" aria-rowindex={1}>
          {columns.slice(0, roofs ? 12 : 10).map(([key, name, title]) => (
            <span role="columnheader" class={name === "kernel" || name === "share" || name === "trend" ? "left" : ""} aria-sort={key && (query.sort || "total_ns") === key ? "descending" : undefined}>
              {key ? <button type="button" title={title} onClick={() => adjust({ sort: key === "total_ns" ? "" : key })}>{name}{(query.sort || "total_ns") === key ? " ↓" : ""}</button>
                : title ? <Tip text={title}>{name}</Tip> : name}
            </span>
          ))}
        </div>
        <div class="grid-body" role="rowgroup" ref={box} style={{ height: `${height}px` }} tabIndex={0} aria-label="Rows"
          onScroll={(e) => setFrom(Math.floor(e.currentTarget.scrollTop / kRowHeight))}>
          <div class="grid-pad" role="presentation" style={{ height: `${shown.length * kRowHeight}px` }}>
            {shown.slice(first, last).map((row, i) => (
              <div class="grid-row" role="row" id={row.id ? `kernel-${row.place}` : undefined} aria-rowindex={first + i + 2} key={row.place} style={{ top: `${(first + i) * kRowHeight}px` }}>
                <span role="cell" class="faint">{row.place + 1}</span>
                <span role="cell" class="left name-cell"><i class={"dot " + hue(row.op_class)} title={row.op_class} /><KernelLink id={row.id} class="name" title={row.name.slice(0, 500)}>{row.label}</KernelLink>
                  {row.full?.op && <small>{row.full.op}{row.full.shape ? " " + row.full.shape : ""}</small>}{tuned(row) && <span class="chip" title="The config cache holds a winner for this kernel or its problem">tuned</span>}</span>
                <span role="cell"><span class="sharebar"><i class={hue(row.op_class)} style={{ width: `${100 * row.share / most}%` }} /><b>{f.percent(row.share)}</b></span></span>
                <span role="cell" class="faint">{f.percent(cumulative[row.place], 0)}</span>
                <span role="cell">{f.ns(row.total_ns)}</span>
                <span role="cell" class="left"><Spark values={row.detail?.spark} /></span>
                <span role="cell">{f.count(row.count)}</span>
                <Quantiles of={row} recorded={row.recorded} as="span" />
                <span role="cell">{row.full ? <Bound kernel={row.full} /> : row.bound}</span>
                {roofs && <span role="cell"><Meter value={row.utilization} grade={row.full?.roof?.grade} /></span>}
                {roofs && <span role="cell">{f.ns(row.headroom)}</span>}
              </div>
            ))}
          </div>
        </div>
        {shown.length === 0 && <p class="faint pad">No kernel matches. <button type="button" class="link" onClick={() => adjust({ q: "", class: "", bound: "", device: "" })}>Show all</button></p>}
      </div>
    </Section>
  );
}
