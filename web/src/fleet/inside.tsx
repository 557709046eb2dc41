// SPDX-License-Identifier: Apache-2.0
// What the newest raw profiles hold of a kernel, and sketches of a store cannot: advice, stalls,
// counters, occupancy. Each part says from which profile it is, or why there is none.
import type { ComponentChildren } from "preact";
import * as f from "../format";
import { First, Section } from "../ui";
import { Advised } from "../views/advised";
import { Counters, Occupancy, Stalls } from "../views/inside";
import { inOrder } from "../views/order";
import { useAnswer } from "./api";
import { Asking, Refusal } from "./parts";

const From = (props: { of: any }) => { const r = props.of; return <>from {r.node}, {r.build ? `build ${r.build}` : "build not known"}, <time dateTime={r.begin}>{f.date(r.begin)}</time></>; };

function Advice(props: { advice: any }) {
  const { advice } = props, list = inOrder(advice);
  return (
    <Section title="Advice" class="wide plainlist" note={<>Of the time of that profile; <From of={advice.from} /></>}>
      {list.length === 0 && <p class="faint">No change of this kernel alone is worth the work, as far as that profile shows.</p>}
      {list.map(({ change, trade }) => <Advised key={change.id} advice={advice} intervention={change} trade={trade} brief />)}
      {advice.no_gain.length > 0 && <><h3>What would not help</h3><First of={advice.no_gain as any[]} first={8} what="change">{(shown) => <ul class="bullets">{shown.map((n) => <li><b>{n.what}</b>: {n.why}</li>)}</ul>}</First></>}
    </Section>
  );
}

// What no raw profile has, with the way to get it.
const lacking: [string, string, ComponentChildren][] = [
  ["stalls", "stall samples", <code>purlin profile --stalls</code>],
  ["counters", "counters", <code>purlin profile --counters</code>],
];
function Lacks(props: { answer: any }) {
  const a = props.answer, none = !a.row, list = lacking.filter(([name]) => !a[name]);
  const read = a.raws_read < a.raws_in_all ? `the ${f.count(a.raws_read)} newest of ${f.plural(a.raws_in_all, "raw profile")}` : `${f.plural(a.raws_in_all, "raw profile")}`;
  if (!none && list.length === 0 && a.unread.length === 0) return null;
  return (
    <Section title={none ? "Advice, stalls and counters" : "Not in the raw profiles"} note={none ? "A raw profile of a node that ran it has them" : undefined}>
      {a.raws_in_all === 0 ? <p class="faint">No raw profile of this time may show it. A collector sends one of each run and hour when its capture has ended.</p>
        : none ? <p class="faint">Nothing of it in {read} of nodes that ran it: the processes that ran it were others. Choose a longer time, or record a window of a node under Nodes.</p>
        : list.length > 0 && <ul class="bullets">{list.map(([, what, how]) => <li class="faint">No {what} of it in {read}. {how} records them.</li>)}</ul>}
      {a.unread.length > 0 && <><p class="note warn">{f.plural(a.unread.length, "raw profile")} could not be read:</p><ul class="bullets">{a.unread.map((u: any) => <li>{f.date(u.begin)}, {u.node}: {u.why}</li>)}</ul></>}
    </Section>
  );
}

export function Inside(props: { query: Record<string, string> }) {
  const answer = useAnswer("raws/kernel", props.query), a = answer.data;
  if (!a) return <Section title="Advice, stalls and counters"><Asking of={answer} /><Refusal of={answer} /></Section>;
  const k = a.row?.kernel;
  return <>
    {answer.error ? <Section title="Advice, stalls and counters"><Refusal of={answer} /></Section> : null}
    {a.advice && <Advice advice={a.advice} />}
    {(a.stalls || k?.occupancy || a.counters) && <div class="columns flow">
      {a.stalls && <Stalls stalls={a.stalls.stalls} note={<From of={a.stalls.from} />} />}
      {k?.occupancy && <Occupancy k={k} note={<From of={a.row.from} />} />}
      {a.counters && <Counters counters={a.counters.counters} note={<From of={a.counters.from} />} />}
    </div>}
    {k?.namesakes > 1 && <p class="note">That profile has {f.count(k.namesakes)} kernels of this name: what is shown is of the one with most time.</p>}
    <Lacks answer={a} />
  </>;
}
