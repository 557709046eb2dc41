// SPDX-License-Identifier: Apache-2.0
// Winners of a config cache as a table: time, margin over the default and the runner-up, state.
import * as f from "../format";
import { libraryOf, libraryRival, type Timed } from "../names";

const ms = (value: number | null | undefined) => (value ? f.ns(value * 1e6) : "–");

// The runner-up's lead of the winner, as a part of the winner's time.
function Margin(props: { of: number; by: number }) {
  if (!(props.of > 0 && props.by > 0)) return <span class="faint">–</span>;
  const over = props.by / props.of - 1;
  return <span class={over < 0.005 ? "faint" : ""} title={`${ms(props.by)} against ${ms(props.of)}`}>{over < 0.0005 ? "a tie" : "+" + f.percent(over)}</span>;
}

const timed = (e: any): Timed => ({ problem: e.problem, device: e.key.device || e.key.arch, dtype: e.key.dtype, time_ms: e.time_ms, library: libraryOf(e.key.toolkit, e.key.kernel) });

// `p50_ns`: of the kernel that they are about, to be compared with their times. `among`: where a vendor's
// library is looked for; these, if not given.
export function Entries(props: { entries: any[]; among?: any[]; p50_ns?: number | null; shape?: string }) {
  const among = (props.among ?? props.entries).map(timed), own = props.entries.map(timed);
  const rivals = own.map((e) => libraryRival(e, among)), libraries = rivals.some((r) => r), unmet = own.some((e, i) => e.library === "" && !rivals[i]);
  const measured = props.p50_ns && props.shape ? props.entries.some((e) => e.time_ms > 0 && f.pairs(e.problem) === props.shape) : false;
  return <>
    <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">winner of</th><th class="left">problem</th><th class="left">device</th><th>time</th><th><abbr class="tip" title="Speedup over the kernel's default config; below it, the default's time">over default</abbr></th>{libraries && <th><abbr class="tip" title="Speedup over the winner of a vendor's library for the same problem and GPU; below it, that time">over library</abbr></th>}<th><abbr class="tip" title="How much slower the second best config was">runner-up</abbr></th>{measured && <th><abbr class="tip" title="Median here, over the winner's time; at the same problem only">now</abbr></th>}<th class="left">state</th><th class="left">config</th></tr></thead><tbody>
      {props.entries.map((e, i) => {
        const problem = f.pairs(e.problem), same = measured && e.time_ms > 0 && props.shape === problem;
        return (
          <tr class={e.state === "active" || e.state === "validated" ? "" : "uncertain"}>
            <td class="left">{e.key.kernel}<small class="under">{[e.key.dtype, e.key.policy].filter(Boolean).join(" · ")}</small></td>
            <td class="left mono wrap">{problem}</td><td class="left wrap">{e.key.device || e.key.arch}<small class="under">{e.key.driver && `driver ${e.key.driver}`}</small></td>
            <td><b>{ms(e.time_ms)}</b></td><td>{e.default_time_ms > 0 ? <>{f.times(e.default_time_ms / e.time_ms)}<small class="under">{ms(e.default_time_ms)}</small></> : "–"}</td>
            {libraries && <td>{rivals[i] ? <>{f.times(rivals[i]!.time_ms / e.time_ms)}<small class="under" title={rivals[i]!.library}>{ms(rivals[i]!.time_ms)}</small></> : own[i].library ? <span class="faint" title={own[i].library}>library</span> : "–"}</td>}
            <td><Margin of={e.time_ms} by={e.runner_up_ms} /></td>{measured && <td>{same ? f.times(props.p50_ns! / (e.time_ms * 1e6)) : "–"}</td>}
            <td class="left">{e.state}<small class="under">{e.verified ? "verified" : "not verified"}</small></td>
            <td class="left mono wrap">{f.pairs(e.config, " ")}<small class="under">{[e.strategy, e.evaluations ? f.plural(e.evaluations, "evaluation") : "", f.date(e.recorded_at)].filter((t) => t && t !== "–").join(" · ")}</small></td>
          </tr>
        );
      })}
    </tbody></table></div>
    {unmet && <p class="note">{libraries ? "–: no" : "No"} winner of a vendor's library for the same problem and GPU is known: a spec with <code>[library]</code> measures one.</p>}
  </>;
}
