// SPDX-License-Identifier: Apache-2.0
// The distribution of durations as bars over a logarithmic axis, with median and 95th percentile.
import * as f from "../format";
import { useWidth } from "../series";

export function Distribution(props: { of: any }) {
  const p = props.of, h = p.histogram, [place, width] = useWidth<HTMLDivElement>(260), height = 150, left = 12, right = 12, top = 30, bottom = 22;
  const counts: number[] = h.count, least = Math.max(0.5, h.low_ns[0] || 0.5), most = h.high_ns[counts.length - 1], high = Math.max(...counts), sum = counts.reduce((a, b) => a + b, 0);
  const low = Math.log(least), span = Math.max(Math.log(most) - low, 1e-9), x = (ns: number) => left + (width - left - right) * Math.max(0, Math.min(1, (Math.log(Math.max(ns, least)) - low) / span));
  const y = (n: number) => height - bottom - (height - top - bottom) * n / (high || 1);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((t) => Math.exp(low + span * t));
  return (
    <div class="series-chart distribution" ref={place}>
      <svg width={width} height={height} role="img" aria-label={`Durations: median ${f.ns(p.p50_ns)}, 95 % below ${f.ns(p.p95_ns)}, from ${f.ns(p.min_ns)} to ${f.ns(p.max_ns)}`}>
        <g class="ticks" aria-hidden="true"><line x1={left} x2={width - right} y1={height - bottom} y2={height - bottom} />{ticks.map((t, i) => <text x={x(t)} y={height - 6} text-anchor={i === 0 ? "start" : i === 4 ? "end" : "middle"}>{f.ns(t)}</text>)}</g>
        {counts.map((n, i) => n > 0 && <rect x={x(h.low_ns[i])} y={y(n)} width={Math.max(1, x(h.high_ns[i]) - x(h.low_ns[i]) - 1)} height={Math.max(0.5, height - bottom - y(n))}><title>{`${f.ns(h.low_ns[i])} to ${f.ns(h.high_ns[i])}: ${f.percent(n / (sum || 1))}`}</title></rect>)}
        {([["p50", p.p50_ns], ["p95", p.p95_ns]] as const).map(([name, ns], i) => { const at = x(ns), turned = at > width * 0.75; return <g class="mark plain" aria-hidden="true"><line x1={at} x2={at} y1={top - 4} y2={height - bottom} /><text x={at + (turned ? -4 : 4)} y={11 + 13 * i} text-anchor={turned ? "end" : "start"}>{name} {f.ns(ns)}</text></g>; })}
      </svg>
    </div>
  );
}
