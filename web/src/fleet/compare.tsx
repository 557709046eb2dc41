// SPDX-License-Identifier: Apache-2.0
// Two builds, drivers, jobs or weeks of the fleet, significant changes first and alone.
import * as f from "../format";
import { Brief, Choice, First, Section } from "../ui";
import { adjust, place } from "../url";
import { useAnswer } from "./api";
import { Asking, Coverage, Filters, filters, halvesOf, kernelLink, Refusal, seconds, short } from "./parts";

const kShown = 200;
export function Compare() {
  const q = place.value.query, by = q.by || "build", begin = q.begin || "-7d";
  const halves = by === "time" ? halvesOf(begin, q.end).map((h) => `${h.begin}/${h.end}`) : null, before = halves ? halves[0] : q.before ?? "", after = halves ? halves[1] : q.after ?? "";
  const values = useAnswer(halves ? "" : "query/values", { dimension: by, begin, ...(q.end ? { end: q.end } : {}) });
  const answer = useAnswer(before && after ? "query/compare" : "", { ...filters(), by, before, after });
  const options: string[] = values.data?.values ?? [], all = q.all === "1", found: any[] = answer.data?.kernels ?? [];
  const rows = found.filter((k) => all || ["slower", "faster"].includes(k.change));
  const counts = ["slower", "faster", "same", "open", "refused"].map((c) => [c, found.filter((k) => k.change === c).length] as const).filter(([, n]) => n > 0);
  return (
    <div class="view">
      <Filters without={[by]} />
      <Section title="Compare" class="wide" note={counts.length ? counts.map(([c, n]) => `${f.count(n)} ${c === "open" ? "not decided" : c}`).join(", ") : undefined} tools={<><label>by<select value={by} onChange={(e) => adjust({ by: e.currentTarget.value, before: "", after: "" })}>{["build", "driver", "runtime", "job", "time"].map((d) => <option>{d}</option>)}</select></label>
        {!halves && (["before", "after"] as const).map((side) => <label>{side}<select value={q[side] ?? ""} onChange={(e) => adjust({ [side]: e.currentTarget.value })}><option value="">choose</option>{options.map((v) => <option value={v}>{v || "(not known)"}</option>)}</select></label>)}
        <Choice label="rows" value={all ? "1" : ""} options={[["", "significant"], ["1", "all"]]} onChange={(v) => adjust({ all: v })} /></>}>
        {halves && <p class="note">The first half of the time against the second.</p>}
        {!(before && after) && <p class="faint">Choose what to compare, before and after.{values.data && options.length < 2 ? ` Only ${f.plural(options.length, "value")} of ${by} is known in this time.` : ""}</p>}
        {before && after && <Asking of={answer} />}
        <Refusal of={answer} />
        {rows.length > 0 && <First of={rows} first={kShown} what="kernel">{(shown) => <div class="scroll" tabIndex={0}><table class="plain fixed fleet-compare"><thead><tr><th class="left">kernel</th><th class="left c-gpu">GPU</th><th class="left c-m">verdict</th><th class="c-l">change</th><th class="c-s">nodes</th><th class="c-l">GPU time</th></tr></thead><tbody>{shown.map((k) => <tr><td class="left clip-name" title={k.kernel}><a href={kernelLink(k.kernel)}><Brief of={k.kernel} /></a>{k.refused && <small class="under">{k.refused.why}</small>}</td><td class="left">{short(k.gpu)}</td><td class="left"><span class={"verdict " + (k.change === "slower" ? "regression" : k.change === "faster" ? "improvement" : "")}>{k.change === "open" ? "not decided" : f.words(k.change)}</span></td><td><b>{f.relative(k.ratio)}</b>{k.ratio_low != null && <small class="under">{f.relative(k.ratio_low)} to {f.relative(k.ratio_high)}</small>}</td><td>{f.count(k.nodes_paired)}</td><td>{seconds(k.gpu_s_before)}<small class="under">→ {seconds(k.gpu_s_after)}</small></td></tr>)}</tbody></table></div>}</First>}
        {answer.data && rows.length === 0 && !answer.data.refused && <p class="faint">No kernel differs beyond the noise of its nodes.</p>}
      </Section>
      {answer.data && <Coverage coverage={answer.data.coverage} />}
    </div>
  );
}
