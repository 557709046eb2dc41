// SPDX-License-Identifier: Apache-2.0
// Raw profiles of the nodes that ran a kernel: whole captures, for `purlin view` and `purlin report`.
import { useState } from "preact/hooks";
import * as f from "../format";
import { Section } from "../ui";
import { authorised, useAnswer } from "./api";
import { Asking, Refusal } from "./parts";

// A link cannot carry the token, so the bytes are fetched with it.
async function save(raw: any) {
  const response = await fetch(`v1/raw/${raw.sha256}`, { headers: authorised() });
  if (!response.ok) throw new Error(response.status === 404 ? "the server keeps it no longer" : `${response.status} ${response.statusText}`.trim());
  const at = URL.createObjectURL(await response.blob()), a = document.createElement("a");
  a.href = at; a.download = `${raw.node}-${String(raw.begin).slice(0, 16).replace(/[-:T]/g, "")}.plprof`; a.click();
  setTimeout(() => URL.revokeObjectURL(at), 10_000);
}

export function Save(props: { raw: any }) {
  const [said, say] = useState("");
  const run = () => { say("reading…"); save(props.raw).then(() => say("saved"), (error) => say(`not saved: ${f.reason(error)}`)); };
  return <><button type="button" title={props.raw.sha256} disabled={said === "reading…"} aria-label={`save the profile of ${props.raw.node}, ${f.date(props.raw.begin)}`} onClick={run}>save</button><small class="under" role="status">{said}</small></>;
}

export function RawProfiles(props: { query: Record<string, string> }) {
  const answer = useAnswer("raws", { ...props.query, limit: "12" }), raws: any[] = answer.data?.raws ?? [];
  return (
    <Section title="Raw profiles" note="Whole captures of processes on nodes that ran it, the newest first. Open one with purlin view FILE.">
      <Asking of={answer} /><Refusal of={answer} />
      {answer.data && !answer.data.refused && raws.length === 0 && <p class="faint">None in this time. A collector sends one of each run and hour when its capture has ended.</p>}
      {raws.length > 0 && <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">begin</th><th class="left">from</th><th>size</th><th class="left">kept for</th><th class="left">file</th></tr></thead><tbody>
        {raws.map((r) => <tr key={r.sha256}><td class="left">{f.date(r.begin)}</td><td class="left wrap">{r.node}<small class="under">{[r.build || "build not known", r.job].filter(Boolean).join(" · ")}</small></td><td>{f.bytes(r.bytes)}</td><td class="left">{r.kept_for}</td><td class="left"><Save raw={r} /></td></tr>)}
      </tbody></table></div>}
      {answer.data?.raws_in_all > raws.length && <p class="note">{f.count(answer.data.raws_in_all - raws.length)} more</p>}
    </Section>
  );
}
