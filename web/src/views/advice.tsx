// SPDX-License-Identifier: Apache-2.0
// Advice: at which level time is lost, what to change, in which order, and what would not help.
import { useEffect } from "preact/hooks";
import * as f from "../format";
import type { ProfileData } from "../profile";
import { has, index } from "../data";
import { Empty, First, Interval, KernelLink, Notice, Section, ShareBar, Stat, Tip } from "../ui";
import { link } from "../url";

const levelNames: Record<string, string> = { scheduling: "schedule", data_movement: "copies", communication: "communication", restructure: "algorithm", tune: "kernel tuning", hardware: "at its roof", unknown: "not judged" };

function saved(i: any, kind: string) {
  return <>{f.percent(i.saved_share.low)} to {f.percent(i.saved_share.high)}, {f.ns(i.saved_ns.mid)} of {kind === "step" ? "a step" : kind === "run" ? "the run" : "the kernel time"}</>;
}

export function Advised(props: { advice: any; intervention: any; brief?: boolean; open?: boolean; of?: number; applied?: string }) {
  const i = props.intervention, kind = props.advice.unit?.kind, of = props.of ?? Math.max(i.saved_share.high, 0.01);
  const ids: Record<string, string> = {};
  for (const t of props.advice.tune ?? []) ids[t.label] = t.kernel_id;
  return (
    <details class="advised" id={"advice-" + i.id} open={props.open}>
      <summary>
        <span class="advised-title">{i.title}</span>
        <Interval low={i.saved_share.low} mid={i.saved_share.mid} high={i.saved_share.high} of={of} label={`saves ${f.percent(i.saved_share.low)} to ${f.percent(i.saved_share.high)}`} />
        <b class="advised-mid">{f.percent(i.saved_share.mid)}</b>
        <span class="chips"><Tip text={f.meanings.confidence}><span class={"chip grade-" + i.confidence}>{i.confidence}</span></Tip><span class="chip">{i.effort}</span><span class={"chip risk-" + i.risk}>{i.risk} risk</span></span>
      </summary>
      <div class="advised-body">
        <p><b>{saved(i, kind)}</b>. Estimated by {i.estimate === "replay" ? "replay of the timeline" : "arithmetic over kernels"}. {props.applied && <a href={link("timeline", "", { after: props.applied })}>Show the timeline after it</a>}</p>
        {Array.isArray(i.how) ? <ol class="bullets">{i.how.map((x: string) => <li>{x}</li>)}</ol> : <p>{i.how}</p>}
        {(i.kernels ?? []).length > 0 && !props.brief && <p>Kernels: {i.kernels.slice(0, 8).map((k: string, n: number) => <>{n ? ", " : ""}<KernelLink id={ids[k]}>{k}</KernelLink></>)}{i.kernels.length + (i.kernels_left_out ?? 0) > 8 ? ` and ${i.kernels.length + (i.kernels_left_out ?? 0) - 8} more` : ""}</p>}
        <h3>Evidence</h3>
        <table class="plain evidence-table"><tbody>{(i.evidence ?? []).map((e: any) => <tr><td class="left">{e.what}</td><td class={typeof e.value === "number" ? "" : "left wrap"}>{typeof e.value === "number" ? Number(e.value.toPrecision(4)) : e.value}</td><td class="left faint">{e.from}</td></tr>)}</tbody></table>
        {(i.assumptions ?? []).length > 0 && <><h3>Assumes</h3><ul class="bullets">{i.assumptions.map((a: string) => <li>{a}</li>)}</ul></>}
        {i.guard && <p class="note"><b>Check first:</b> {i.guard}</p>}
        {i.record && <p class="note"><b>Track record:</b> {f.plural(i.record.outcomes, "outcome")}, {i.record.inside} inside the interval{i.record.factor ? `; the estimate is multiplied by ${f.digits(i.record.factor.mid)}` : ""}.</p>}
        <p class="faint">{[i.level && `level: ${levelNames[i.level] ?? i.level}`, i.regime && `regime: ${i.regime}`, i.expertise && `for the ${i.expertise} engineer`, i.portability, i.freed_bytes && `frees ${f.bytes(i.freed_bytes)}`].filter(Boolean).join(" · ")}</p>
      </div>
    </details>
  );
}

export function Advice(props: { data: ProfileData; open: string }) {
  const a = props.data.advice;
  useEffect(() => { if (props.open) document.getElementById("advice-" + props.open)?.scrollIntoView({ block: "start" }); }, [props.open]);
  if (!a) return <Empty title="No advice">{props.data.unread.length ? `${props.data.unread.join("; ")}. Load the page again to try again.` : "This page has no advice document."}</Empty>;
  const levels = Object.entries<number>(a.levels ?? {}).filter(([, v]) => v > 0.001);
  const of = Math.max(...[...a.interventions, ...(a.trades ?? [])].map((i: any) => i.saved_share.high), 0.02);
  const applied: Record<string, string> = {};
  a.interventions.filter((i: any) => i.estimate === "replay").slice(0, 3).forEach((i: any, n: number) => {
    const name = `applied${n}` + (props.data.file ? `-${props.data.file}` : "");
    if (has(`applied${n}`) && index.documents.some((d) => d.name === name)) applied[i.id] = name;
  });
  const titles: Record<string, string> = Object.fromEntries([...a.interventions, ...(a.trades ?? [])].map((i: any) => [i.id, i.title]));
  return (
    <div class="view advice">
      <Section title="Where time is lost" class="wide">
        <p class="lead">{a.verdict_text}</p>
        {levels.length > 0 && <>
          <div class="timebar-bar tall" role="img" aria-label={levels.map(([n, v]) => `${levelNames[n] ?? n} ${f.percent(v)}`).join(", ")}>{levels.map(([name, value]) => <i class={"level-" + name} style={{ width: `${100 * value}%` }} title={`${levelNames[name] ?? name}: ${f.percent(value)}`} />)}</div>
          <ul class="legend">{levels.map(([name, value]) => <li><i class={"level-" + name} />{levelNames[name] ?? name} <b>{f.percent(value)}</b></li>)}</ul></>}
        {a.unit && <dl class="stats small">
          <Stat name={a.unit.kind === "step" ? "a step, recorded" : "recorded"} value={f.ns(a.unit.recorded_ns)} />
          <Stat name="without the recorder" value={f.ns(a.unit.baseline_ns?.mid)} note={`${f.ns(a.unit.baseline_ns?.low)} to ${f.ns(a.unit.baseline_ns?.high)}`} />
          {a.replay && <Stat name="error of the replay" value={f.percent(a.replay.constant_error)} title="Error of the span if every delay is the median of its kind" note={a.replay.lowers_confidence ? `lowers confidence by ${a.replay.lowers_confidence}` : undefined} />}
        </dl>}
      </Section>
      {(a.alerts ?? []).map((x: any) => <Notice tone={x.severity === "critical" ? "bad" : "warn"}>{x.text}</Notice>)}
      <Section title="Changes" class="wide plainlist" note="By the end-to-end time they save. Savings do not add up.">
        {a.interventions.length === 0 && <p class="faint">{a.nothing ?? "No change is worth the work, as far as this profile shows."}</p>}
        {a.interventions.map((i: any, n: number) => <Advised advice={a} intervention={i} of={of} open={props.open ? props.open === i.id : n === 0} applied={applied[i.id]} />)}
        {a.interventions_left_out > 0 && <p class="faint">{f.count(a.interventions_left_out)} below the smallest saving shown.</p>}
      </Section>
      {(a.trades ?? []).length > 0 && <Section title="Trades" class="wide plainlist" note="Cost precision, or time for memory.">{a.trades.map((i: any) => <Advised advice={a} intervention={i} of={of} open={props.open === i.id} />)}</Section>}
      <div class="columns flow">
        {(a.plan ?? []).length > 0 && <Section title="Order of work" note="Each saving is on top of those before."><ol class="bullets">{a.plan.map((s: any) => <li><a href={link("advice", s.id)}>{titles[s.id] ?? s.id}</a> <b>{f.percent(s.saved_share?.mid ?? s.saved_share)}</b>{s.obsolete_after ? <span class="faint"> pointless after step {s.obsolete_after}</span> : null}</li>)}</ol></Section>}
        {(a.critical_path ?? []).length > 0 && <Section title="Critical path" note="What the last work of a step waits for"><First of={a.critical_path as any[]} first={12} what="part">{(shown) => <table class="plain"><tbody>{shown.map((c) => <tr><td class="left faint kind">{f.words(c.kind)}</td><td class="left clipped" title={c.name}>{c.name || "–"}</td><td><ShareBar value={c.share} /></td><td>{f.ns(c.ns)}</td></tr>)}</tbody></table>}</First></Section>}
        {(a.no_gain ?? []).length > 0 && <Section title="What would not help"><ul class="bullets">{a.no_gain.map((n: any) => <li><b>{n.what}</b>{(n.kernels ?? []).length ? ` (${n.kernels.slice(0, 3).join(", ")}${n.kernels.length > 3 ? ` and ${n.kernels.length - 3} more` : ""})` : ""}: {n.why}</li>)}</ul></Section>}
        {(a.what_if ?? []).length > 0 && <Section title="Faster hardware"><ul class="bullets">{a.what_if.map((w: any) => <li>{w.text}</li>)}</ul></Section>}
        {(a.checklist ?? []).length > 0 && <Section title="Checked"><ul class="checks">{a.checklist.map((c: any) => <li class={"check-" + c.state}><b>{c.state}</b><span>{c.text}{c.why ? <small>{c.why}</small> : null}</span></li>)}</ul></Section>}
        {(a.notes ?? []).length > 0 && <Section title="Not judged"><ul class="bullets">{a.notes.map((n: any) => <li>{typeof n === "string" ? n : n.text}</li>)}</ul></Section>}
      </div>
    </div>
  );
}
