// SPDX-License-Identifier: Apache-2.0
// Compare: what changed from the first file to another, significant changes first and alone.
import { useMemo } from "preact/hooks";
import * as f from "../format";
import { head, index, names } from "../data";
import { profile } from "../profile";
import { Choice, Empty, First, Loading, Notice, Section, Stat, useLoaded } from "../ui";
import { adjust, link, place } from "../url";

const causeNames: Record<string, string> = { count_ns: "count", duration_ns: "duration", shape_ns: "shapes", kernel_ns: "other kernel", environment_ns: "environment", gone_ns: "gone", new_ns: "new" };
const stepParts = ["kernel_ns", "communication_ns", "copy_ns", "set_ns", "runtime_ns", "data_loader_ns", "cpu_ns", "other_ns"];
const signed = (value: number, text: (v: number) => string) => (value > 0 ? "+" : "") + text(value);

function Causes(props: { causes: any; most: number }) {
  const list = Object.entries<number>(props.causes ?? {}).filter(([, v]) => Math.abs(v) > 0);
  return <span class="causes" role="img" aria-label={list.map(([n, v]) => `${causeNames[n]} ${signed(v, f.ns)}`).join(", ")}>
    {list.map(([name, v]) => <i class={"cause-" + name.replace("_ns", "")} style={{ width: `${Math.min(100, 100 * Math.abs(v) / props.most)}%` }} title={`${causeNames[name]}: ${signed(v, f.ns)}`} />)}</span>;
}

export function Compare() {
  const list = names("diff"), query = place.value.query, chosen = list.includes(query.with ?? "") ? query.with : list[0];
  const diff = useLoaded(() => head(chosen ?? "none"), [chosen]);
  const number = list.indexOf(chosen!);
  const now = useLoaded(() => profile(number + 1), [number]);
  const everything = query.all === "1";
  const ids = useMemo(() => new Map((now?.rows ?? []).map((r) => [r.name, r.id])), [now]);
  const items: any[] = diff?.items ?? [];
  const shown = useMemo(() => items.filter((i) => everything || i.certain), [diff, everything]);
  if (!list.length) return <Empty title="Nothing to compare">Give two profiles: <code>purlin view before after</code>, or <code>purlin diff --html page.html before after</code>.</Empty>;
  if (!diff) return <Loading />;
  const most = Math.max(...shown.map((i) => Math.abs(i.change_ns)), 1), explained = shown.some((i) => (i.why ?? []).length > 0);
  const a = diff.a, b = diff.b, change = diff.change_ns, total = a.kernel_ns || 1;
  return (
    <div class="view compare">
      <Section title="Compared" class="wide" tools={list.length > 1 ? <label>with<select value={chosen} onChange={(e) => adjust({ with: e.currentTarget.value })}>{list.map((n, i) => <option value={n}>{index.files[i + 1]?.path ?? n}</option>)}</select></label> : undefined}>
        <div class="versus">
          {[["before", a], ["now", b]].map(([name, side]: any) => <div><h3>{name}</h3><p class="mono clipped" title={side.path}>{f.base(String(side.path ?? ""))}</p><p class="faint">{[side.build, (side.devices ?? []).join(", "), (side.drivers ?? []).filter(Boolean).map((d: string) => "driver " + d).join(", "), f.date(side.recorded_at)].filter((t: any) => t && t !== "–").join(" · ")}</p></div>)}
        </div>
        <dl class="stats">
          <Stat name={diff.unit === "step" ? "kernel time of a step" : "kernel time"} value={signed(change, f.ns)} note={`${f.ns(a.kernel_ns)} → ${f.ns(b.kernel_ns)}`} tone={change > 0.005 * total ? "bad" : change < -0.005 * total ? "good" : ""} />
          <Stat name="relative" value={signed(change / total, f.percent)} />
          {a.step && b.step && <Stat name="a step" value={signed(b.step.duration_ns - a.step.duration_ns, f.ns)} note={`${f.ns(a.step.duration_ns)} → ${f.ns(b.step.duration_ns)}`} tone={b.step.duration_ns > 1.005 * a.step.duration_ns ? "bad" : b.step.duration_ns < 0.995 * a.step.duration_ns ? "good" : ""} />}
          <Stat name="launches" value={signed(b.launches - a.launches, f.count)} note={`${f.count(a.launches)} → ${f.count(b.launches)}`} />
        </dl>
        {(diff.notes ?? []).map((n: string) => <Notice>{n}</Notice>)}
      </Section>
      {a.step && b.step && (
        <Section title="A step" note="mean, each nanosecond in one part">
          {[["before", a], ["now", b]].map(([name, side]: any) => <div class="step-row"><span>{name}</span><div class="timebar-bar" role="img" aria-label={stepParts.map((p) => `${f.words(p.replace("_ns", ""))} ${f.ns(side.step[p])}`).join(", ")}>
            {stepParts.filter((p) => side.step[p] > 0).map((p) => <i class={"step-" + p.replace("_ns", "")} style={{ width: `${100 * side.step[p] / Math.max(a.step.duration_ns, b.step.duration_ns)}%` }} title={`${f.words(p.replace("_ns", ""))}: ${f.ns(side.step[p])}`} />)}</div><b>{f.ns(side.step.duration_ns)}</b></div>)}
          <ul class="legend">{stepParts.filter((p) => a.step[p] + b.step[p] > 0).map((p) => <li><i class={"step-" + p.replace("_ns", "")} />{f.words(p.replace("_ns", ""))} <b>{signed(b.step[p] - a.step[p], f.ns)}</b></li>)}</ul>
        </Section>
      )}
      <Section title="Kernels" class="wide" note={everything ? f.plural(items.length, "row") : <>{f.count(shown.length)} of {f.plural(items.length, "row")} changed beyond the spread of their launches and 0.5 %. Runs differ by more than launches do: <code>purlin guard</code> gives verdicts.</>}
        tools={<Choice label="rows" value={everything ? "1" : ""} options={[["", "significant"], ["1", "all"]]} onChange={(v) => adjust({ all: v })} />}>
        <ul class="legend">{Object.entries(causeNames).map(([key, name]) => <li><i class={"cause-" + key.replace("_ns", "")} />{name} <b>{diff.causes?.[key] ? signed(diff.causes[key], f.ns) : "0"}</b></li>)}</ul>
        {shown.length === 0 ? <p class="faint pad">No kernel changed beyond the spread of its launches.</p> :
          <First of={shown} first={300} what="row">{(first) => <div class="scroll" tabIndex={0}><table class="plain fixed compared"><thead><tr><th class="left">kernel</th><th class="c-l">change, 95 % interval</th><th class="left c-causes">causes</th><th class="c-s">relative</th><th class="c-l">launches, median</th>{explained && <th class="left c-why">why</th>}</tr></thead><tbody>
            {first.map((i) => (
              <tr class={i.certain ? "" : "uncertain"}>
                <td class="left clip-name" title={i.label}>{ids.get(i.name) ? <a href={link("kernels", ids.get(i.name), { file: String(number + 1) })}>{i.label}</a> : i.label}{!["kernel_and_shape", "none"].includes(i.match) && <small class="under">same {f.words(i.match)}</small>}</td>
                <td class={i.change_ns > 0 ? "bad" : "good"}><b>{signed(i.change_ns, f.ns)}</b><small class="under">{i.interval_ns ? `${f.ns(i.interval_ns.low)} to ${f.ns(i.interval_ns.high)}` : ""}</small></td><td class="left"><Causes causes={i.causes} most={most} /></td>
                <td>{i.a && i.b ? (i.change_share != null ? signed(i.change_share, f.percent) : "–") : i.a ? "gone" : "new"}</td>
                <td>{i.a ? f.count(i.a.count) : "–"} → {i.b ? f.count(i.b.count) : "–"}<small class="under" title="Median; ≈: of fewer than 30 launches">{f.about(i.a?.p50_ns, f.few(i.a?.count))} → {f.about(i.b?.p50_ns, f.few(i.b?.count))}</small></td>{explained && <td class="left why">{(i.why ?? []).join("; ")}</td>}
              </tr>
            ))}
          </tbody></table></div>}</First>}
      </Section>
      {(diff.copies ?? []).length > 0 && <Section title="Copies" class="wide"><table class="plain"><thead><tr><th class="left">kind</th><th>change</th><th>before</th><th>now</th></tr></thead><tbody>{diff.copies.map((c: any) => <tr><td class="left">{c.label || c.name}</td><td>{signed(c.change_ns, f.ns)}</td><td>{f.ns(c.a?.total_ns)}</td><td>{f.ns(c.b?.total_ns)}</td></tr>)}</tbody></table></Section>}
    </div>
  );
}
