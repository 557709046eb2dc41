// SPDX-License-Identifier: Apache-2.0
// Whether two documents speak of the same kernel: profiles have the compiler's name, specs and
// suites the author's.
import { pairs } from "./format";

// "void ns::softmax<float, 4>(float*)" -> "softmax"; "row-softmax" -> "row_softmax"
export function bare(name: string): string {
  const whole = name.replace(/\(anonymous namespace\)::/g, "").replace(/^void\s+/, ""), cut = whole.search(/[<(]/);
  return (cut > 0 ? whole.slice(0, cut) : whole).replace(/^.*::/, "").replace(/\.kd$/, "").trim().replace(/-/g, "_").toLowerCase();
}

// A name with parameters is one instance; a bare one stands for all of them.
export function sameKernel(row: { name: string; label: string }, name: string): boolean {
  if (name === row.name || name === row.label) return true;
  return name !== "" && !/[<(]/.test(name) && [row.name, row.label].some((own) => bare(own) === bare(name));
}

// A winner of a config cache: of the kernel, or of the problem that the row is known to compute.
export function ofKernel(entry: any, row: { name: string; label: string; op_class: string; full: any }): boolean {
  const shape = row.full?.shape ?? "";
  return sameKernel(row, entry.key.kernel) || (shape !== "" && shape === pairs(entry.problem) && entry.key.op === row.op_class);
}

// The library of a vendor that a run or a winner is of, by its version ("cuBLASLt 13.1.0") or name; "" for others.
const vendors = /(cublaslt|cublas|cudnn|cusparse|cufft|rocblas|hipblaslt|hipblas|miopen|onednn|onemkl|library)/i;
export const libraryOf = (toolkit: string | undefined, kernel: string): string => (vendors.test(toolkit ?? "") ? toolkit! : vendors.exec(kernel)?.[1] ?? "");

// Of a list, the fastest of a vendor's library for the same problem on the same model of GPU.
export interface Timed { problem: object; device: string; dtype?: string; time_ms: number; library: string }
export function libraryRival<T extends Timed>(own: Timed, among: T[]): T | undefined {
  const same = (x: T) => x.library !== "" && x.time_ms > 0 && pairs(x.problem) === pairs(own.problem) && x.device === own.device && (!x.dtype || !own.dtype || x.dtype === own.dtype);
  return own.library !== "" ? undefined : among.filter(same).sort((a, b) => a.time_ms - b.time_ms)[0];
}
