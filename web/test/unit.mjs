// SPDX-License-Identifier: Apache-2.0
// Plain functions of the page, without a browser.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src");
const exported = `export * as f from "./format"; export * as names from "./names"; export * as runs from "./views/runs"; export * as counters from "./views/counters"; export * as order from "./views/order";`;
const bundled = await build({ stdin: { contents: exported, resolveDir: source, loader: "ts" }, bundle: true, write: false, format: "esm", logLevel: "silent" });
const { f, names, runs, counters, order } = await import(`data:text/javascript;base64,${Buffer.from(bundled.outputFiles[0].text).toString("base64")}`);

export function units(test) {
  return test("plain functions", async () => {
    // Durations that rest on few launches are marked; those of none, or of an unknown number, are not.
    assert.deepEqual([1, 29.9, 30, 0, null, undefined].map((n) => f.few(n)), [true, true, false, true, false, false]);
    assert.equal(f.about(1500, true), "≈ 1.50 µs");
    assert.equal(f.about(null, true), "–");
    // A vendor's library, by the version that keys of its winners have, or by name.
    assert.equal(names.libraryOf("cuBLASLt 13.1.0", "cublaslt-nt-bf16-f32-f32"), "cuBLASLt 13.1.0");
    assert.equal(names.libraryOf("NVRTC 13.0", "cudnn_softmax"), "cudnn");
    assert.equal(names.libraryOf("NVRTC 13.0", "softmax"), "");
    assert.equal(names.libraryOf(undefined, "softmax"), "");
    const timed = (time_ms, library = "", more = {}) => ({ problem: { M: 1, N: 2 }, device: "H100", dtype: "bf16", time_ms, library, ...more });
    const rival = (...among) => names.libraryRival(timed(1), among)?.time_ms;
    assert.equal(rival(timed(3, "x"), timed(2, "x"), timed(0.5)), 2);
    assert.equal(rival(timed(2, "x", { dtype: "" })), 2);
    for (const other of [{ device: "H200" }, { dtype: "f32" }, { problem: { M: 1, N: 3 } }, { time_ms: 0 }]) assert.equal(rival(timed(2, "x", other)), undefined);
    assert.equal(names.libraryRival(timed(1, "x"), [timed(2, "x")]), undefined);
    // A run against its default and against what the library chooses without tuning.
    const run = (toolkit, best, standard) => ({ kernel: "gemm", problem: { M: 1 }, environment: { devices: [{ name: "H100", toolkit }] }, best: { time_ms: best }, ...(standard ? { default: { time_ms: standard } } : {}) });
    const own = run("NVRTC 13.0", 2, 3), to = runs.against(own, [own, run("cuBLASLt 13.1.0", 1.5, 1.6)]);
    assert.equal(to.over_default, 1.5);
    assert.equal(to.over_library, 0.8);
    assert.equal(runs.against(run("", 2), []).over_default, null);
    assert.equal(runs.against(run("", 2), [run("cuBLASLt 13", 1)]).over_library, 0.5);
    // Changes and trades by their place; without one, trades are last.
    const listed = (advice) => order.inOrder(advice).map(({ change, trade }) => change.id + (trade ? " (trade)" : ""));
    assert.deepEqual(listed({ interventions: [{ id: "much", place: 1 }, { id: "little", place: 3 }], trades: [{ id: "bits", place: 2 }] }), ["much", "bits (trade)", "little"]);
    assert.deepEqual(listed({ interventions: [{ id: "much" }, { id: "little" }], trades: [{ id: "bits" }] }), ["much", "little", "bits (trade)"]);
    assert.deepEqual(listed(null), []);
    // Counters with their units.
    for (const [name, value, text] of [["dram__bytes_read.sum", 176e6, "176 MB"], ["dram__bytes.sum.per_second", 2e12, "2.00 TB/s"], ["sm__throughput.avg.pct_of_peak_sustained_elapsed", 14.25, "14.3 %"], ["gpu__time_duration.sum", 1500, "1.50 µs"], ["sm__cycles_elapsed.avg.per_second", 1.98e9, "1.98 GHz"], ["FETCH_SIZE", 2, "2.05 kB"], ["SQ_WAVES", 123456, "123 k"], ["launch__registers", 40, "40"]])
      assert.equal(counters.counterValue(name, value), text);
  });
}
