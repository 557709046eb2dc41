// SPDX-License-Identifier: Apache-2.0
// What the views of one profile share: its documents, and the rows of all its kernels.
import { arrays, head, index, numbered } from "./data";

export interface Row {
  id: string; label: string; name: string; op_class: string; total_ns: number; count: number;
  p50_ns: number | null; p95_ns: number | null; share: number; bound: string;
  utilization: number | null; headroom: number | null; device: string;
  place: number;    // in the report's order
  full: any | null; // its row of the report; null for those that the page has in short
  detail: any | null;
}
export interface ProfileData { file: number; report: any; advice: any; diff: any; rows: Row[] }

function rowOf(kernel: any, place: number, detail: any): Row {
  return {
    id: kernel.id, label: kernel.label || kernel.name, name: kernel.name, op_class: kernel.op_class,
    total_ns: kernel.total_ns, count: kernel.count, p50_ns: kernel.p50_ns, p95_ns: kernel.p95_ns,
    share: kernel.share, bound: kernel.bound, utilization: kernel.utilization,
    headroom: kernel.roof?.headroom_ns ?? null, device: kernel.device, place, full: kernel, detail,
  };
}

async function shortRows(name: string, report: any): Promise<Row[]> {
  const json = await head(name);
  if (!json) return [];
  const a = await arrays(name), labels = new TextDecoder().decode(a.labels as Uint8Array).split("\n");
  const rows: Row[] = new Array(json.rows), first = report.kernels.length;
  for (let i = 0; i < json.rows; ++i) {
    const total = a.total_ns[i], utilization = a.utilization[i] || null;
    rows[i] = {
      id: "", label: labels[i], name: labels[i], op_class: json.classes[a.op_class[i]], total_ns: total,
      count: a.count[i], p50_ns: a.p50_ns[i] || null, p95_ns: a.p95_ns[i] || null,
      share: report.kernel_ns ? total / report.kernel_ns : 0, bound: json.bounds[a.bound[i]], utilization,
      headroom: utilization === null ? null : total * (1 - utilization), device: "", place: first + i, full: null, detail: null,
    };
  }
  return rows;
}

const loaded = new Map<number, Promise<ProfileData | undefined>>();

// Undefined where the page has no such profile.
export function profile(file: number): Promise<ProfileData | undefined> {
  let found = loaded.get(file);
  if (!found) {
    found = (async () => {
      const [report, advice, diff] = await Promise.all([
        head(numbered("report", file)), head(numbered("advice", file)),
        head(index.files.length > 1 && file > 0 ? numbered("diff", file - 1) : "none"),
      ]);
      if (!report) return undefined;
      const details = report.page?.details ?? [];
      const rows = report.kernels.map((k: any, i: number) => rowOf(k, i, details[i] ?? null));
      return { file, report, advice, diff, rows };
    })();
    loaded.set(file, found);
  }
  return found;
}

const rests = new Map<number, Promise<Row[]>>();
// The rows beyond those in full.
export function rest(data: ProfileData): Promise<Row[]> {
  let found = rests.get(data.file);
  if (!found) {
    found = shortRows(numbered("rows", data.file), data.report);
    rests.set(data.file, found);
  }
  return found;
}
