// SPDX-License-Identifier: Apache-2.0
// Overview: where the time went, what to do about it, and the kernels by time.
import { useMemo } from "preact/hooks";
import * as f from "../format";
import { Empty, First, Interval, KernelLink, Notice, Section, ShareBar, Stat } from "../ui";
import { link } from "../url";
import type { ProfileData } from "../profile";
import { onTop } from "./advised";
import { KernelTable } from "./kernel_table";

const idleNames: Record<string, string> = {
  host_launch: "idle: host launches late", data_starvation: "idle: waits for input",
  synchronization: "idle: host waited", kernel_to_kernel: "idle: between kernels",
  profiler: "idle: the recorder", other: "idle: unknown",
};

function TimeBar(props: { device: any; name: string }) {
  const d = props.device, span = d.span_ns || 1, over = d.overlap ?? {};
  const parts: [string, string, number][] = [
    ["compute", "part-compute", over.compute_ns ?? 0],
    ["exposed communication", "part-communication", over.exposed_communication_ns ?? 0],
    ["exposed copies", "part-copy", over.exposed_copy_ns ?? 0],
    ...Object.entries<number>(d.idle_causes ?? {}).map(([cause, value]): [string, string, number] =>
      [idleNames[cause] ?? cause, "idle-" + cause, value]),
  ];
  const shown = parts.filter(([, , value]) => value > 0.0005 * span);
  return (
    <div class="timebar">
      <div class="timebar-name">{props.name}<b title={f.meanings.busy}>{f.percent(d.busy_share)} busy</b></div>
      <div class="timebar-bar" role="img" aria-label={shown.map(([name, , v]) => `${name} ${f.percent(v / span)}`).join(", ")}>
        {shown.map(([name, style, value]) => (
          <i class={style} style={{ width: `${100 * value / span}%` }} title={`${name}: ${f.ns(value)}, ${f.percent(value / span)}`} />
        ))}
      </div>
      <ul class="legend">
        {shown.map(([name, style, value]) => <li><i class={style} />{name} <b>{f.percent(value / span)}</b></li>)}
      </ul>
    </div>
  );
}

function Coverage(props: { report: any }) {
  const c = props.report.coverage ?? {}, sampling = c.sampling;
  const list: [("info" | "warn" | "bad"), any][] = [];
  if (c.partial) list.push(["bad", "The profile was damaged or cut short: this is the part that could be read."]);
  if (c.launches_lost > 0) list.push(["bad", `${f.plural(c.launches_lost, "launch", "launches")} lost: counts and totals are too low.`]);
  if (sampling?.total_error > 0) list.push([sampling.total_error > 0.1 ? "warn" : "info",
    `Sampled: totals are estimates, ±${f.percent(sampling.total_error)} (95 %), from ${f.plural(sampling.windows ?? 0, "window")}.`]);
  else if (c.launches_sampled_out > 0) list.push(["info", `${f.count(c.launches_sampled_out)} launches were left out by sampling; counts and totals are scaled to include them.`]);
  for (const note of c.notes ?? []) list.push([note.cause === "converted_sketches" ? "info" : "warn", note.text]);
  if (props.report.filter) list.push(["info", <>Rows are filtered by <code>{props.report.filter}</code>; shares are still of all kernels.</>]);
  for (const limit of props.report.timeline?.limits ?? []) list.push(["info", limit]);
  if (!list.length) return null;
  const loud = list.filter(([tone]) => tone !== "info"), quiet = list.filter(([tone]) => tone === "info");
  return (
    <div class="notices" id="coverage">
      {loud.map(([tone, text]) => <Notice tone={tone}>{text}</Notice>)}
      {quiet.length > 0 && (
        <details class="notice info"><summary>{f.plural(quiet.length, "note")} on coverage</summary>
          <ul>{quiet.map(([, text]) => <li>{text}</li>)}</ul></details>
      )}
    </div>
  );
}

function TuneThese(props: { data: ProfileData }) {
  const tune = props.data.advice?.tune ?? [], most = Math.max(...tune.map((t: any) => t.saved_ns), 1);
  const unit = props.data.advice?.unit?.kind === "step" ? "a step" : "the run";
  return (
    <Section title="Tune these" note={`Time saved of ${unit}, if the kernel reached its target`}>
      {tune.length === 0
        ? <p class="faint">No kernel has a known roof and time to win. Record counters, or name shapes with <code>--shape</code>.</p>
        : <ol class="shortlist">
          {tune.map((t: any) => (
            <li>
              <KernelLink id={t.kernel_id} class="name">{t.label}</KernelLink>
              <ShareBar value={t.saved_ns} of={most} label={f.ns(t.saved_ns)} />
              <small>{f.percent(t.share)} of kernel time · {t.utilization != null ? `${f.percent(t.utilization, 0)} of roof, target ${f.percent(t.target, 0)}` : t.why}
                {t.obsolete_after ? ` · pointless after step ${t.obsolete_after} of the plan` : ""}</small>
            </li>
          ))}
        </ol>}
    </Section>
  );
}

function GotSlower(props: { data: ProfileData }) {
  const listed = props.data.advice?.got_slower ?? [];
  const fromDiff = (props.data.diff?.items ?? []).filter((i: any) => i.certain && i.change_ns > 0)
    .map((i: any) => ({ kernel_id: props.data.rows.find((r) => r.name === i.name)?.id, label: i.label, lost_ns: i.change_ns, share: i.change_share, why: (i.why ?? []).join("; ") }));
  const list = listed.length ? listed : fromDiff;
  if (!list.length && !props.data.diff) return null;
  const most = Math.max(...list.map((t: any) => t.lost_ns), 1);
  return (
    <Section title="Got slower" note={<>Beyond the spread of its launches. <a href={link("compare")}>All changes</a></>}>
      {list.length === 0 ? <p class="faint">No kernel got slower beyond the spread of its launches.</p> :
        <First of={list as any[]} first={5} what="kernel">{(shown) => <ol class="shortlist bad">
          {shown.map((t) => (
            <li><KernelLink id={t.kernel_id} class="name">{t.label}</KernelLink>
              <ShareBar value={t.lost_ns} of={most} label={"+" + f.ns(t.lost_ns)} />
              <small>{t.why}</small></li>
          ))}
        </ol>}</First>}
    </Section>
  );
}

function FirstChanges(props: { data: ProfileData }) {
  const advice = props.data.advice;
  const all = advice?.interventions ?? [], list = all.slice(0, 5);
  const most = Math.max(...list.map((i: any) => i.saved_share?.high ?? 0), 0.01);
  return (
    <Section title="Changes worth making" note={<>End-to-end time saved. <a href={link("advice")}>{all.length > list.length ? `All ${f.count(all.length)} changes` : "All advice"}</a></>}>
      {list.length === 0 ? <p class="faint">{advice?.nothing ?? "No change is worth the work, as far as this profile shows."}</p> :
        <ol class="shortlist">
          {list.map((i: any) => (
            <li><a class="name" href={link("advice", i.id)}>{i.title}</a>
              <span class="interval-row"><Interval low={i.saved_share.low} mid={i.saved_share.mid} high={i.saved_share.high} of={most}
                label={`saves ${f.percent(i.saved_share.low)} to ${f.percent(i.saved_share.high)}`} />
                <b>{f.percent(i.saved_share.mid)}</b></span>
              <small>{f.percent(i.saved_share.low)} to {f.percent(i.saved_share.high)} · confidence {i.confidence} · {i.effort}{onTop(i) && ` · ${onTop(i)}`}</small></li>
          ))}
        </ol>}
    </Section>
  );
}

export function Overview(props: { data: ProfileData }) {
  const { report, advice } = props.data;
  const devices = report.timeline?.devices ?? [];
  const step = report.timeline?.mean_step;
  const sources = [report.source, report.environment?.build && `build ${report.environment.build}`,
    f.date(report.environment?.recorded_at)].filter((t) => t && t !== "–");
  const device = devices[0];
  const utilization = advice?.kernel_utilization;
  const ofDevices = useMemo(() => devices.map((d: any) => report.environment?.devices?.[d.device]), [report]);
  if (!report.kernels?.length && !report.launches)
    return <Empty title="This profile holds no kernels">The program may not have used a GPU. <code>purlin doctor</code> tells what can be recorded here.</Empty>;
  return (
    <div class="view overview">
      <Coverage report={report} />
      {props.data.unread.length > 0 && <Notice tone="warn">This page is not whole: {props.data.unread.join("; ")}. Load it again to try again.</Notice>}
      <dl class="stats">
        <Stat name="wall time" value={f.ns(report.wall_ns || null)} note={step ? <>{f.ns(step.duration_ns)} a step</> : undefined} title="Of the profiled command" />
        <Stat name="kernel time" value={f.ns(report.kernel_ns)} note={f.plural(report.kernels.length + (report.page?.other?.rows ?? 0), "kernel")} title={f.meanings.total} />
        <Stat name="launches" value={f.count(report.launches)} note={report.launches ? `${f.ns(report.kernel_ns / report.launches)} mean` : undefined} />
        {device && <Stat name="device busy" value={f.percent(device.busy_share)} title={f.meanings.busy}
          note={device.idle_ns ? `${f.ns(device.idle_ns)} idle` : undefined} tone={device.busy_share < 0.5 ? "bad" : device.busy_share < 0.8 ? "warn" : "good"} />}
        {utilization != null && <Stat name="kernels at" value={<>{f.percent(utilization, 0)} <span class="unit">of roof</span></>} note={`${f.percent(advice.judged_share, 0)} of kernel time judged`}
          title="Utilisation of the kernels with a roof, weighted by time" />}
        {advice?.verdict && advice.verdict !== "unknown" && <Stat name="time is lost at" value={f.words(advice.verdict)} note={<a href={link("advice")}>why</a>} title={advice.verdict_text} />}
      </dl>
      {(report.findings ?? []).length > 0 && report.findings[0].kind !== "nothing" && (
        <First of={report.findings as any[]} first={4} what="finding">{(shown) => <ul class="findings">{shown.map((x) => <li><b>{x.share != null ? f.percent(x.share, 0) : ""}</b>{x.text}</li>)}</ul>}</First>
      )}
      {devices.length > 0 && (
        <Section title="Where the time went" note={<>{report.timeline.phase === "steady" ? "The steady state" : f.words(report.timeline.phase ?? "")} of each device. <a href={link("timeline")}>Timeline</a></>}>
          <First of={devices as any[]} first={16} what="device">{(shown) => shown.map((d, i) => <TimeBar device={d} name={`${ofDevices[i]?.name ?? "GPU"} (${d.device})`} />)}</First>
        </Section>
      )}
      <div class="columns">
        <FirstChanges data={props.data} />
        <TuneThese data={props.data} />
        <GotSlower data={props.data} />
      </div>
      <KernelTable data={props.data} />
      <footer class="sources">{sources.join(" · ")}{report.command ? <> · <code>{report.command}</code></> : null}</footer>
    </div>
  );
}
