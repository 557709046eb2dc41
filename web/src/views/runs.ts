// SPDX-License-Identifier: Apache-2.0
// What a tuning run found, against its default config and against a vendor's library.
import { libraryOf, libraryRival, type Timed } from "../names";

export const searched = (e: any) => (e.search?.time_ms > 0 ? e.search.time_ms : e.time_ms);
export const worked = (e: any) => e.status === "ok" && searched(e) > 0;
export const fastest = (doc: any) => doc.best?.time_ms ?? [...(doc.evaluations ?? [])].filter(worked).map(searched).sort((a, b) => a - b)[0] ?? null;
export const deviceOf = (doc: any) => doc.environment?.devices?.[0]?.name ?? doc.device ?? "";

// A library's time is that of its own choice, which an untuned program gets.
export const timedRun = (doc: any): Timed => {
  const library = libraryOf(doc.environment?.devices?.[0]?.toolkit, doc.kernel ?? "");
  return { problem: doc.problem, device: deviceOf(doc), time_ms: (library && doc.default?.time_ms) || fastest(doc) || 0, library };
};
// "1.18×" over the default, and over a vendor's library, of a run: null where it is not known.
export function against(doc: any, runs: any[]): { over_default: number | null; library?: Timed; over_library: number | null } {
  const own = timedRun(doc), library = libraryRival(own, runs.map(timedRun)), best = fastest(doc);
  return { over_default: doc.speedup_over_default ?? (doc.default?.time_ms && best ? doc.default.time_ms / best : null), library, over_library: library && best ? library.time_ms / best : null };
}
