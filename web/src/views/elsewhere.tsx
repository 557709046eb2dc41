// SPDX-License-Identifier: Apache-2.0
// What other documents of the page know of a kernel: its times over builds and files, verdicts of
// the guard, tuning runs, winners in the config cache, and the profiles that contain it.
import { head, index, names, numbered } from "../data";
import * as f from "../format";
import { ofKernel, sameKernel } from "../names";
import { measuredShare, type ProfileData, type Row } from "../profile";
import { Series, type Mark } from "../series";
import { Again, Notice, Quantiles, Section, ShareBar, useTried } from "../ui";
import { link } from "../url";
import { Entries } from "./entries";
import { GuardSeries } from "./guard";
import { against } from "./runs";
import { Verdicts } from "./verdicts";

interface InFile { file: number; kernel: any; change: any; environment: any; measured: number }
interface Found { files: InFile[]; series: any[]; verdicts: { doc: any; item: any }[]; entries: any[]; all: any[]; runs: { name: string; doc: any }[]; allRuns: any[]; has: Record<string, boolean>; unread: string[] }
const kMostFiles = 30;

// What cannot be read is said, and the rest is shown.
async function related(row: Row): Promise<Found> {
  const files: InFile[] = [], unread: string[] = [];
  const read = (name: string) => head(name).catch((error) => { unread.push(f.reason(error)); return undefined; });
  const heads = async (kind: string) => (await Promise.all(names(kind).map(async (name) => ({ name, doc: await read(name) })))).filter(({ doc }) => doc);
  for (let file = 0; file < Math.min(index.files.length, kMostFiles); ++file) {
    const report = await read(numbered("report", file)), kernel = report?.kernels.find((k: any) => k.name === row.name && (!row.device || k.device === row.device || index.files.length > 1));
    const diff = file > 0 ? await read(numbered("diff", file - 1)) : undefined;
    if (kernel) files.push({ file, kernel, change: diff?.items?.find((i: any) => i.name === row.name), environment: report.environment, measured: measuredShare(report) });
  }
  const series = (await heads("history")).flatMap(({ doc }) => (doc.series ?? []).filter((s: any) => sameKernel(row, s.kernel)));
  const verdicts = (await heads("guard")).flatMap(({ doc }) => (doc.items ?? []).filter((i: any) => sameKernel(row, i.kernel)).map((item: any) => ({ doc, item })));
  const tuned = await heads("tune"), runs = tuned.filter(({ doc }) => sameKernel(row, doc.kernel ?? ""));
  const all = ((await read("cache"))?.entries ?? []) as any[];
  const entries = all.filter((e) => ofKernel(e, row));
  return { files, series, verdicts, entries, all, runs, allRuns: tuned.map(({ doc }) => doc), has: { history: names("history").length > 0, guard: names("guard").length > 0, cache: all.length > 0 }, unread };
}

const environmentOf = (x: InFile) => ({ device: x.kernel.device, driver: x.environment?.devices?.[0]?.driver, toolkit: x.environment?.devices?.[0]?.toolkit, build: x.kernel.build || x.environment?.build });
// What differs between neighbours: "driver 570.86 → 580.65".
export function changesOf(before: Record<string, any>, after: Record<string, any>): string {
  return Object.keys(after).filter((k) => before[k] && after[k] && before[k] !== after[k]).map((k) => `${k} ${before[k]} → ${after[k]}`).join(", ");
}

function Files(props: { files: InFile[]; here: number }) {
  const { files } = props, marks: Mark[] = [];
  files.forEach((x, i) => { const text = i > 0 ? changesOf(environmentOf(files[i - 1]), environmentOf(x)) : ""; if (text) marks.push({ at: i, text, tone: "plain" }); });
  const label = (x: InFile) => environmentOf(x).build || f.base(index.files[x.file].path);
  return (
    <Section title="Profiles that contain it" note={`${f.count(files.length)} of ${index.files.length > kMostFiles ? `the first ${kMostFiles} of ` : ""}${f.plural(index.files.length, "file")} of this page`}>
      {files.length > 2 && <Series label="Median by file" points={files.map((x) => ({ label: label(x), value: x.kernel.p50_ns ?? 0, high: x.kernel.p95_ns, detail: f.date(x.environment?.recorded_at) }))} marks={marks} />}
      <div class="scroll" tabIndex={0}><table class="plain"><thead><tr><th class="left">file</th><th class="left">recorded</th><th class="left">build, device, driver</th><th>launches</th><th class="left">share</th><th>p50</th><th>p95</th><th>against the first</th></tr></thead><tbody>
        {files.map((x) => { const e = environmentOf(x); return <tr class={x.file === props.here ? "chosen" : ""}><td class="left"><a href={link("kernels", x.kernel.id, { file: String(x.file) })}>{f.base(index.files[x.file].path)}</a></td><td class="left faint">{f.date(x.environment?.recorded_at)}</td><td class="left faint wrap">{[e.build, e.device, e.driver].filter(Boolean).join(" · ")}</td><td>{f.count(x.kernel.count)}</td><td class="left"><ShareBar value={x.kernel.share} /></td><Quantiles of={x.kernel} recorded={x.kernel.count * x.measured} />
          <td>{x.change?.change_share != null ? <span class={!x.change.certain ? "faint" : x.change.change_ns > 0 ? "bad" : "good"} title={x.change.certain ? "beyond the spread of its launches" : "within the spread of its launches"}>{f.relative(1 + x.change.change_share)}</span> : "–"}</td></tr>; })}
      </tbody></table></div>
    </Section>
  );
}

export function Elsewhere(props: { data: ProfileData; row: Row }) {
  const { data, row } = props, { value: found, error, again } = useTried(() => related(row), [data.file, row.id]);
  if (error) return <Notice tone="warn">What other documents know of it cannot be shown: {f.reason(error)}. <Again of={again} /></Notice>;
  if (!found) return <Section title="History"><p class="faint" role="status">Looking through the page's documents…</p></Section>;
  const lacks = [
    !found.series.length && [found.has.history ? "no series of this kernel in the histories of this page" : "history over builds", "purlin guard run SUITE --record nightly.jsonl"],
    !found.verdicts.length && [found.has.guard ? "no verdict about this kernel in this page" : "verdicts of the guard", "purlin guard check SUITE --json > verdict.json"],
    !found.entries.length && [found.has.cache ? "no winner of this kernel or problem in the config cache" : "a winner in the config cache", "purlin tune SPEC"],
    found.files.length < 2 && ["profiles of other builds", "purlin view old.plprof new.plprof"],
  ].filter(Boolean) as [string, string][];
  return (
    <>
      {found.unread.length > 0 && <Notice tone="warn">{f.plural(found.unread.length, "document")} of this page could not be read, so something may be missing here: {found.unread.slice(0, 3).join("; ")}{found.unread.length > 3 ? `; and ${f.count(found.unread.length - 3)} more` : ""}. <Again of={again} /></Notice>}
      {found.series.length > 0 && <Section title="History over builds" note="Changes of level, with what changed in the environment. Hints: a paired run decides.">{found.series.map((s) => <GuardSeries series={s} />)}</Section>}
      {found.verdicts.length > 0 && <Section title="Verdicts of the guard"><Verdicts list={found.verdicts} href={link("guard")} /></Section>}
      {found.entries.length > 0 && <Section title="In the config cache" note="Winners for this kernel or its problem"><Entries entries={found.entries} among={found.all} p50_ns={row.p50_ns} shape={row.full?.shape ?? ""} /></Section>}
      {found.runs.length > 0 && <Section title="Tuning runs"><ul class="bullets">{found.runs.map(({ name, doc }) => { const to = against(doc, found.allRuns); return <li><a href={link("tuning", name)}>{doc.kernel} {f.pairs(doc.problem)}</a>: {[f.plural((doc.evaluations ?? []).length, "evaluation"), to.over_default ? `${f.times(to.over_default)} over its default` : "no time of its default", to.library ? `${f.times(to.over_library)} over ${to.library.library}` : "no run of a vendor's library for this problem"].join(", ")}</li>; })}</ul></Section>}
      {found.files.length > 1 && <Files files={found.files} here={data.file} />}
      {lacks.length > 0 && found.unread.length === 0 && (
        <details class="lacks"><summary>Not in this page: {lacks.map(([what]) => what).join("; ")}</summary>
          <dl class="facts">{lacks.map(([what, how]) => <div><dt>{what}</dt><dd><code>{how}</code></dd></div>)}</dl>
          <p class="note">Give what these commands write to <code>purlin view</code>, together with the profile.</p></details>
      )}
    </>
  );
}
