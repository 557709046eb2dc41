// SPDX-License-Identifier: Apache-2.0
// Names of kernels as C++ templates give them, of 300 characters: no view may scroll sideways for them.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { faulty } from "./faulty.mjs";
import { view } from "./pages.mjs";

const inner = "at::native::(anonymous namespace)::FusedOptimizerKernel<c10::BFloat16, float, at::native::detail::TensorListMetadata<4>, ";
export const longName = (n) => `void cutlass::device_kernel_of_the_library<${inner}cutlass::gemm::collective::CollectiveMma<cute::tuple<cute::C<${128 + n}>, cute::C<256>, cute::C<64>>, cute::SM90_TMA_LOAD_MULTICAST, cute::Swizzle<3, 4, 3>>, cutlass::epilogue::thread::LinearCombination<float, ${n}>>(cutlass::Params_of_a_very_long_kernel)`;

// A trace of PyTorch's form: eight such kernels on two streams, with their calls.
export function longTrace(folder, name, slower) {
  const events = [];
  for (let i = 0, at = 1000; i < 400; ++i) {
    const n = i % 8, duration = (20 + 9 * n + i % 5) * (n === 3 ? slower : 1);
    events.push({ ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 7, tid: 7, ts: at - 8, dur: 5, args: { correlation: i + 1 } });
    events.push({ ph: "X", cat: "kernel", name: longName(n), pid: 0, tid: 7 + n % 2, ts: at, dur: duration, args: { device: 0, stream: 7 + n % 2, correlation: i + 1, grid: [512, 1, 1], block: [128, 1, 1], "registers per thread": 168, "shared memory": 4096 } });
    at += duration + 6;
  }
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: "NVIDIA H100 80GB HBM3", totalGlobalMem: 85e9, computeMajor: 9, computeMinor: 0, numSms: 132 }], traceEvents: events }));
  return path;
}

// A trace of `count` kernels, one launch each, the longest first.
export function manyTrace(folder, name, count) {
  const events = Array.from({ length: count }, (_, i) => ({ ph: "X", cat: "kernel", name: `made_kernel_${String(i).padStart(4, "0")}`, pid: 0, tid: 7, ts: 1000 + i * 1000, dur: 900 - i, args: { device: 0, stream: 7, correlation: i + 1, grid: [512, 1, 1], block: [128, 1, 1] } }));
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: "NVIDIA H100 80GB HBM3", totalGlobalMem: 85e9, computeMajor: 9, computeMinor: 0, numSms: 132 }], traceEvents: events }));
  return path;
}

// Where a view, or a part of it, is wider than its place.
export async function fits(page, where) {
  const wide = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll(".scroll, .grid, .card")].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => `${e.closest(".card")?.querySelector("h2")?.innerText ?? "page"}: ${e.scrollWidth} > ${e.clientWidth}`));
  assert.deepEqual(wide, [], `${where} scrolls sideways at ${page.viewportSize().width} px`);
}

export async function ofLongNames({ test, open, folder, url }) {
  await test("long names fit", async () => {
    const server = await view([longTrace(folder, "long_a.json", 1), longTrace(folder, "long_b.json", 1.4)]), middle = await faulty(url), { faults } = middle;
    const renamed = (list) => (answer) => { answer[list]?.forEach((k, i) => { if (k.kernel) k.kernel = k.raw_kernel = longName(i); if (k.worst_kernel) k.worst_kernel = longName(i); }); return answer; };
    for (const [path, list] of [["query/top", "kernels"], ["query/slower", "kernels"], ["query/compare", "kernels"], ["query/stragglers", "stragglers"], ["v1/backlog", "tasks"]]) faults.set(path, renamed(list));
    try {
      const first = await open(`${server.url}#1/overview?file=1`, ".kernels .grid-row"), id = (await first.locator(".grid-row a.name").first().getAttribute("href")).split("/").pop();
      for (const [at, ready] of [[`${server.url}#1/overview?file=1`, ".kernels .grid-row"], [`${server.url}#1/kernels/${id}`, ".lacks"], [`${server.url}#1/timeline`, ".tl-canvas"], [`${server.url}#1/advice`, ".advised"], [`${server.url}#1/compare`, ".compared"],
        [middle.url, ".fleet-kernels tr"], [`${middle.url}#1/kernels/rms_norm_kernel`, ".series-chart"], [`${middle.url}#1/compare?by=build&before=v1.8&after=v1.9&all=1`, ".fleet-compare"], [`${middle.url}#1/backlog`, "tbody tr"], [`${middle.url}#1/nodes`, "tbody tr"]]) {
        const page = await open(at, ready);
        await page.waitForFunction(() => !/Asking the server/.test(document.querySelector("main").innerText));
        for (const width of [1280, 1920]) { await page.setViewportSize({ width, height: 900 }); await page.waitForTimeout(60); await fits(page, at); }
        await page.close();
      }
      // What tells two of them apart can be seen.
      const names = await (await open(middle.url, ".fleet-kernels tr")).locator(".fleet-kernels .clip-name a").allInnerTexts();
      assert.equal(new Set(names).size, names.length);
    } finally { middle.stop(); server.stop(); }
  });
}

// A page holds 500 rows in full. The others are a second document, which may fail alone.
export async function ofManyKernels({ test, open, folder }) {
  await test("rows beyond the first 500", async () => {
    const server = await view([manyTrace(folder, "many.json", 620)]), middle = await faulty(server.url), { faults } = middle;
    const note = (page) => page.locator("#kernels header .note").innerText(), expected = /status of \d+|Failed to load resource|ERR_/;
    try {
      // They are on their way: said with their number.
      faults.set("documents/rows", "slow");
      const page = await open(middle.url, ".kernels .grid-row", expected);
      assert.match(await note(page), /500 of 620 rows[\s\S]*120 more rows are being read/);
      assert.equal(await page.getByRole("table", { name: "Kernels by time" }).getAttribute("aria-rowcount"), "501");
      // They do not come: said, and asked for again alone.
      middle.drop();
      faults.set("documents/rows", 500);
      await page.reload();
      await page.getByText(/120 rows with less time could not be read: documents\/rows\S*: 500/).waitFor();
      assert.match(await note(page), /500 of 620 rows/);
      faults.clear();
      await page.locator("#kernels").getByRole("button", { name: "Try again" }).click();
      await page.waitForFunction(() => /620 of 620 rows/.test(document.querySelector("#kernels header .note").innerText));
      assert.equal(await page.locator("#kernels .notice").count(), 0);
      // The last one can be found.
      await page.locator("#kernels input[type=search]").fill("made_kernel_0619");
      await page.waitForFunction(() => /1 of 620 rows/.test(document.querySelector("#kernels header .note").innerText));
      assert.match(await page.locator(".grid-row").first().innerText(), /^620\s+made_kernel_0619/);
    } finally { middle.stop(); server.stop(); }
  });
}
