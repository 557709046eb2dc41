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
