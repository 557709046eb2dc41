// SPDX-License-Identifier: Apache-2.0
// Windows: timelines that people request of a node, from the form to the profile that came
// (docs/design/window-requests.md).
import { useEffect, useRef, useState } from "preact/hooks";
import * as f from "../format";
import { Section } from "../ui";
import { link, place } from "../url";
import { post, useAnswer, type Answer } from "./api";
import { Asking, Refusal } from "./parts";
import { Save } from "./raws";

const kEveryMs = 3e3, kListed = "100", kShortest = 0.001, kLongest = 60;
const open = new Set(["asked", "taken", "recording", "sending"]);
const said: Record<string, string> = { asked: "waits for the node's next batch", taken: "the node has it", recording: "recording", sending: "recorded, on its way", arrived: "here", refused: "refused", expired: "expired" };
const tone = (state: string) => (state === "arrived" ? " task-done" : open.has(state) ? " task-leased" : state === "refused" ? " task-failed" : "");

export interface Windows { answer: Answer; list: any[]; may: boolean; again: () => void }
// Asked again while one is open. `may`: the token may request one.
export function useWindows(): Windows {
  const [turn, setTurn] = useState(0), answer = useAnswer("windows", { limit: kListed }, turn), access = useAnswer("access", {});
  const list: any[] = answer.data?.windows ?? [], waits = list.some((w) => open.has(w.state)), again = () => setTurn((n) => n + 1);
  useEffect(() => {
    if (!waits) return;
    const timer = setInterval(() => document.hidden || again(), kEveryMs);
    return () => clearInterval(timer);
  }, [waits]);
  return { answer, list, may: (access.data?.scopes ?? []).includes("write"), again };
}

const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");

export function AskWindow(props: { node: string; done: () => void; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null), jobs = useAnswer("query/values", { dimension: "job", node: props.node, begin: "-1d" });
  const [job, setJob] = useState(""), [pid, setPid] = useState(""), [length, setLength] = useState("10"), [state, setState] = useState<"" | "asking" | Error>("");
  const [id] = useState(newId); // the same one again is the same request
  useEffect(() => dialog.current!.showModal(), []);
  const send = (event: Event) => {
    event.preventDefault();
    setState("asking");
    post("windows", { id, node: props.node, job, ...(pid ? { pid } : {}), length_s: length }).then(props.done, setState);
  };
  return (
    <dialog ref={dialog} aria-labelledby="ask-window" onClose={props.close}>
      <form class="ask" onSubmit={send}>
        <h2 id="ask-window">Record a window of {props.node}</h2>
        <p class="note">Each launch is recorded for that time, beyond the overhead budget. The node learns of it with its next batch; without activity it sends none, and the request expires after 10 minutes.</p>
        <label>processes of job<select value={job} onChange={(e) => setJob(e.currentTarget.value)}><option value="">all of the node, at most 16</option>{(jobs.data?.values ?? []).filter(Boolean).map((name: string) => <option value={name}>{name}</option>)}</select></label>
        <label>one process<input type="number" min="1" max="2147483647" placeholder="its number, if not all" value={pid} onInput={(e) => setPid(e.currentTarget.value)} /></label>
        <label>seconds<input type="number" required min={kShortest} max={kLongest} step="any" value={length} onInput={(e) => setLength(e.currentTarget.value)} /></label>
        {state instanceof Error && <p class="bad" role="alert">Not requested: {f.reason(state)}.</p>}
        <p class="buttons"><button type="button" onClick={() => dialog.current!.close()}>Cancel</button><button disabled={state === "asking"}>Record</button></p>
      </form>
    </dialog>
  );
}

export const WindowState = (props: { window: any }) => <span class={"chip" + tone(props.window.state)} title={props.window.why || undefined}>{props.window.state === "arrived" ? "window is here" : `window ${props.window.state}`}</span>;

export function WindowList(props: { of: Windows; node: string }) {
  const { answer } = props.of, list = props.of.list.filter((w) => !props.node || w.node === props.node);
  if (answer.data && list.length === 0) return null;
  return (
    <Section title="Requested windows" id="windows" class="wide" note="Timelines of a few seconds, the newest first. Save one, and open it with purlin view FILE.">
      <Asking of={answer} /><Refusal of={answer} what="Requested windows" />
      {list.length > 0 && <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">requested</th><th class="left">node</th><th class="left">processes</th><th>length</th><th class="left">state</th><th class="left">by</th><th class="left">profile</th></tr></thead><tbody aria-live="polite">
        {list.map((w) => <tr key={w.id}><td class="left">{f.date(w.asked)}</td><td class="left"><a href={link("nodes", "", { ...place.value.query, node: w.node })}>{w.node}</a></td><td class="left wrap">{[w.job && `job ${w.job}`, w.pid > 0 && `process ${w.pid}`].filter(Boolean).join(", ") || "all"}</td><td>{f.ns(w.length_s * 1e9)}</td><td class="left wrap"><span class={"chip" + tone(w.state)}>{w.state}</span><small class="under">{w.why || said[w.state]}{w.until ? `, until ${f.date(w.until).slice(11, 16)}` : ""}</small></td><td class="left">{w.asked_by || "–"}</td><td class="left">{w.url ? <Save raw={{ sha256: w.sha256, node: w.node, begin: w.changed }} /> : <span class="faint">{open.has(w.state) ? "not yet" : "none"}</span>}</td></tr>)}
      </tbody></table></div>}
      {list.length === Number(kListed) && <p class="note">Only the last {kListed} are listed.</p>}
    </Section>
  );
}
