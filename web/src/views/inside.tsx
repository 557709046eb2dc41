// SPDX-License-Identifier: Apache-2.0
// What a profile shows of the inside of a kernel: why its warps wait, its counters, its occupancy.
// `k`: a row of a report. `note`: where it comes from, where that is not plain.
import type { ComponentChildren } from "preact";
import * as f from "../format";
import { First, Meter, Section, ShareBar } from "../ui";
import { counterMeaning, counterValue } from "./counters";

type Note = ComponentChildren;

export function Stalls(props: { stalls: any; note?: Note }) {
  const s = props.stalls, most = Math.max(...s.reasons.map((r: any) => r.share), 1e-9);
  return (
    <Section title="Why warps wait" note={<>{s.samples ? `${f.count(s.samples)} samples` : "from counters of warp states"}{props.note && <>; {props.note}</>}</>}>
      <First of={s.reasons as any[]} first={12} what="reason">{(shown) => <table class="plain"><thead><tr><th class="left">reason</th><th class="left">of samples</th><th><abbr class="tip" title="Of the samples in which no instruction was issued">of stalled</abbr></th><th class="left">meaning</th></tr></thead><tbody>
        {shown.map((r) => <tr><td class="left">{f.words(r.reason)}</td><td class="left"><ShareBar value={r.share} of={most} label={f.percent(r.share)} /></td><td>{f.percent(r.stalled_share)}</td><td class="left faint">{r.meaning}</td></tr>)}
      </tbody></table>}</First>
      {s.occupancy && <p class="note">{s.occupancy}</p>}
      {(s.sites ?? []).length > 0 && <>
        <h3>Where</h3>
        <First of={s.sites as any[]} first={15} what="place">{(shown) => <table class="plain"><thead><tr><th class="left">source</th><th>samples</th><th class="left">of samples</th><th class="left">reasons</th></tr></thead><tbody>
          {shown.map((x) => <tr><td class="left mono">{x.file ? `${x.file}:${x.line}` : `+0x${(x.offset ?? 0).toString(16)}`}</td><td>{f.count(x.samples)}</td><td class="left"><ShareBar value={x.share} /></td>
            <td class="left faint">{(x.reasons ?? []).map((r: any) => `${f.words(r.reason)} ${f.count(r.samples)}`).join(", ")}</td></tr>)}
        </tbody></table>}</First></>}
    </Section>
  );
}

export function Occupancy(props: { k: any; note?: Note }) {
  const { k } = props;
  return (
    <Section title="Occupancy" note={props.note ?? f.meanings.occupancy}>
      <table class="plain"><tbody>
        <tr><th class="left">theoretical</th><td><Meter value={k.occupancy.theoretical} /></td><td class="left faint">{k.occupancy.limiter ? `limited by ${k.occupancy.limiter}` : ""}</td></tr>
        <tr><th class="left">achieved</th><td><Meter value={k.occupancy.achieved} /></td><td class="left faint">{k.occupancy.measured ? "a counter" : "an estimate from the grid"}</td></tr>
      </tbody></table>
      {k.occupancy.cannot_launch && <p class="note bad">Beyond the device's limit: {k.occupancy.cannot_launch}</p>}
    </Section>
  );
}

export function Counters(props: { counters: any[]; note?: Note }) {
  return (
    <Section title="Counters" note={<>Mean of a launch{props.note && <>; {props.note}</>}</>}>
      <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">counter</th><th>value</th><th>launches</th><th class="left">meaning</th></tr></thead><tbody>
        {props.counters.map((c) => <tr><td class="left mono wrap">{c.name}</td><td>{counterValue(c.name, c.value)}</td><td class={f.few(c.launches) ? "faint" : ""}>{f.count(c.launches)}</td><td class="left faint">{counterMeaning(c.name)}</td></tr>)}
      </tbody></table></div>
    </Section>
  );
}
