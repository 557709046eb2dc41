// SPDX-License-Identifier: Apache-2.0
// Raw profiles of the nodes that ran a kernel: whole captures, for `purlin view` and `purlin report`.
import * as f from "../format";
import { Section } from "../ui";
import { token, useAnswer } from "./api";
import { Asking } from "./parts";

// A link cannot carry the token, so the bytes are fetched with it.
async function save(raw: any) {
  const response = await fetch(`v1/raw/${raw.sha256}`, { headers: token.value ? { Authorization: `Bearer ${token.value}` } : {} });
  if (!response.ok) { alert(`${response.status} ${response.statusText}`); return; }
  const at = URL.createObjectURL(await response.blob()), a = document.createElement("a");
  a.href = at; a.download = `${raw.node}-${String(raw.begin).slice(0, 16).replace(/[-:T]/g, "")}.plprof`; a.click();
  setTimeout(() => URL.revokeObjectURL(at), 10_000);
}

export function RawProfiles(props: { query: Record<string, string> }) {
  const answer = useAnswer("raws", { ...props.query, limit: "12" }), raws: any[] = answer.data?.raws ?? [];
  return (
    <Section title="Raw profiles" note="Whole captures of processes on nodes that ran it, the newest first. Open one with purlin view FILE.">
      <Asking of={answer} />
      {answer.data && raws.length === 0 && <p class="faint">None in this time. A collector sends one of each run and hour when its capture has ended.</p>}
      {raws.length > 0 && <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">begin</th><th class="left">node</th><th class="left">build</th><th class="left">job</th><th>size</th><th class="left">kept for</th><th class="left">file</th></tr></thead><tbody>
        {raws.map((r) => <tr><td class="left">{f.date(r.begin)}</td><td class="left">{r.node}</td><td class="left">{r.build}</td><td class="left">{r.job}</td><td>{f.bytes(r.bytes)}</td><td class="left">{r.kept_for}</td><td class="left"><button type="button" title={r.sha256} onClick={() => save(r)}>save</button></td></tr>)}
      </tbody></table></div>}
      {answer.data?.raws_in_all > raws.length && <p class="note">{f.count(answer.data.raws_in_all - raws.length)} more</p>}
    </Section>
  );
}
