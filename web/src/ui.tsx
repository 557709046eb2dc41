// SPDX-License-Identifier: Apache-2.0
// Small parts that all views share.
import { Component, render, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { about, brief, few, percent, plural, reason } from "./format";
import { go, link } from "./url";

const classes = new Set(["gemm", "conv", "attention", "norm", "softmax", "elementwise", "reduction", "copy",
  "layout", "optimizer", "embedding", "communication"]);
// The style class that gives --hue the colour of an op class, or of a role of the fleet.
const ofRole: Record<string, string> = { mlp: "gemm", matmul: "gemm", kv_cache: "copy", sampling: "reduction" };
export const hue = (opClass: string) => "hue-" + (classes.has(opClass) ? opClass : ofRole[opClass] ?? "other");

export function Tip(props: { text: string; children: ComponentChildren }) {
  return <abbr class="tip" title={props.text}>{props.children}</abbr>;
}

export function Stat(props: { name: string; value: ComponentChildren; note?: ComponentChildren; title?: string; tone?: string }) {
  return (
    <div class={"stat " + (props.tone ?? "")} title={props.title}>
      <dt>{props.name}</dt>
      <dd>{props.value}{props.note != null && <small>{props.note}</small>}</dd>
    </div>
  );
}

export function Section(props: { title: ComponentChildren; id?: string; note?: ComponentChildren; tools?: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <section class={"card " + (props.class ?? "")} id={props.id}>
      <header>
        <h2>{props.title}</h2>
        {props.note && <p class="note">{props.note}</p>}
        {props.tools && <div class="tools">{props.tools}</div>}
      </header>
      {props.children}
    </section>
  );
}

export function ShareBar(props: { value: number; of?: number; class?: string; label?: string }) {
  const width = Math.max(0, Math.min(1, props.value / (props.of || 1)));
  return (
    <span class={"sharebar " + (props.class ?? "")}>
      <i style={{ width: `${100 * width}%` }} />
      <b>{props.label ?? percent(props.value)}</b>
    </span>
  );
}

// A share of a limit. Absent: not known.
export function Meter(props: { value: number | null | undefined; grade?: string }) {
  if (props.value == null) return <span class="faint">–</span>;
  return (
    <span class={"meter " + (props.grade ?? "")}>
      <span><i style={{ width: `${100 * Math.min(1, props.value)}%` }} /></span>
      {percent(props.value, 0)}
    </span>
  );
}

export function Bound(props: { kernel: any }) {
  const from = props.kernel.roof?.bound_from;
  const guess = from === "op_class";
  if (!props.kernel.bound || props.kernel.bound === "unknown") return <span class="faint">unknown</span>;
  return (
    <span class={"bound " + props.kernel.bound + (guess ? " guess" : "")}
      title={guess ? "A guess from the usual behaviour of such kernels" : props.kernel.roof?.evidence}>
      {props.kernel.bound}
    </span>
  );
}

export function Spark(props: { values?: number[] }) {
  const values = props.values;
  if (!values || !values.some((v) => v > 0)) return <span class="faint">–</span>;
  const most = Math.max(...values), width = 72, height = 18, step = width / values.length;
  const points = values.map((v, i) => `${(i * step).toFixed(1)},${(height - 1 - (height - 2) * v / most).toFixed(1)} ${((i + 1) * step).toFixed(1)},${(height - 1 - (height - 2) * v / most).toFixed(1)}`).join(" ");
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <polygon points={`0,${height} ${points} ${width},${height}`} /><polyline points={points} />
    </svg>
  );
}

// The cells of median and 95th percentile; of few launches they are hints. `as`: the tag of a cell.
export function Quantiles(props: { of: { p50_ns: number | null; p95_ns: number | null }; recorded: number; as?: "td" | "span" }) {
  const hint = few(props.recorded) && props.of.p50_ns != null, Cell = props.as ?? "td", role = Cell === "span" ? "cell" : undefined;
  const title = hint ? `Of ${plural(props.recorded, "recorded launch", "recorded launches")} only: a hint` : undefined;
  return <>{[props.of.p50_ns, props.of.p95_ns].map((value) => <Cell role={role} class={hint ? "faint" : ""} title={title}>{about(value, hint)}</Cell>)}</>;
}

// low – mid – high on an axis from 0 to `of`.
export function Interval(props: { low: number; mid: number; high: number; of: number; label: string }) {
  const at = (value: number) => `${Math.max(0, Math.min(100, 100 * value / (props.of || 1)))}%`;
  const low = Math.max(0, Math.min(1, props.low / props.of)), high = Math.max(0, Math.min(1, props.high / props.of));
  return (
    <span class="interval" role="img" aria-label={props.label} title={props.label}>
      <i style={{ left: `${100 * low}%`, width: `${Math.max(0.5, 100 * (high - low))}%` }} />
      <b style={{ left: at(props.mid) }} />
    </span>
  );
}

// The first rows of a list; a line says how many more there are, and shows them. `what`: one of them.
export function First<T>(props: { of: T[]; first: number; what: string; many?: string; children: (shown: T[]) => ComponentChildren }) {
  const [most, setMost] = useState(props.first), { of, what, many } = props, left = of.length - most;
  return <>
    {props.children(of.slice(0, most))}
    {left > 0 && <p class="note">{plural(left, `more ${what}`, many && `more ${many}`)}. <button type="button" class="link" onClick={() => setMost(most + kMoreRows)}>Show {left > kMoreRows ? `the next ${kMoreRows}` : "all"}</button></p>}
  </>;
}
const kMoreRows = 500;

export function Notice(props: { tone?: "info" | "warn" | "bad"; children: ComponentChildren }) {
  return <div class={"notice " + (props.tone ?? "info")} role="note">{props.children}</div>;
}

export function Empty(props: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><h2>{props.title}</h2><p>{props.children}</p></div>;
}

export function KernelLink(props: { id?: string; children: ComponentChildren; class?: string; title?: string }) {
  if (!props.id) return <span class={props.class} title={props.title}>{props.children}</span>;
  return <a href={link("kernels", props.id)} class={props.class} title={props.title}>{props.children}</a>;
}

export function Choice<T extends string>(props: { label: string; value: T; options: [T, string][]; onChange: (value: T) => void }) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.options.map(([value, text]) => (
        <button type="button" aria-pressed={value === props.value} onClick={() => props.onChange(value)}>{text}</button>
      ))}
    </div>
  );
}

export interface Tried<T> { value?: T; error?: unknown; again: () => void }
// The value of a promise, or why there is none; neither while it loads.
export function useTried<T>(load: () => Promise<T>, keys: unknown[]): Tried<T> {
  const [turn, setTurn] = useState(0), now = [...keys, turn];
  const [state, setState] = useState<{ value?: T; error?: unknown; keys?: unknown[] }>({});
  useEffect(() => {
    let wanted = true;
    load().then((value) => wanted && setState({ value, keys: now }), (error) => wanted && setState({ error, keys: now }));
    return () => { wanted = false; };
  }, now);
  const again = () => setTurn((n) => n + 1), { keys: of, ...known } = state;
  return of?.every((key, i) => key === now[i]) ? { ...known, again } : { again };
}
// The same; a failure is thrown to the view's boundary.
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): T | undefined {
  const { value, error } = useTried(load, keys);
  if (error) throw error;
  return value;
}

// A kernel's short name; it may go on in a new line where a word of it ends.
export const Brief = (props: { of: string }) => <>{(brief(props.of).match(/[^_:,<]*[_:,<]?/g) ?? []).map((part) => <>{part}<wbr /></>)}</>;
export const Again = (props: { of: () => void; name?: string }) => <button type="button" class="link" onClick={props.of}>{props.name ?? "Try again"}</button>;

// A view that cannot be shown says why. It is tried again when it is asked for, or another place is.
export class Boundary extends Component<{ children: ComponentChildren; place: string }, { error: unknown }> {
  state = { error: null as unknown };
  componentDidCatch(error: unknown) { console.error(error); this.setState({ error }); }
  componentDidUpdate(before: { place: string }) { if (before.place !== this.props.place && this.state.error) this.setState({ error: null }); }
  render() {
    if (!this.state.error) return this.props.children;
    return <Empty title="This view cannot be shown">{reason(this.state.error)}. The other views still work. <Again of={() => this.setState({ error: null })} /></Empty>;
  }
}

// The page, in place of the text that stays where its script never runs: a file that was cut off.
export function start(app: ComponentChildren) {
  document.getElementById("purlin-begin")?.remove();
  render(app, document.body.appendChild(document.createElement("div")));
}

export const Loading = () => <div class="loading" role="status">Loading…</div>;
export const openKernel = (id: string) => go("kernels", id);
