// SPDX-License-Identifier: Apache-2.0
// Backlog: what the pool tunes now, what waits, what it spent, and what it won.
import { useEffect, useState } from "preact/hooks";
import * as f from "../format";
import { Brief, Choice, First, Meter, Section, Stat } from "../ui";
import { adjust, place } from "../url";
import { useAnswer } from "./api";
import { kernelLink, Refusal, seconds, short, Waiting } from "./parts";

const kEveryMs = 15e3, kShown = 200;
const order: Record<string, number> = { leased: 0, open: 1, failed: 2, done: 3 };
// "1.31x of the default" is what a worker reports.
const speedup = (t: any) => (t.state === "done" ? Number(/^([\d.]+)x of the default/.exec(t.outcome ?? "")?.[1] ?? NaN) : NaN);
const won = (t: any) => { const x = speedup(t); return x > 1 ? t.gpu_time_ns * (1 - 1 / x) : 0; };

// A kernel that the fleet was seen to run has a view; that of a spec has none.
export const TaskName = (props: { task: any; class?: string }) => {
  const t = props.task, name = t.kernel || t.op || t.id;
  return t.kernel && t.gpu_time_ns > 0 && !t.gpu_time_assumed ? <a class={props.class} href={kernelLink(t.kernel)} title={name}><Brief of={name} /></a> : <span class={props.class} title={name}><Brief of={name} /></span>;
};

export function Backlog() {
  const [turn, setTurn] = useState(0), query = place.value.query;
  useEffect(() => { const timer = setInterval(() => document.hidden || setTurn((n) => n + 1), kEveryMs); return () => clearInterval(timer); }, []);
  const answer = useAnswer("backlog", {}, turn);
  if (!answer.data) return <Waiting of={answer} />;
  const all: any[] = answer.data.tasks, states = [...new Set<string>(all.map((t) => t.state))].sort((a, b) => (order[a] ?? 9) - (order[b] ?? 9));
  const tasks = all.filter((t) => !query.state || t.state === query.state).sort((a, b) => (order[a.state] ?? 9) - (order[b.state] ?? 9));
  const spent: number = answer.data.tuning_gpu_s ?? answer.data.tuning_gpu_s_today ?? 0;
  const gain = all.reduce((sum, t) => sum + won(t), 0);
  return (
    <div class="view">
      <Refusal of={answer} />
      <dl class="stats">{states.map((s) => <Stat name={s === "leased" ? "tuned now" : f.words(s)} value={f.count(all.filter((t) => t.state === s).length)} />)}
        <Stat name="GPU time spent" value={spent > 0 ? seconds(spent) : "none"} note={`${answer.data.tuning_gpu_s_today > 0 ? seconds(answer.data.tuning_gpu_s_today) : "none"} today (UTC)`} title="By workers of the pool, on tuning" />
        <Stat name="possible saving" value={f.ns(all.filter((t) => ["open", "leased"].includes(t.state)).reduce((s, t) => s + (t.saving_ns || 0), 0))} note="of a week" title="GPU time of the last 7 days × headroom, of the tasks that are open or leased" />
        <Stat name="won so far" value={gain > 0 ? f.ns(gain) : "–"} note={gain > 0 ? `${f.count(gain * 1e-9)} GPU-seconds of a week${spent > 0 ? `, ${f.count(gain * 1e-9 / spent)}× what was spent` : ""}` : undefined} tone={gain > 0 ? "good" : ""} title="GPU time of the last 7 days of the done tasks × (1 − 1 / speedup), if programs use the winners" /></dl>
      <Section title="Backlog" class="wide" note="What the pool tunes: leased tasks, then those with the largest possible saving" tools={states.length > 1 ? <Choice label="state" value={query.state ?? ""} options={[["", "all"], ...states.map((s): [string, string] => [s, f.words(s)])]} onChange={(v) => adjust({ state: v })} /> : undefined}>
        {tasks.length > 0 && <First of={tasks} first={kShown} what="task">{(shown) => <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">task</th><th class="left">device</th><th class="left">state</th><th>GPU time</th><th>headroom</th><th>saving</th><th>attempts</th><th class="left">outcome</th></tr></thead><tbody>
          {shown.map((t) => <tr class={t.stale ? "uncertain" : ""}><td class="left wrap"><TaskName task={t} /><small class="under mono">{t.problem && typeof t.problem === "object" ? f.pairs(t.problem) : t.shape ?? ""}</small></td><td class="left wrap">{short(t.device ?? t.gpu ?? "")}</td><td class="left"><span class={"chip task-" + t.state}>{f.words(t.state)}</span>{t.worker && <small class="under">{t.worker}{t.until ? `, until ${f.date(t.until)}` : ""}</small>}</td><td>{f.ns(t.gpu_time_ns)}{t.gpu_time_assumed && <small class="under">assumed</small>}</td><td><Meter value={t.headroom} />{t.headroom_assumed && <small class="under">assumed</small>}</td><td>{f.ns(t.saving_ns)}</td><td>{f.count(t.attempts)}</td><td class="left wrap">{t.outcome}{won(t) > 0 && <small class="under good">{f.ns(won(t))} won</small>}</td></tr>)}
        </tbody></table></div>}</First>}
        {all.length === 0 && <p class="faint">The backlog is empty. The server adds kernels that a spec of an earlier task or entry computes, every 15 minutes; <code>purlin backlog --profile</code> and <code>purlin guard check</code> add others.</p>}
        {all.length > 0 && tasks.length === 0 && <p class="faint">No task is in this state.</p>}
      </Section>
    </div>
  );
}
