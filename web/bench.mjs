// SPDX-License-Identifier: Apache-2.0
// The timeline's frames with N slices, by Chromium's own tracing: node bench.mjs [N…]
// Slices are made up: 10 tracks (8 streams, 2 threads of 3 rows), durations and gaps of a log-normal law.
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir, cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { browser } from "./test/pages.mjs";

const here = dirname(fileURLToPath(import.meta.url)), dist = join(here, "dist");
const style = readFileSync(join(dist, "page.css"), "utf8"), script = readFileSync(join(dist, "page.js"), "utf8"), more = readFileSync(join(dist, "more.js"), "utf8");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const element = (id, json) => `<script type="application/json" id="purlin-${id}">${JSON.stringify(json).replace(/</g, "\\u003c")}</script>\n`;

function timeline(n) {
  let state = 1;
  const random = () => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return state / 4294967296; };
  const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(6.2831853 * random());
  const classes = ["gemm", "attention", "norm", "elementwise", "reduction", "copy", "communication", "softmax"];
  const items = Array.from({ length: 400 }, (_, i) => ({ name: `kernel_${i}_${classes[i % 8]}`, class: classes[i % 8] }));
  const begin = new Float64Array(n), duration = new Uint32Array(n), item = new Uint32Array(n), tracks = [];
  const shape = [1, 1, 1, 1, 1, 1, 1, 1, 3, 3], rows = shape.reduce((a, b) => a + b), each = Math.floor(n / rows);
  let at = 0, span = 0;
  shape.forEach((count, t) => {
    const track = { kind: t < 8 ? "stream" : "thread", title: `${t < 8 ? "stream" : "thread"} ${t}`, owner: t < 8 ? "GPU (0)" : "python (1)", device: 0, process: 0, first: at, rows: [] };
    for (let r = 0; r < count; ++r) {
      const size = t === 9 && r === count - 1 ? n - at : each;
      let time = 0;
      for (let i = 0; i < size; ++i, ++at) { time += Math.exp(7 + normal()); begin[at] = Math.round(time); duration[at] = Math.exp(8.5 + 1.2 * normal()); item[at] = random() * 400; time += duration[at]; }
      track.rows.push(size); span = Math.max(span, time);
    }
    tracks.push(track);
  });
  const arrays = {}, parts = [];
  let size = 0;
  const add = (key, type, values) => { const pad = (8 - size % 8) % 8; parts.push(Buffer.alloc(pad)); size += pad; arrays[key] = { type, at: size, count: values.length }; const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength); parts.push(bytes); size += bytes.length; };
  add("begin", "f64", begin); add("duration", "u32", duration); add("item", "u32", item); add("link", "u32", new Uint32Array(0));
  add("bytes", "f64", new Float64Array(0)); add("bytes_of", "u32", new Uint32Array(0)); add("share", "u8", new Uint8Array(0));
  return { head: { schema: "purlin.page-timeline/1", origin_ns: "0", span_ns: Math.ceil(span), window: null, steps_from: "", left_out: 0, first_linked: n, tracks, items, gaps: [], arrays }, bytes: Buffer.concat(parts) };
}

function write(path, n) {
  const { head, bytes } = timeline(n), packed = gzipSync(bytes, { level: 1 }), most = 48 << 20;
  const report = { schema: "purlin.report/1", kernels: [], coverage: {}, timeline: {}, environment: {}, launches: n, kernel_ns: 1 };
  const parts = [`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)} ${hash(more)}"><title>bench</title><style>${style}</style></head><body>`,
    element("page", { schema: "purlin.page/1", title: "bench", view: "timeline", files: [{ path: "bench" }], documents: [{ name: "report", schema: report.schema, bytes: 0 }, { name: "timeline", schema: head.schema, bytes: bytes.length }] }), element("report", report), element("timeline", head)];
  for (let at = 0, i = 0; at < packed.length; at += most, ++i) parts.push(`<script type="application/octet-stream" id="purlin-timeline.${i}">`, packed.subarray(at, at + most).toString("base64"), "</script>");
  parts.push(`<script type="text/plain" id="purlin-more">${more}</script><script>${script}</script></body></html>`);
  writeFileSync(path, parts.join(""));
}

// Many rows: 100,000 kernels in the overview, 500 in full.
function writeRows(path, n) {
  const full = 500, kernels = Array.from({ length: full }, (_, i) => ({ name: `kernel_${i}<float, ${i}>`, label: `kernel_${i}`, id: `k${i}`, op_class: "gemm", device: "GPU", count: 10, total_ns: 2e9 / (i + 1), p50_ns: 1000, p95_ns: 2000, share: 0.1 / (i + 1), bound: "memory", utilization: 0.5, roof: { headroom_ns: 1e3, grade: "ok", bound_from: "counter" } }));
  const rest = n - full, total = Float64Array.from({ length: rest }, (_, i) => 4e6 / (i + 1)), flat = Float64Array.from({ length: rest }, () => 1000), u8 = new Uint8Array(rest);
  const labels = Buffer.from(Array.from({ length: rest }, (_, i) => `template_kernel_${i}<float, ${i % 64}>\n`).join(""));
  const arrays = {}, parts = [];
  let size = 0;
  for (const [key, type, values] of [["total_ns", "f64", total], ["count", "f64", flat], ["p50_ns", "f64", flat], ["p95_ns", "f64", flat], ["utilization", "f64", flat.map(() => 0.4)], ["bound", "u8", u8], ["op_class", "u8", u8], ["labels", "u8", new Uint8Array(labels)]]) { const pad = (8 - size % 8) % 8; parts.push(Buffer.alloc(pad)); size += pad; arrays[key] = { type, at: size, count: values.length }; parts.push(Buffer.from(values.buffer, values.byteOffset, values.byteLength)); size += values.byteLength; }
  const head = { schema: "purlin.page-rows/1", rows: rest, bounds: ["memory"], classes: ["gemm"], arrays }, bytes = Buffer.concat(parts);
  const report = { schema: "purlin.report/1", kernels, coverage: {}, timeline: {}, environment: {}, launches: 1e6, kernel_ns: 2e10, page: { rows: n, other: { rows: rest }, details: [] } };
  writeFileSync(path, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bench</title><style>${style}</style></head><body>` + element("page", { schema: "purlin.page/1", title: "bench", view: "overview", files: [{ path: "bench" }], documents: [{ name: "report", schema: report.schema, bytes: 0 }, { name: "rows", schema: head.schema, bytes: bytes.length }] }) + element("report", report) + element("rows", head)
    + `<script type="application/octet-stream" id="purlin-rows.0">${gzipSync(bytes).toString("base64")}</script><script type="text/plain" id="purlin-more">${more}</script><script>${script}</script></body></html>`);
}

const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];
const folder = mkdtempSync(join(tmpdir(), "purlin-bench-")), engine = await browser();
console.log(`${cpus()[0].model}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}; Chromium ${engine.version()}, headless, no GPU; 1280 x 800`);
{
  const path = join(folder, "rows.html");
  writeRows(path, 100_000);
  const times = [];
  for (let i = 0; i < 5; ++i) {
    const page = await engine.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto("file://" + path, { waitUntil: "commit" });
    await page.locator(".grid-row").first().waitFor();
    times.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
    await page.waitForFunction(() => /100,000 of 100,000/.test(document.querySelector("#kernels .note")?.innerText ?? ""));
    times.all = await page.evaluate(() => performance.now());
    await page.close();
  }
  console.log(`overview, 100,000 kernels: first contentful paint median ${quantile(times, 0.5).toFixed(0)} ms of 5; all rows listed after ${times.all.toFixed(0)} ms`);
}
for (const n of (process.argv.slice(2).length ? process.argv.slice(2) : ["1000000", "10000000"]).map(Number)) {
  const path = join(folder, `${n}.html`);
  write(path, n);
  const page = await engine.newPage({ viewport: { width: 1280, height: 800 } });
  page.on("pageerror", (e) => console.log("error", e.message));
  page.on("crash", () => console.log("the page crashed"));
  const start = Date.now();
  await page.goto("file://" + path, { waitUntil: "commit", timeout: 300000 });
  await page.waitForFunction(() => window.purlinFrame?.drawn > 0, undefined, { timeout: 300000 });
  const opened = Date.now() - start;
  const box = await page.locator(".tl-canvas").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 100);
  await page.evaluate(() => {
    window.purlinFrames = []; window.purlinTicks = [];
    let last = performance.now(), seen = window.purlinFrame;
    const tick = (now) => { window.purlinTicks.push(now - last); last = now; if (window.purlinFrame !== seen) { seen = window.purlinFrame; window.purlinFrames.push(seen.ms); } requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
  });
  await engine.startTracing(page, { categories: ["devtools.timeline"] });
  for (const [key, ms] of [["KeyW", 1500], ["KeyD", 1500], ["KeyS", 700], ["KeyA", 1500], ["KeyW", 900], ["KeyD", 1200], ["KeyS", 2000], ["KeyA", 800]]) { await page.keyboard.down(key); await page.waitForTimeout(ms); await page.keyboard.up(key); }
  const events = JSON.parse((await engine.stopTracing()).toString()).traceEvents.filter((e) => e.name === "FireAnimationFrame" && e.dur).map((e) => e.dur / 1000);
  const { frames, ticks, drawn } = await page.evaluate(() => ({ frames: window.purlinFrames, ticks: window.purlinTicks, drawn: window.purlinFrame.drawn }));
  console.log(`${n.toLocaleString("en")} slices: file ${(statSync(path).size / 1e6).toFixed(1)} MB, opened in ${(opened / 1000).toFixed(1)} s; ${frames.length} frames of pan and zoom: draw p50 ${quantile(frames, 0.5).toFixed(1)}, p95 ${quantile(frames, 0.95).toFixed(1)} ms; animation frame (trace, ${events.length}) p50 ${quantile(events, 0.5).toFixed(1)}, p95 ${quantile(events, 0.95).toFixed(1)} ms; between frames p50 ${quantile(ticks, 0.5).toFixed(1)}, p95 ${quantile(ticks, 0.95).toFixed(1)} ms; load ${loadavg()[0].toFixed(1)}`);
  await page.close();
}
await engine.close();
rmSync(folder, { recursive: true, force: true });
