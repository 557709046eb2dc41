// SPDX-License-Identifier: Apache-2.0
// uPlot in the page's colours, at the width of its place.
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

export function Chart(props: { label: string; height: number; data: uPlot.AlignedData; options: () => Omit<uPlot.Options, "width" | "height"> }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const node = place.current!;
    const plot = new uPlot({ ...props.options(), width: Math.max(200, node.clientWidth), height: props.height }, props.data, node);
    const sizes = new ResizeObserver(() => plot.setSize({ width: Math.max(200, node.clientWidth), height: props.height }));
    sizes.observe(node);
    return () => { sizes.disconnect(); plot.destroy(); };
  }, [props.data, props.height, theme.value]);
  return <div class="chart" ref={place} role="img" aria-label={props.label} />;
}
