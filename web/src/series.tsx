// SPDX-License-Identifier: Apache-2.0
// A figure over builds, days or files: points, levels between changes, marks of changes and of the
// environment. The pointer or the arrow keys say what a point is.
import { useEffect, useRef, useState } from "preact/hooks";
import * as f from "./format";

export interface Point { label: string; value: number; high?: number | null | undefined; detail?: string }
// `change`: a change of level before the point; else of the environment.
export interface Mark { at: number; text: string; tone: "bad" | "good" | "plain"; change?: boolean }

export function useWidth<T extends HTMLElement>(least: number) {
  const place = useRef<T>(null), [width, setWidth] = useState(600);
  useEffect(() => {
    const node = place.current!, sizes = new ResizeObserver(() => setWidth(Math.max(least, node.clientWidth)));
    sizes.observe(node);
    return () => sizes.disconnect();
  }, []);
  return [place, width] as const;
}

// Round numbers of an axis.
export function rounded(low: number, high: number, most: number): number[] {
  const rough = (high - low) / most, ten = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 2.5, 5, 10].map((s) => s * ten).find((s) => s >= rough)!;
  const out: number[] = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) out.push(v);
  return out;
}

const median = (list: number[]) => [...list].sort((a, b) => a - b)[list.length >> 1];

export function Series(props: { label: string; points: Point[]; marks?: Mark[]; height?: number; print?: (value: number) => string }) {
  const { points } = props, marks = props.marks ?? [], print = props.print ?? f.ns, height = props.height ?? 190;
  const [place, width] = useWidth<HTMLDivElement>(260);
  const [at, setAt] = useState<number | null>(null);
  const left = 68, right = 14, top = marks.length ? 34 : 12, bottom = 24;
  const values = points.flatMap((p) => [p.value, p.high ?? p.value]), least = Math.min(...values), most = Math.max(...values);
  const pad = Math.max((most - least) * 0.12, most * 0.015) || 1, low = Math.max(0, least - pad), high = most + pad;
  const x = (i: number) => (points.length < 2 ? (left + width - right) / 2 : left + (width - left - right) * i / (points.length - 1));
  const y = (v: number) => top + (height - top - bottom) * (high - v) / (high - low);
  const path = (key: "value" | "high") => points.map((p, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(p[key] ?? p.value).toFixed(1)}`).join("");
  const cuts = [0, ...marks.filter((m) => m.change).map((m) => m.at), points.length].sort((a, b) => a - b);
  const every = Math.max(1, Math.ceil(points.length / Math.max(2, Math.floor((width - left) / 92))));
  const half = points.length < 2 ? 8 : (x(1) - x(0)) / 2;
  // Texts of marks have two lines; one that fits on neither is on its line's title only.
  const ends = [-1, -1];
  const lines = [...marks].sort((a, b) => a.at - b.at).map((m) => {
    const px = x(m.at) - half, size = 6.3 * m.text.length + 10, from = px + 4 + size > width ? px - 4 - size : px + 4, line = ends.findIndex((end) => end <= from);
    if (line >= 0) ends[line] = from + size;
    return { m, px, from, line };
  });
  const move = (to: number) => setAt(Math.max(0, Math.min(points.length - 1, to)));
  const said = at === null ? null : points[at];
  return (
    <div class="series-chart" ref={place}>
      <svg width={width} height={height} tabIndex={0} role="img" aria-label={`${props.label}. ${f.plural(points.length, "point")}, from ${print(points[0]?.value)} to ${print(points[points.length - 1]?.value)}${marks.length ? `. ${marks.map((m) => `${m.text} at ${points[m.at]?.label}`).join("; ")}` : ""}`}
        onPointerMove={(e) => move(Math.round((e.offsetX - left) / Math.max(1e-9, 2 * half)))} onPointerLeave={() => setAt(null)} onBlur={() => setAt(null)}
        onKeyDown={(e) => { if (e.key === "ArrowRight") move((at ?? -1) + 1); else if (e.key === "ArrowLeft") move((at ?? points.length) - 1); else return; e.preventDefault(); }}>
        <g class="ticks" aria-hidden="true">
          {rounded(low, high, 4).map((v) => <><line x1={left} x2={width - right} y1={y(v)} y2={y(v)} /><text x={left - 6} y={y(v) + 4} text-anchor="end">{print(v)}</text></>)}
          {points.map((p, i) => i % every === 0 && (i + every < points.length || i === points.length - 1 || points.length <= every * 2 || x(i) + 40 < x(points.length - 1)) ? <text x={x(i)} y={height - 6} text-anchor={i === 0 ? "start" : i === points.length - 1 ? "end" : "middle"}>{p.label.length > 13 ? p.label.slice(0, 12) + "…" : p.label}</text> : null)}
        </g>
        {points.some((p) => p.high != null) && <path class="high" d={path("high")} />}
        <path class="through" d={path("value")} />
        {marks.some((m) => m.change) && cuts.slice(1).map((to, i) => { const from = cuts[i]; if (to <= from) return null; const v = median(points.slice(from, to).map((p) => p.value)); return <line class="level" x1={Math.max(left - 5, x(from) - half * 0.6)} x2={Math.min(width - right + 5, x(to - 1) + half * 0.6)} y1={y(v)} y2={y(v)} />; })}
        {points.map((p, i) => <circle class={i === at ? "here" : ""} cx={x(i)} cy={y(p.value)} r={i === at ? 5 : points.length > 60 ? 2 : 3} />)}
        {lines.map(({ m, px, from, line }) => <g class={"mark " + m.tone}><line x1={px} x2={px} y1={line < 0 ? top : 4 + line * 15} y2={height - bottom} /><title>{m.text}</title>{line >= 0 && <text x={from} y={13 + line * 15}>{m.text}</text>}</g>)}
      </svg>
      <p class="readout" aria-live="polite">{said ? <><b>{print(said.value)}</b> {said.high != null ? `p95 ${print(said.high)} ` : ""}<span class="faint">{[said.label, said.detail].filter(Boolean).join(" · ")}</span></> : <span class="faint">{points.some((p) => p.high != null) ? "median, and 95th percentile dashed" : "median"}</span>}</p>
    </div>
  );
}
