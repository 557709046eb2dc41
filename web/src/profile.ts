// SPDX-License-Identifier: Apache-2.0
// What the views of one profile share: its documents, and the rows of all its kernels.
import { arrays, head, index, numbered, once } from "./data";
import { reason } from "./format";

export interface Row {
  id: string; label: string; name: string; op_class: string; total_ns: number; count: number;
  p50_ns: number | null; p95_ns: number | null; share: number; bound: string;
  utilization: number | null; headroom: number | null; device: string;
  recorded: number; // launches whose duration was recorded; the others of `count` were sampled out
  place: number;    // in the report's order
  full: any | null; // its row of the report; null for those that the page has in short
  detail: any | null;
}
// `unread`: why documents are missing that the page should have.
export interface ProfileData { file: number; report: any; advice: any; diff: any; rows: Row[]; unread: string[] }

// Of the launches that were made, the share whose duration was recorded. Sampling is not known by row.
export function measuredShare(report: any): number {
  const c = report.coverage ?? {}, all = (c.launches_seen ?? 0) + (c.launches_sampled_out ?? 0);
  return all > 0 ? (c.launches_seen ?? 0) / all : 1;
}

function rowOf(kernel: any, place: number, detail: any, measured: number): Row {
  return {
    id: kernel.id, label: kernel.label || kernel.name, name: kernel.name, op_class: kernel.op_class,
    total_ns: kernel.total_ns, count: kernel.count, p50_ns: kernel.p50_ns, p95_ns: kernel.p95_ns,
    share: kernel.share, bound: kernel.bound, utilization: kernel.utilization,
    headroom: kernel.roof?.headroom_ns ?? null, device: kernel.device, recorded: kernel.count * measured, place, full: kernel, detail,
  };
}

async function shortRows(name: string, report: any): Promise<Row[]> {
  const json = await head(name);
  if (!json) return [];
  const a = await arrays(name), labels = new TextDecoder().decode(a.labels as Uint8Array).split("\n");
  const rows: Row[] = new Array(json.rows), first = report.kernels.length, measured = measuredShare(report);
  for (let i = 0; i < json.rows; ++i) {
    const total = a.total_ns[i], utilization = a.utilization[i] || null;
    rows[i] = {
      id: "", label: labels[i], name: labels[i], op_class: json.classes[a.op_class[i]], total_ns: total,
      count: a.count[i], p50_ns: a.p50_ns[i] || null, p95_ns: a.p95_ns[i] || null,
      share: report.kernel_ns ? total / report.kernel_ns : 0, bound: json.bounds[a.bound[i]], utilization,
      headroom: utilization === null ? null : total * (1 - utilization), device: "", recorded: a.count[i] * measured, place: first + i, full: null, detail: null,
    };
  }
  return rows;
}

const loaded = new Map<number, Promise<ProfileData | undefined>>();

// Undefined where the page has no such profile.
export function profile(file: number): Promise<ProfileData | undefined> {
  return once(loaded, file, async () => {
    // A report is shown without its advice or comparison, if these cannot be read.
    const unread: string[] = [], tried = (name: string) => head(name).catch((error) => { unread.push(reason(error)); return undefined; });
    const [report, advice, diff] = await Promise.all([
      head(numbered("report", file)), tried(numbered("advice", file)),
      tried(index.files.length > 1 && file > 0 ? numbered("diff", file - 1) : "none"),
    ]);
    if (!report) return undefined;
    const details = report.page?.details ?? [], measured = measuredShare(report);
    const rows = report.kernels.map((k: any, i: number) => rowOf(k, i, details[i] ?? null, measured));
    return { file, report, advice, diff, rows, unread };
  });
}

const rests = new Map<number, Promise<Row[]>>();
// The rows beyond those in full.
export function rest(data: ProfileData): Promise<Row[]> {
  return once(rests, data.file, () => shortRows(numbered("rows", data.file), data.report));
}
