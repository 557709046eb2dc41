// SPDX-License-Identifier: Apache-2.0
// uPlot in the page's colours, at the width of its place. `grows`: new data keep the chart, and the
// options are those of the first.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "./theme";

export const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";

export function axis(values?: (self: uPlot, ticks: number[]) => string[], extra: Partial<uPlot.Axis> = {}): uPlot.Axis {
  return {
    stroke: color("--ink-2"), font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif", labelSize: 18,
    grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1, size: 4 }, gap: 4,
    ...(values ? { values: values as uPlot.Axis["values"] } : {}), ...extra,
  };
}

// Marks of a log axis that also a range below a decade has.
export function logSplits(low: number, high: number, most = 6): number[] {
  const all: number[] = [];
  const steps = high / low > 300 ? [1] : high / low > 12 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
  for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) for (const s of steps) if (ten * s >= low && ten * s <= high) all.push(ten * s);
  if (all.length < 2) all.length = 0;
  if (!all.length) for (let i = 1; i < most; ++i) all.push(low + (high - low) * i / most);
  const every = Math.ceil(all.length / most);
  return [...new Set(all)].sort((a, b) => a - b).filter((_, i) => i % every === 0);
}
const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7];
export const wholeNumbers: Partial<uPlot.Axis> = { incrs: whole };
export const logAxis: Partial<uPlot.Axis> = { splits: (u, n) => { const scale = u.scales[u.axes[n].scale!]; return logSplits(scale.min!, scale.max!); }, filter: (_, splits) => splits };

export function Chart(props: { label: string; height: number; data: uPlot.AlignedData; options: () => Omit<uPlot.Options, "width" | "height">; grows?: boolean }) {
  const place = useRef<HTMLDivElement>(null), plotted = useRef<uPlot | null>(null);
  useEffect(() => { plotted.current?.setData(props.data); }, [props.grows && props.data]);
  useEffect(() => {
    const node = place.current!;
    const plot = plotted.current = new uPlot({ ...props.options(), width: Math.max(200, node.clientWidth), height: props.height }, props.data, node);
    const sizes = new ResizeObserver(() => plot.setSize({ width: Math.max(200, node.clientWidth), height: props.height }));
    sizes.observe(node);
    return () => { sizes.disconnect(); plot.destroy(); plotted.current = null; };
  }, [!props.grows && props.data, props.height, theme.value]);
  return <div class="chart" ref={place} role="img" aria-label={props.label} />;
}
