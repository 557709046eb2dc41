// SPDX-License-Identifier: Apache-2.0
// Kernel: everything that the page knows of one row.
import { useMemo } from "preact/hooks";
import { axis, Chart, color, logAxis, wholeNumbers } from "../chart";
import * as f from "../format";
import { measuredShare, type ProfileData } from "../profile";
import { Bound, Empty, hue, Meter, Notice, Quantiles, Section, ShareBar, Spark, Stat } from "../ui";
import { link } from "../url";
import { Advised, UnknownRoof } from "./advised";
import { inOrder } from "./order";
import { Elsewhere } from "./elsewhere";
import { Counters, Occupancy, Stalls } from "./inside";
import { RooflinePlot, useFirstFile } from "./roofline";

function Distribution(props: { kernel: any; detail: any }) {
  const { kernel, detail } = props, h = detail?.histogram;
  const data = useMemo(() => {
    const x: number[] = [], y: number[] = [];
    (h?.count ?? []).forEach((n: number, i: number) => { x.push(Math.sqrt(Math.max(h.low_ns[i], 0.5) * h.high_ns[i]) || h.high_ns[i]); y.push(n); });
    return [x, y] as any;
  }, [h]);
  if (!(kernel.count > 0)) return <p class="faint">The launches were counted, not timed.</p>;
  if (!h || h.count.length < 2) return <p class="faint">All launches took the same time: {f.ns(kernel.p50_ns)}.</p>;
  const options = () => ({
    legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false, distr: 3 as const, log: 10 as const, range: (_: any, low: number, high: number): [number, number] => [low / 1.06, high * 1.06] }, y: { range: (_: any, __: number, high: number): [number, number] => [0, high * 1.1] } },
    axes: [axis((_, ticks) => ticks.map((t) => (t == null ? "" : f.ns(t))), { ...logAxis, size: 30 }), axis((_, ticks) => ticks.map(f.count), { ...wholeNumbers, size: 56 })],
    series: [{}, {
      stroke: color("--accent"), fill: color("--accent-soft"), width: 1, points: { show: false },
      paths: (u: any, i: number, i0: number, i1: number) => {
        const fill = new Path2D(), zero = u.valToPos(0, "y", true);
        for (let k = i0; k <= i1; ++k) {
          const x0 = u.valToPos(Math.max(h.low_ns[k], 0.5), "x", true), x1 = u.valToPos(h.high_ns[k], "x", true), y = u.valToPos(u.data[i][k], "y", true);
          fill.rect(x0, y, Math.max(1, x1 - x0 - 1), zero - y);
        }
        return { fill, stroke: fill, clip: null, flags: 3 };
      },
    }],
    hooks: {
      draw: [(u: any) => {
        for (const [name, value] of [["p50", kernel.p50_ns], ["p95", kernel.p95_ns]] as const) {
          if (value == null) continue;
          const x = Math.round(u.valToPos(value, "x", true));
          u.ctx.strokeStyle = color("--bad"); u.ctx.setLineDash([4, 3]); u.ctx.beginPath();
          u.ctx.moveTo(x, u.bbox.top); u.ctx.lineTo(x, u.bbox.top + u.bbox.height); u.ctx.stroke(); u.ctx.setLineDash([]);
          const right = x > u.bbox.left + u.bbox.width * 0.75 || (name === "p50" && x > u.bbox.left + u.bbox.width * 0.3);
          u.ctx.fillStyle = color("--ink"); u.ctx.textAlign = right ? "right" : "left";
          u.ctx.fillText(`${name} ${f.ns(value)}`, x + (right ? -5 : 5) * devicePixelRatio, u.bbox.top + (name === "p50" ? 10 : 24) * devicePixelRatio);
        }
      }],
    },
  });
  return <Chart label={`Durations: median ${f.ns(kernel.p50_ns)}, 95 % below ${f.ns(kernel.p95_ns)}, from ${f.ns(kernel.min_ns)} to ${f.ns(kernel.max_ns)}`} height={190} data={data} options={options as any} />;
}

function Facts(props: { kernel: any }) {
  const k = props.kernel, l = k.launch ?? {}, b = k.built ?? {};
  const facts: [string, any][] = [
    ["op", k.op], ["problem shape", k.shape], ["element type", f.elementType(k) || b.dtype], ["family", k.family], ["class", k.op_class], ["device", k.device], ["build", k.build],
    ["grid", l.grid && f.shape(l.grid)], ["block", l.block && f.shape(l.block)], ["cluster", l.cluster && f.shape(l.cluster)],
    ["registers per thread", k.registers], ["static shared memory", k.static_shared_bytes != null ? f.bytes(k.static_shared_bytes) : null],
    ["dynamic shared memory", l.dynamic_shared_bytes ? f.bytes(l.dynamic_shared_bytes) : null], ["local memory per thread", k.local_bytes ? f.bytes(k.local_bytes) : null],
    ["tile", b.tile], ["stages", b.stages], ["layout", b.layout], ["built for", b.arch], ["tensor cores", b.tensor_cores == null ? null : b.tensor_cores ? "yes" : "no"],
  ];
  return <dl class="facts">{facts.filter(([, v]) => v != null && v !== "" && v !== "–").map(([name, value]) => <div><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

function Change(props: { data: ProfileData; kernel: any }) {
  const item = (props.data.diff?.items ?? []).find((i: any) => i.name === props.kernel.name);
  if (!item) return null;
  return (
    <Section title="Against the first file" note={item.certain ? "beyond the spread of its launches" : "within the spread of its launches"}>
      <p class={"big " + (!item.certain ? "" : item.change_ns > 0 ? "bad" : "good")}>{item.change_ns > 0 ? "+" : ""}{f.ns(item.change_ns)} <small>{item.change_share != null ? f.percent(item.change_share) : ""}</small></p>
      <table class="plain narrow"><thead><tr><th /><th>before</th><th>now</th></tr></thead><tbody>
        {[["launches", "count", f.count], ["total", "total_ns", f.ns], ["p50", "p50_ns", f.ns], ["p95", "p95_ns", f.ns]].map(([name, key, print]: any) =>
          <tr><th class="left">{name}</th><td>{print(item.a?.[key])}</td><td>{print(item.b?.[key])}</td></tr>)}
      </tbody></table>
      {(item.why ?? []).map((why: string) => <p class="note">{why}</p>)}
    </Section>
  );
}

// Where the first file has it in the roofline, beside where it is now.
function Before(props: { of: ProfileData | undefined; kernel: any }) {
  const was = props.of?.rows.find((r) => r.name === props.kernel.name)?.full, now = props.kernel;
  if (!props.of) return null;
  return <p class="note">{was?.utilization != null ? <>In the first file: {f.percent(was.utilization, 0)} of its roof, {f.flops(was.roof?.flops_per_s)}. Now: {now.utilization != null ? `${f.percent(now.utilization, 0)}, ${f.flops(now.roof?.flops_per_s)}` : "not known"}.</> : "Its place in the first file is not known."}</p>;
}

export function Kernel(props: { data: ProfileData; id: string }) {
  const { report, advice } = props.data;
  const row = props.data.rows.find((r) => r.id === props.id), first = useFirstFile(props.data).value;
  if (!row) return <Empty title="No such kernel here">The page has no row <code>{props.id}</code>. It may be of another profile or grouping, or beyond the rows that the page holds in full. <a href={link("kernels")}>All kernels</a></Empty>;
  const k = row.full, r = k.roof ?? {}, d = row.detail, few = f.few(row.recorded);
  const unknown = (advice?.unknown_roofs ?? []).filter((u: any) => u.kernel === k.label);
  const advised = inOrder(advice).filter(({ change }) => (change.kernels ?? []).includes(k.label));
  const noGain = (advice?.no_gain ?? []).filter((n: any) => (n.kernels ?? []).includes(k.label));
  return (
    <div class="view kernel">
      <nav class="crumbs" aria-label="Place"><a href={link("kernels")}>Kernels</a><span>{f.count(row.place + 1)} of {f.count(props.data.rows.length)}</span>
        {row.place > 0 && <a href={link("kernels", props.data.rows[row.place - 1].id)}>← previous</a>}
        {row.place + 1 < props.data.rows.length && <a href={link("kernels", props.data.rows[row.place + 1].id)}>next →</a>}
        {report.timeline?.devices?.length > 0 && <a href={link("timeline", "", { q: k.label })}>find in the timeline</a>}</nav>
      <h1><i class={"dot " + hue(k.op_class)} />{k.label}</h1>
      {k.name !== k.label && <details class="fullname"><summary class="mono">{k.name.length > 160 ? k.name.slice(0, 160) + "…" : k.name}</summary>{k.name.length > 160 && <p class="mono">{k.name}</p>}</details>}
      {few && <Notice tone="warn">Only {f.plural(row.recorded, "launch", "launches")} of it {Math.round(row.recorded) === 1 ? "was" : "were"} recorded: its durations are hints.</Notice>}
      <dl class="stats">
        <Stat name="share" value={f.percent(k.share)} title={f.meanings.share} note={`number ${row.place + 1}`} />
        <Stat name="total" value={f.ns(k.total_ns)} title={f.meanings.total} note={d?.spark ? <Spark values={d.spark} /> : undefined} />
        <Stat name="launches" value={f.count(k.count)} title={f.meanings.count} note={f.plural(k.launch_shapes ?? 1, "launch shape")} />
        <Stat name="median" value={f.about(k.p50_ns, few)} title={f.meanings.p50} note={`p95 ${f.about(k.p95_ns, few)}`} />
        <Stat name="bound" value={<Bound kernel={k} />} title={f.meanings.bound} note={r.ceiling || undefined} />
        <Stat name="of its roof" value={k.utilization == null ? <span class="faint">unknown</span> : f.percent(k.utilization, 0)} title={f.meanings.utilization} note={k.target ? `target ${f.percent(k.target.fraction, 0)}${k.target.speedup > 1 ? `, ${k.target.speedup.toFixed(2)}× faster` : ", reached"}` : undefined}
          tone={r.grade === "good" ? "good" : r.grade === "optimise" ? "bad" : r.grade === "ok" ? "warn" : ""} />
        <Stat name="headroom" value={r.headroom_ns == null ? <span class="faint">unknown</span> : f.ns(r.headroom_ns)} title={f.meanings.headroom} />
      </dl>
      {r.evidence && <p class="evidence">{r.evidence}</p>}
      <div class="columns two">
        <Section title="Durations" note={k.min_ns != null ? `${f.ns(k.min_ns)} to ${f.ns(k.max_ns)}` : undefined}><Distribution kernel={k} detail={d} /></Section>
        <Section title="Roofline" note={r.flops_per_s || r.bytes_per_s ? <>{r.flops_per_s ? f.flops(r.flops_per_s) + " " : ""}{r.bytes_per_s ? f.rate(r.bytes_per_s) : ""} <a href={link("roofline")}>all kernels</a></> : undefined}>
          {r.intensity && r.flops_per_s ? <RooflinePlot data={props.data} before={first} only={k.id} height={230} small />
            : <p class="faint">Neither counters nor a shape model give this kernel's work{report.source === "purlin" ? <>: record with <code class="whole">--counters</code>, or give its problem with <code class="whole">--shape</code></> : ""}.</p>}
          <Before of={first} kernel={k} />
        </Section>
      </div>
      {advised.length > 0 && <Section title="Advice" class="plainlist">{advised.map(({ change, trade }) => <Advised advice={advice} intervention={change} trade={trade} brief />)}</Section>}
      {unknown.length > 0 && <Section title="Not known" class="plainlist">{unknown.map((u: any) => <UnknownRoof advice={advice} kernel={u} />)}</Section>}
      {noGain.length > 0 && <Section title="What would not help"><ul class="bullets">{noGain.map((n: any) => <li><b>{n.what}</b>: {n.why}</li>)}</ul></Section>}
      <Change data={props.data} kernel={k} />
      <Elsewhere data={props.data} row={row} />
      <div class="columns two">
        <Section title="Facts"><Facts kernel={k} /></Section>
        {k.occupancy && <Occupancy k={k} />}
      </div>
      {k.stalls?.reasons?.length > 0 && <Stalls stalls={k.stalls} />}
      {(k.counters ?? []).length > 0 && <Counters counters={k.counters} />}
      {(d?.shapes ?? []).length > 1 && (
        <Section title="Launch shapes" note={d.shapes_left_out ? `${f.count(d.shapes_left_out)} more` : undefined}>
          <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">grid × block</th><th class="left">problem</th><th>launches</th><th>total</th><th>p50</th><th>p95</th><th>of this kernel</th><th>bound</th><th>of roof</th></tr></thead><tbody>
            {d.shapes.map((s: any) => <tr><td class="left mono">{f.shape(s.launch?.grid)} / {f.shape(s.launch?.block)}</td><td class="left">{s.shape || "–"} {f.elementType(s)}</td><td>{f.count(s.count)}</td><td>{f.ns(s.total_ns)}</td><Quantiles of={s} recorded={s.count * measuredShare(report)} />
              <td><ShareBar value={s.total_ns / (k.total_ns || 1)} /></td><td><Bound kernel={s} /></td><td><Meter value={s.utilization} /></td></tr>)}
          </tbody></table></div>
        </Section>
      )}
    </div>
  );
}
