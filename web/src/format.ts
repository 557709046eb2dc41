// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. What is not known is "–", never 0.
const dash = "–";
const known = (value: unknown): value is number => typeof value === "number" && isFinite(value);

export function digits(value: number, most = 3): string {
  const size = Math.abs(value);
  if (size >= 1000) return count(value);
  const after = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toFixed(Math.min(after, most));
}
export function ns(value: number | null | undefined): string {
  if (!known(value)) return dash;
  const size = Math.abs(value);
  if (size < 1e3) return `${digits(value, size < 10 && value % 1 ? 1 : 0)} ns`;
  if (size < 1e6) return `${digits(value / 1e3)} µs`;
  if (size < 1e9) return `${digits(value / 1e6)} ms`;
  if (size < 60e9) return `${digits(value / 1e9)} s`;
  if (size < 3600e9) return `${digits(value / 60e9)} min`;
  return `${digits(value / 3600e9)} h`;
}
export function percent(value: number | null | undefined, most = 1): string {
  if (!known(value)) return dash;
  const hundred = 100 * value;
  const near = hundred > 99 && hundred < 100; // never rounded to all of it
  return `${Math.abs(hundred) >= 9.95 && !near ? hundred.toFixed(0) : near ? (Math.floor(hundred * 10) / 10).toFixed(1) : hundred.toFixed(most)} %`;
}
export function count(value: number | null | undefined): string {
  if (!known(value)) return dash;
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}
const prefixes = ["", "k", "M", "G", "T", "P", "E"];
export function si(value: number | null | undefined, unit: string): string {
  if (!known(value)) return dash;
  if (Number.isInteger(value) && Math.abs(value) < 1000) return `${value} ${unit}`;
  let step = 0, size = value;
  while (Math.abs(size) >= 1000 && step < prefixes.length - 1) { size /= 1000; ++step; }
  return `${digits(size)} ${prefixes[step]}${unit}`;
}
export const bytes = (value: number | null | undefined) => si(value, "B");
export const flops = (value: number | null | undefined) => si(value, "FLOP/s");
export const rate = (value: number | null | undefined) => si(value, "B/s");
// A p value.
export const chance = (p: number | null | undefined) => (!known(p) ? dash : p < 1e-4 ? p.toExponential(0) : p.toFixed(4));
export const times = (value: number | null | undefined) => (known(value) ? `${value.toFixed(2)}×` : dash);
// A ratio as a change: 1.05 is "+5.0 %".
export const relative = (ratio: number | null | undefined) => (known(ratio) ? `${ratio >= 1 ? "+" : ""}${(100 * (ratio - 1)).toFixed(1)} %` : dash);
// "M=16,N=8" of a problem, a config.
export const pairs = (of: object | null | undefined, between = ",") => Object.entries(of ?? {}).map(([k, v]) => `${k}=${v}`).join(between);
// A kernel's name without what many share: the result, the parameters, and the midst of a long one.
export function brief(name: string, most = 66): string {
  const plain = name.replace(/^void\s+/, "").replace(/\(anonymous namespace\)::/g, "").replace(/([\w>])\([^()]*\)$/, "$1");
  return plain.length <= most ? plain : `${plain.slice(0, Math.ceil(most * 0.4))}…${plain.slice(-Math.floor(most * 0.6))}`;
}
// Names of devices without what all of a maker have.
export const device = (name: string) => name.replace(/^(NVIDIA|AMD Instinct|Intel) /, "");
export const words = (text: string) => text.replace(/_/g, " ");
export const shape = (list: number[] | null | undefined) => (list ? list.join("×") : dash);
export function date(text: string | undefined): string {
  return text ? text.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC") : dash;
}
// The last part of a path; "a → b" of two.
export const reason = (error: unknown) => String((error as Error)?.message ?? error);
export const base = (path: string) => path.split(" ").map((p) => p.replace(/^.*\/(?=[^/])/, "")).join(" ");
export const moment = (value: number) => `${(value / 1e6).toFixed(4)} ms`;
export const plural = (n: number, word: string, many = word + "s") => `${count(n)} ${n === 1 ? word : many}`;

// Quantiles of so few launches are hints, and marked.
const kFew = 30;
export const few = (launches: number | null | undefined) => known(launches) && launches < kFew;
export const about = (value: number | null | undefined, hint: boolean) => (hint && known(value) ? "≈ " : "") + ns(value);

// What a figure means, shown when it is pointed at.
export const meanings: Record<string, string> = {
  total: "Sum of the durations of all launches; concurrent launches each count in full",
  share: "Part of the time of all kernels",
  cumulative: "Share of this row and all rows above it, in the order of total time",
  count: "Launches, with those that sampling left out",
  p50: "Median duration of a launch, within 0.5 %",
  p95: "95 % of the launches are shorter, within 0.5 %",
  bound: "The limit that the kernel is closest to; a dotted name is a guess from its class alone",
  utilization: "Achieved share of the binding ceiling",
  headroom: "Time saved if the kernel reached its roof: total × (1 − utilisation)",
  spark: "Device time over the recording, in 24 equal parts",
  busy: "Share of the span with any work on the device",
  intensity: "Floating-point operations per byte of device memory",
  occupancy: "Active warps as a share of the warp slots of an SM",
  confidence: "A: replayed, little is assumed; D: a rough estimate",
};

// "bf16?": a guess from the work around a kernel that states no type.
export function elementType(row: any): string {
  const guess = row.dtype && row.dtype_from && row.dtype_from !== "program";
  return guess ? row.dtype + "?" : row.dtype ?? "";
}
