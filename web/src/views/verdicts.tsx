// SPDX-License-Identifier: Apache-2.0
// Verdicts of the guard with their intervals: for the guard's view, a kernel's and the fleet's.
import * as f from "../format";

export const itemName = (i: any) => [i.kernel, i.shape, i.variant].filter(Boolean).join(" ");

export function Ratio(props: { ratio: any; floor?: number; verdict?: string; most: number }) {
  const at = (r: number) => 50 + 50 * Math.max(-1, Math.min(1, Math.log(r) / props.most));
  if (!props.ratio) return <span class="faint">not measured</span>;
  const { estimate, low, high } = props.ratio, a = at(low ?? estimate), b = at(high ?? estimate), floor = props.floor ? at(1 + props.floor) - 50 : 0;
  return (
    <span class={"ratio " + (props.verdict ?? "")} role="img" aria-label={`${f.relative(estimate)}, ${f.relative(low)} to ${f.relative(high)}`}>
      {floor > 0 && <em style={{ left: `${50 - floor}%`, width: `${2 * floor}%` }} />}<u /><i style={{ left: `${a}%`, width: `${Math.max(0.6, b - a)}%` }} /><b style={{ left: `${at(estimate)}%` }} />
    </span>
  );
}

// The head of a column of these, with what their ends are.
export const RatioHead = (props: { most: number; what?: string }) => <th class="left">{props.what ?? "interval, band = floor"}<small class="under">{f.relative(Math.exp(-props.most))} to {f.relative(Math.exp(props.most))}</small></th>;

export function Verdicts(props: { list: { doc: any; item: any }[]; href?: string }) {
  const most = Math.max(0.03, ...props.list.map(({ item }) => item.ratio).filter(Boolean).flatMap((r) => [Math.abs(Math.log(r.low ?? r.estimate)), Math.abs(Math.log(r.high ?? r.estimate))])) * 1.1;
  return (
    <div class="scroll" tabIndex={0}><table class="plain verdicts"><thead><tr><th class="left">when</th><th class="left">item</th><th class="left">verdict</th><th>change</th><RatioHead most={most} /><th>pairs</th><th class="left">cause and reason</th></tr></thead><tbody>
      {props.list.map(({ doc, item }) => <tr><td class="left">{f.date(doc.environment?.recorded_at)}<small class="under">{[f.base(String(doc.suite ?? "")), doc.environment?.build].filter(Boolean).join(" · ")}</small></td><td class="left wrap">{props.href ? <a href={props.href}>{itemName(item)}</a> : itemName(item)}</td><td class="left"><span class={"verdict " + item.verdict}>{item.verdict}</span></td><td><b>{f.relative(item.ratio?.estimate)}</b></td><td class="left"><Ratio ratio={item.ratio} floor={item.floor} verdict={item.verdict} most={most} /></td><td>{f.count(item.pairs)}</td><td class="left why">{[item.cause, item.reason].filter(Boolean).join(": ")}</td></tr>)}
    </tbody></table></div>
  );
}
