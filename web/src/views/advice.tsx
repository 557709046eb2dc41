// SPDX-License-Identifier: Apache-2.0
// Advice: at which level time is lost, what to change, in which order, and what would not help.
import { useEffect } from "preact/hooks";
import * as f from "../format";
import type { ProfileData } from "../profile";
import { has, index } from "../data";
import { Empty, First, Notice, Section, ShareBar, Stat } from "../ui";
import { link } from "../url";
import { Advised, UnknownRoof, levelNames } from "./advised";
import { inOrder } from "./order";

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
      <Section title="Changes" class="wide plainlist" note={"By the end-to-end time they save. Savings do not add up." + ((a.trades ?? []).length ? " A trade costs precision, or time for memory." : "")}>
        {a.interventions.length === 0 && <p class="faint">{a.nothing ?? "No change is worth the work, as far as this profile shows."}</p>}
        {inOrder(a).map(({ change, trade }, n) => <Advised advice={a} intervention={change} trade={trade} of={of} open={props.open ? props.open === change.id : n === 0} applied={applied[change.id]} />)}
        {a.interventions_left_out > 0 && <p class="faint">{f.count(a.interventions_left_out)} below the smallest saving shown.</p>}
      </Section>
      {(a.unknown_roofs ?? []).length > 0 && <Section title="Not known" class="wide plainlist" note="Own kernels that take much of the time. Their distance to their roofs is not known.">{a.unknown_roofs.map((k: any) => <UnknownRoof advice={a} kernel={k} />)}</Section>}
      <div class="columns flow">
        {(a.plan ?? []).length > 0 && <Section title="Order of work" note="Each saving is on top of those before."><ol class="bullets">{a.plan.map((s: any) => <li><a href={link("advice", s.id)}>{titles[s.id] ?? s.id}</a> <b>{f.percent(s.saved_share?.mid ?? s.saved_share)}</b>{s.obsolete_after ? <span class="faint"> pointless after step {s.obsolete_after}</span> : null}</li>)}</ol></Section>}
        {(a.critical_path ?? []).length > 0 && <Section title="Critical path" note="What the last work of a step waits for"><First of={a.critical_path as any[]} first={12} what="part">{(shown) => <table class="plain"><tbody>{shown.map((c) => <tr><td class="left faint kind">{f.words(c.kind)}</td><td class="left clipped fill" title={c.name}>{c.name || "–"}</td><td><ShareBar value={c.share} /></td><td>{f.ns(c.ns)}</td></tr>)}</tbody></table>}</First></Section>}
        {(a.no_gain ?? []).length > 0 && <Section title="What would not help"><ul class="bullets">{a.no_gain.map((n: any) => <li><b>{n.what}</b>{(n.kernels ?? []).length ? ` (${n.kernels.slice(0, 3).join(", ")}${n.kernels.length > 3 ? ` and ${n.kernels.length - 3} more` : ""})` : ""}: {n.why}</li>)}</ul></Section>}
        {(a.what_if ?? []).length > 0 && <Section title="At most"><ul class="bullets">{a.what_if.map((w: any) => <li>{w.text}</li>)}</ul></Section>}
        {(a.checklist ?? []).length > 0 && <Section title="Checked"><ul class="checks">{a.checklist.map((c: any) => <li class={"check-" + c.state}><b>{c.state}</b><span>{c.text}{c.why ? <small>{c.why}</small> : null}</span></li>)}</ul></Section>}
        {(a.notes ?? []).length > 0 && <Section title="Not judged"><ul class="bullets">{a.notes.map((n: any) => <li>{typeof n === "string" ? n : n.text}</li>)}</ul></Section>}
      </div>
    </div>
  );
}
