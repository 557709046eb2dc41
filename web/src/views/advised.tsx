// SPDX-License-Identifier: Apache-2.0
// One change that the advice names: its interval, how, evidence, assumptions, track record.
import * as f from "../format";
import { Interval, KernelLink, Tip } from "../ui";
import { link } from "../url";

export const levelNames: Record<string, string> = { scheduling: "schedule", data_movement: "copies", communication: "communication", restructure: "algorithm", tune: "kernel tuning", hardware: "at its roof", unknown: "not judged" };

const whole = (kind: string) => kind === "step" ? "a step" : kind === "run" ? "the run" : "the kernel time";

function saved(i: any, kind: string) {
  return <>{f.percent(i.saved_share.low)} to {f.percent(i.saved_share.high)}, {f.ns(i.saved_ns.mid)} of {whole(kind)}</>;
}

// What a change adds to those listed before it; of the second and the third, where a replay tells.
export const onTop = (i: any) => i.on_top_share == null ? "" : `${f.percent(i.on_top_share)} on top of those before`;

// An own kernel without an estimate: what is known of it, what to record, where to look.
export function UnknownRoof(props: { advice: any; kernel: any }) {
  const k = props.kernel, kind = props.advice.unit?.kind;
  return (
    <div class="advised-body unknown-roof">
      <p><b><KernelLink id={k.kernel_id}>{k.kernel}</KernelLink></b> takes {f.percent(k.share)}, {f.ns(k.ns)} of {whole(kind)}. No saving is estimated.</p>
      <h3>Record</h3><ul class="bullets">{k.collect.map((x: string) => <li>{x}</li>)}</ul>
      <h3>Look at</h3><ul class="bullets">{k.look_at.map((x: string) => <li>{x}</li>)}</ul>
      <table class="plain evidence-table"><tbody>{k.launch.map((e: any) => <tr><td class="left">{e.what}</td><td class="left wrap">{e.value}</td><td class="left faint">{e.from}</td></tr>)}</tbody></table>
    </div>
  );
}

export function Advised(props: { advice: any; intervention: any; brief?: boolean; open?: boolean; of?: number; applied?: string; trade?: boolean }) {
  const i = props.intervention, kind = props.advice.unit?.kind, of = props.of ?? Math.max(i.saved_share.high, 0.01);
  const ids: Record<string, string> = {};
  for (const t of props.advice.tune ?? []) ids[t.label] = t.kernel_id;
  return (
    <details class="advised" id={"advice-" + i.id} open={props.open}>
      <summary>
        <span class="advised-title">{props.trade && <span class="chip trade">trade</span>} {i.title}{!props.brief && onTop(i) && <small class="faint on-top"> {onTop(i)}</small>}</span>
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
