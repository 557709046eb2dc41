// SPDX-License-Identifier: Apache-2.0
// Roofline: achieved FLOP/s over FLOP per byte, log-log. An SVG: a few hundred bubbles, each a link.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as f from "../format";
import { index, numbered } from "../data";
import { profile, type ProfileData } from "../profile";
import { useWidth } from "../series";
import { Again, Empty, First, Notice, Section, hue, useTried } from "../ui";
import { adjust, link, place } from "../url";

interface Range { x0: number; x1: number; y0: number; y1: number } // log10
interface Point { id: string; label: string; op_class: string; share: number; x: number; y: number; kernel: any }

export interface Ceiling { name: string; peak: number; provenance: string; compute: boolean }
export function ceilingsOf(data: ProfileData, device: string): Ceiling[] {
  const found = (data.report.ceilings ?? []).find((c: any) => c.device === device);
  return [...(found?.compute ?? []).map((c: any) => ({ ...c, compute: true })), ...(found?.memory ?? []).map((c: any) => ({ ...c, compute: false }))];
}
// Those that some kernel runs into, and the memory's.
export function usedCeilings(data: ProfileData, device: string, only?: string): Set<string> {
  const used = new Set(data.rows.filter((r) => r.device === device && (!only || r.id === only)).flatMap((r) => [r.full?.roof?.ceiling, r.full?.roof?.tensor_ceiling]));
  const all = ceilingsOf(data, device), shown = all.filter((c) => !c.compute || used.has(c.name));
  if (shown.some((c) => c.compute)) return new Set(shown.map((c) => c.name));
  return new Set(all.map((c) => c.name));
}
// Ceilings of one height have one line and one name.
function together(list: Ceiling[]): Ceiling[] {
  const out: Ceiling[] = [];
  for (const c of [...list].sort((a, b) => b.peak - a.peak)) {
    const same = out.find((o) => Math.abs(Math.log(o.peak / c.peak)) < 0.02);
    if (same) same.name += ", " + c.name; else out.push({ ...c });
  }
  return out;
}

function pointsOf(data: ProfileData): Point[] {
  return data.rows.filter((r) => r.full?.roof?.intensity > 0 && r.full.roof.flops_per_s > 0).map((r) => ({
    id: r.id, label: r.label, op_class: r.op_class, share: r.share, x: Math.log10(r.full.roof.intensity), y: Math.log10(r.full.roof.flops_per_s), kernel: r.full,
  }));
}

function rangeOf(points: Point[], ceilings: Ceiling[]): Range {
  const compute = ceilings.filter((c) => c.compute), memory = ceilings.filter((c) => !c.compute);
  const peaks = compute.map((x) => Math.log10(x.peak)), ridges = compute.flatMap((x) => memory.slice(0, 1).map((m) => Math.log10(x.peak / m.peak)));
  const xs = [...points.map((p) => p.x), ...ridges], ys = [...points.map((p) => p.y), ...peaks];
  if (!xs.length) return { x0: -1, x1: 3, y0: 9, y1: 15 };
  return { x0: Math.min(...xs) - 0.4, x1: Math.max(...xs) + 0.7, y0: Math.min(...points.map((p) => p.y), Math.max(...ys) - 1.2) - 0.3, y1: Math.max(...ys) + 0.35 };
}

// From where it was to the rim of its bubble.
function Arrow(props: { from: Point | undefined; to: Point; px: (x: number) => number; py: (y: number) => number; radius: number }) {
  const { from, to, px, py } = props;
  if (!from) return null;
  const dx = px(to.x) - px(from.x), dy = py(to.y) - py(from.y), length = Math.hypot(dx, dy), reach = length - props.radius - 1;
  if (length < 3) return null;
  const x = px(from.x) + dx * reach / length, y = py(from.y) + dy * reach / length;
  return <g class="arrow" aria-hidden="true"><circle cx={px(from.x)} cy={py(from.y)} r="3" />
    {reach > 6 && <><line x1={px(from.x)} y1={py(from.y)} x2={x} y2={y} /><path d="M0 0L-8 3.5L-8 -3.5Z" transform={`translate(${x} ${y}) rotate(${Math.atan2(dy, dx) * 180 / Math.PI})`} /></>}</g>;
}

export function RooflinePlot(props: { data: ProfileData; before?: ProfileData | null; only?: string; height: number; small?: boolean; shown?: Set<string>; device?: string }) {
  const svg = useRef<SVGSVGElement>(null), [box, width] = useWidth<HTMLDivElement>(280);
  const [zoom, setZoom] = useState<Range | null>(null);
  const [hover, setHover] = useState<Point | null>(null);
  const all = useMemo(() => pointsOf(props.data), [props.data]);
  const device = props.device || all[0]?.kernel.device;
  const points = useMemo(() => all.filter((p) => (!props.only || p.id === props.only) && (!device || p.kernel.device === device || props.only)), [all, props.only, device]);
  const wanted = props.shown ?? usedCeilings(props.data, device ?? "", props.only);
  const ceilings = ceilingsOf(props.data, device ?? "").filter((c) => wanted.has(c.name)), key = ceilings.map((c) => c.name).join();
  const before = useMemo(() => new Map((props.before ? pointsOf(props.before) : []).map((p) => [p.kernel.name, p])), [props.before]);
  // Kernels of no weight do not stretch the axes; the note says how many lie outside.
  const base = useMemo(() => { const heavy = points.filter((p) => p.share > 0.001), shown = heavy.length ? heavy : points; return rangeOf([...shown, ...shown.flatMap((p) => before.get(p.kernel.name) ?? [])], ceilings); }, [points, before, key]);
  const range = zoom ?? base;
  const height = props.height, left = 62, right = 12, top = 8, bottom = 36;
  const px = (x: number) => left + (width - left - right) * (x - range.x0) / (range.x1 - range.x0);
  const py = (y: number) => top + (height - top - bottom) * (range.y1 - y) / (range.y1 - range.y0);
  useEffect(() => {
    if (props.small) return;
    const node = svg.current!;
    const wheel = (e: WheelEvent) => {
      e.preventDefault();
      const bounds = node.getBoundingClientRect(), r = zoomRef.current ?? baseRef.current, k = Math.exp(Math.sign(e.deltaY) * 0.15);
      const cx = r.x0 + (r.x1 - r.x0) * (e.clientX - bounds.left - left) / (bounds.width - left - right);
      const cy = r.y1 - (r.y1 - r.y0) * (e.clientY - bounds.top - top) / (height - top - bottom);
      setZoom({ x0: cx - (cx - r.x0) * k, x1: cx + (r.x1 - cx) * k, y0: cy - (cy - r.y0) * k, y1: cy + (r.y1 - cy) * k });
    };
    node.addEventListener("wheel", wheel, { passive: false });
    return () => node.removeEventListener("wheel", wheel);
  }, [props.small, height]);
  const zoomRef = useRef(zoom), baseRef = useRef(base);
  zoomRef.current = zoom; baseRef.current = base;
  const drag = useRef<{ x: number; y: number; r: Range } | null>(null);
  const ticks = (from: number, to: number) => { const out = [], step = to - from > 8 ? 2 : 1, within = to - from < 2.2 ? [1, 2, 5] : [1]; for (let i = Math.floor(from); i <= to; i += step) for (const m of within) { const t = i + Math.log10(m); if (t >= from && t <= to) out.push(t); } return out; };
  const tickText = (t: number) => f.si(Number((10 ** t).toPrecision(2)), "").replace(/\.0+(?= |$)/, "").trim();
  const most = Math.max(...points.map((p) => p.share), 1e-9);
  const radius = (share: number) => (props.small ? 6 : 4 + 22 * Math.sqrt(share / most));
  const compute = together(ceilings.filter((c) => c.compute)), memory = together(ceilings.filter((c) => !c.compute));
  const outside = points.filter((p) => p.x < range.x0 || p.x > range.x1 || p.y < range.y0 || p.y > range.y1).length;
  const roof = Math.max(...compute.map((c) => Math.log10(c.peak)), range.y1);
  // Labels of the biggest bubbles only, where they do not cover one another.
  const labelled: { p: Point; x: number; y: number }[] = [];
  if (!props.small) for (const p of points.slice(0, 12)) {
    const x = px(p.x) + radius(p.share) + 4, y = py(p.y) + 4;
    if (x < width - 120 && y > 10 && labelled.every((l) => Math.abs(l.y - y) > 14 || Math.abs(l.x - x) > 170)) labelled.push({ p, x, y });
  }
  const clip = useMemo(() => "plot" + Math.random().toString(36).slice(2), []);
  return (
    <div class="roofline" ref={box}>
      <svg ref={svg} width={width} height={height} role="group" aria-label={`Roofline: ${f.plural(points.length, "kernel")}`}
        onPointerDown={(e) => { if (!props.small && e.button === 0) { drag.current = { x: e.clientX, y: e.clientY, r: range }; } }}
        onPointerMove={(e) => { const d = drag.current; if (!d) return; const dx = (e.clientX - d.x) / (width - left - right) * (d.r.x1 - d.r.x0), dy = (e.clientY - d.y) / (height - top - bottom) * (d.r.y1 - d.r.y0);
          if (Math.abs(e.clientX - d.x) + Math.abs(e.clientY - d.y) > 3) setZoom({ x0: d.r.x0 - dx, x1: d.r.x1 - dx, y0: d.r.y0 + dy, y1: d.r.y1 + dy }); }}
        onPointerUp={() => { drag.current = null; }} onPointerLeave={() => { drag.current = null; }} onDblClick={() => setZoom(null)}>
        <clipPath id={clip}><rect x={left} y={top} width={width - left - right} height={height - top - bottom} /></clipPath>
        <g class="ticks" aria-hidden="true">
          {ticks(range.x0, range.x1).map((t) => <><line x1={px(t)} x2={px(t)} y1={top} y2={height - bottom} /><text x={px(t)} y={height - bottom + 15} text-anchor="middle">{t < 4 && t > -4 ? Number((10 ** t).toPrecision(1)) : tickText(t)}</text></>)}
          {ticks(range.y0, range.y1).map((t) => <><line x1={left} x2={width - right} y1={py(t)} y2={py(t)} /><text x={left - 6} y={py(t) + 4} text-anchor="end">{tickText(t)}</text></>)}
          <text class="axis-name" x={width - right} y={height - 4} text-anchor="end">FLOP per byte of device memory</text>
          <text class="axis-name" x={left + 2} y={top + 10}>FLOP/s</text>
        </g>
        <g clip-path={`url(#${clip})`}>
          <g class="ceilings" aria-hidden="true">
            {memory.map((m) => { const k = Math.log10(m.peak); return <><line class="memory" x1={px(range.x0)} y1={py(range.x0 + k)} x2={px(roof - k)} y2={py(roof)} /></>; })}
            {compute.map((c) => { const y = Math.log10(c.peak), from = memory.length ? Math.min(...memory.map((m) => y - Math.log10(m.peak))) : range.x0; return <line class="compute" x1={px(Math.max(from, range.x0))} x2={px(range.x1)} y1={py(y)} y2={py(y)} />; })}
          </g>
          <g class="ceiling-names" aria-hidden="true">
            {compute.map((c, i) => <text x={width - right - 6} y={py(Math.log10(c.peak)) - 4} text-anchor="end" key={i}>{c.name} {f.flops(c.peak)}</text>)}
            {memory.map((m, i) => { const k = Math.log10(m.peak), x = Math.max(range.x0, range.y0 - k) + 0.12; return <text key={i} x={px(x)} y={py(x + k) - 5} transform={`rotate(${-Math.atan2(Math.abs(py(1) - py(0)), px(1) - px(0)) * 180 / Math.PI} ${px(x)} ${py(x + k) - 5})`}>{m.name} {f.rate(m.peak)}</text>; })}
          </g>
                    {[...points].reverse().map((p) => (
            <a href={link("kernels", p.id)} class={"bubble " + hue(p.op_class)} aria-label={`${p.label}: ${f.percent(p.share)} of the time, ${f.flops(p.kernel.roof.flops_per_s)}, ${f.digits(p.kernel.roof.intensity)} FLOP per byte, ${f.percent(p.kernel.utilization)} of its roof`}
              onPointerEnter={() => setHover(p)} onPointerLeave={() => setHover(null)} onFocus={() => setHover(p)} onBlur={() => setHover(null)}>
              <circle cx={px(p.x)} cy={py(p.y)} r={radius(p.share)} class={p.kernel.provenance === "shape_model" ? "modelled" : ""} />
            </a>
          ))}
          {points.map((p) => <Arrow from={before.get(p.kernel.name)} to={p} px={px} py={py} radius={radius(p.share)} />)}
          <g class="names" aria-hidden="true">{labelled.map(({ p, x, y }) => <text x={x} y={y}>{p.label.length > 26 ? p.label.slice(0, 25) + "…" : p.label}</text>)}</g>
        </g>
      </svg>
      {hover && !props.small && (
        <div class="hovercard" style={{ left: `${Math.min(px(hover.x) + 14, width - 290)}px`, top: `${Math.max(4, py(hover.y) - 90)}px` }} aria-hidden="true">
          <b>{hover.label}</b>
          <dl class="facts"><div><dt>time</dt><dd>{f.percent(hover.share)} · {f.ns(hover.kernel.total_ns)}</dd></div>
            <div><dt>achieved</dt><dd>{f.flops(hover.kernel.roof.flops_per_s)} · {f.rate(hover.kernel.roof.bytes_per_s)}</dd></div>
            <div><dt>of roof</dt><dd>{f.percent(hover.kernel.utilization)} of {hover.kernel.roof.ceiling}</dd></div>
            <div><dt>work from</dt><dd>{f.words(hover.kernel.provenance ?? "–")}</dd></div></dl>
        </div>
      )}
      {outside > 0 && !props.small && <p class="outside">{f.plural(outside, "kernel")} outside of this range</p>}
      {zoom && !props.small && <button type="button" class="reset" onClick={() => setZoom(null)}>whole range</button>}
    </div>
  );
}

// The first of several files, for what was before.
export const useFirstFile = (data: ProfileData) => useTried(async () => (data.file > 0 && index.documents.some((d) => d.name === numbered("report", 0)) ? profile(0) : undefined), [data]);

export function Roofline(props: { data: ProfileData }) {
  const query = place.value.query, chosen = query.ceilings ? new Set(query.ceilings.split(",")) : null;
  const devices = [...new Set<string>((props.data.report.ceilings ?? []).map((c: any) => c.device))];
  const device = query.device || devices[0] || "";
  const { value: before, error: lost, again } = useFirstFile(props.data);
  const ceilings = ceilingsOf(props.data, device), shown = chosen ?? usedCeilings(props.data, device);
  const plotted = props.data.rows.filter((r) => r.full?.roof?.intensity > 0 && r.full.roof.flops_per_s > 0);
  const share = plotted.reduce((sum, r) => sum + r.share, 0);
  if (!plotted.length)
    return <Empty title="No kernel has a place on the roofline">A place needs the kernel's floating-point operations and bytes. Record counters (<code>purlin profile --counters</code>), or let the program say its shapes. Then this view compares each kernel with the device's limits.</Empty>;
  const toggle = (name: string) => { const next = new Set(shown); next.has(name) ? next.delete(name) : next.add(name); adjust({ ceilings: [...next].join(",") || "none" }); };
  return (
    <div class="view">
      <Section title="Roofline" class="wide" note={<>{f.plural(plotted.length, "kernel")} with known work, {f.percent(share)} of the kernel time. The area of a bubble is its time. A dashed rim: work from a model of the shape. {before ? "An arrow comes from where the first file has it. " : ""}Wheel zooms, drag moves, double click resets.</>}
        tools={devices.length > 1 ? <label>device<select value={device} onChange={(e) => adjust({ device: e.currentTarget.value })}>{devices.map((d) => <option>{d}</option>)}</select></label> : undefined}>
        {lost ? <Notice tone="warn">The first file cannot be read, so no arrow shows where a kernel was: {f.reason(lost)}. <Again of={again} /></Notice> : null}
        <RooflinePlot data={props.data} before={before} height={Math.max(420, Math.min(720, innerHeight - 300))} shown={shown} device={device} />
        {ceilings.length > 0 && (
          <fieldset class="toggles"><legend>Ceilings</legend>
            {ceilings.map((c) => [c, c.compute ? f.flops(c.peak) : f.rate(c.peak)] as [Ceiling, string]).map(([c, text]) => (
              <label title={`from ${c.provenance}`}><input type="checkbox" checked={shown.has(c.name)} onChange={() => toggle(c.name)} />{c.name} <small>{text} · {c.provenance}</small></label>
            ))}
          </fieldset>
        )}
      </Section>
      <Section title="The same as a table" class="wide">
        <First of={plotted} first={60} what="kernel">{(first) => <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">kernel</th><th>share</th><th>FLOP/B</th><th>FLOP/s</th><th>B/s</th><th class="left">ceiling</th><th>of roof</th><th class="left">work from</th></tr></thead><tbody>
          {first.map((r) => <tr><td class="left"><i class={"dot " + hue(r.op_class)} /><a href={link("kernels", r.id)}>{r.label}</a></td><td>{f.percent(r.share)}</td><td>{f.digits(r.full.roof.intensity)}</td><td>{f.flops(r.full.roof.flops_per_s)}</td><td>{f.rate(r.full.roof.bytes_per_s)}</td><td class="left">{r.full.roof.ceiling}</td><td>{f.percent(r.utilization)}</td><td class="left faint">{f.words(r.full.provenance ?? "–")}</td></tr>)}
        </tbody></table></div>}</First>
      </Section>
    </div>
  );
}
