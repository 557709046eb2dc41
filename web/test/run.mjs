// SPDX-License-Identifier: Apache-2.0
// Every view in a real browser, from files and from `purlin view`: what it shows, its keys, its URLs,
// no request to elsewhere, no message on the console, and axe-core without a serious fault.
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, chromium, data, gpt2, makePages, run, serve, view } from "./pages.mjs";
import { fits, ofLongNames, ofManyKernels } from "./long.mjs";
import { ofRoofs, ofWindows } from "./fleet.mjs";
import { ofFleet, ofViews } from "./partial.mjs";
import { units } from "./unit.mjs";

if (!chromium) { console.log("skipped: no Chromium (./dev setup page)"); process.exit(77); }
const here = dirname(fileURLToPath(import.meta.url)), axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "purlin-page-"));
const { pages, guardFiles, bisect, matrix, captured } = makePages(folder);
const file = (name, hash = "") => `file://${pages[name]}${hash}`;
const engine = await browser();
const context = await engine.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", bypassCSP: false });
context.setDefaultTimeout(10000);
let failed = 0, ran = 0;
const faults = [];
const only = process.argv[2] ?? "";

// `expected`: of the console, where the test refuses or ends the server.
async function open(url, ready, expected) {
  const page = await context.newPage();
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !expected?.test(m.text())) faults.push(`${url}: ${m.text()}`); });
  page.on("pageerror", (e) => faults.push(`${url}: ${e.message}`));
  page.on("request", (r) => { const to = new URL(r.url()); if (!["file:", "blob:", "data:"].includes(to.protocol) && to.host !== new URL(url).host) faults.push(`${url} asks ${r.url()}`); });
  await page.goto(url);
  await page.locator(ready).first().waitFor({ timeout: 15000 });
  return page;
}
async function accessible(page, where) {
  // axe-core runs beside the page's policy: the test's world is its own. Once a document, and without a
  // value: that would be all of axe. Only violations are put together, and no style sheet is fetched again.
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe + ";0");
  const result = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"], resultTypes: ["violations"], preload: false }));
  const serious = result.violations.filter((v) => ["serious", "critical"].includes(v.impact));
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target + " " + (n.failureSummary ?? "").split("\n")[1]).join(" | ")}`), [], `axe-core on ${where}`);
}
async function test(name, body) {
  if (!name.includes(only)) return;
  ++ran;
  const before = faults.length, begin = Date.now();
  try {
    await body();
    assert.deepEqual(faults.slice(before), [], "messages or requests");
    console.log(`ok ${name}, ${((Date.now() - begin) / 1000).toFixed(1)} s`);
  } catch (error) { ++failed; console.log(`FAILED ${name}\n${error.stack ?? error}`); for (const page of context.pages()) console.log(`shown: ${await page.locator("body").innerText().then((t) => t.slice(0, 1500), String)}`); }
  for (const page of context.pages()) await page.close();
}

await units(test);
await test("overview", async () => {
  const page = await open(file("train"), ".kernels .grid-row");
  assert.match(await page.title(), /Overview/);
  assert.ok(await page.locator(".kernels .grid-row").count() > 5);
  assert.ok(await page.locator(".timebar-bar i").count() > 1);
  const all = await page.locator("#kernels header .note").innerText();
  await page.locator("#kernels input[type=search]").fill("nvjet");
  await page.waitForFunction((text) => document.querySelector("#kernels header .note").innerText !== text, all);
  assert.match(page.url(), /q=nvjet/);
  const filtered = await page.locator(".grid-row .name").first().innerText();
  await page.reload();
  await page.locator(".kernels .grid-row").first().waitFor();
  assert.equal(await page.locator(".grid-row .name").first().innerText(), filtered);
  await accessible(page, "overview");
  // Durations of few launches are marked as hints, those of many are not.
  await page.goto(file("gpt2"));
  await page.locator(".grid-row .name", { hasText: "cutlass_75_gemm" }).first().waitFor();
  const rows = await page.locator(".kernels .grid-row").allInnerTexts(), of = (name) => rows.find((r) => r.includes(name));
  assert.match(of("cutlass_75_gemm bf16 128x128"), /\s8\s+≈ 3\.31 ms\s+≈ 3\.37 ms/);
  assert.match(of("unrolled_elementwise direct_copy"), /1,176\s+8\.13 µs/);
});
await test("kernel", async () => {
  const page = await open(file("shapes"), ".kernels .grid-row");
  await page.locator(".grid-row .name").first().click();
  await page.locator(".view.kernel h1").waitFor();
  assert.match(await page.locator(".view.kernel").innerText(), /Durations[\s\S]*Facts/);
  await accessible(page, "kernel");
});
await test("old links open", async () => {
  const page = await open(file("train"), ".kernels .grid-row");
  const id = (await page.locator(".grid-row a.name").first().getAttribute("href")).split("/").pop();
  const name = await page.locator(".grid-row a.name").first().innerText();
  for (const { hash, view, heading } of JSON.parse(readFileSync(join(here, "urls.json"), "utf8"))) {
    await page.goto("about:blank");
    await page.goto(file("train", hash.replace("ID", id)));
    await page.locator(view).first().waitFor();
    if (heading) assert.equal((await page.locator(".view.kernel h1").innerText()).trim(), name);
  }
});
await test("roofline", async () => {
  const page = await open(file("shapes", "#1/roofline"), ".view");
  const bubbles = page.locator(".bubble");
  assert.ok(await bubbles.count() > 3);
  const lines = await page.locator(".ceilings line").count();
  await page.locator(".toggles input:checked").first().click();
  await page.waitForFunction((n) => document.querySelectorAll(".ceilings line").length < n, lines);
  assert.match(page.url(), /ceilings=/);
  await bubbles.last().focus();
  assert.equal(await page.locator(".hovercard").count(), 1);
  await accessible(page, "roofline");
  await page.keyboard.press("Enter");
  await page.locator(".view.kernel h1").waitFor();
});
await test("timeline", async () => {
  const page = await open(file("train", "#1/timeline"), ".tl-canvas");
  await page.waitForFunction(() => window.purlinFrame?.drawn > 10);
  const live = page.locator(".slices [aria-live]");
  await page.locator("[role=grid]").focus();
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.querySelector(".slices [aria-live]").textContent.length > 20);
  const first = await live.textContent();
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction((text) => document.querySelector(".slices [aria-live]").textContent !== text, first);
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => / on /.test(document.querySelector(".slices [aria-live]").textContent));
  await accessible(page, "timeline");
  await page.locator(".tl-canvas").hover({ position: { x: 300, y: 120 } });
  await page.locator("h2").first().evaluate(() => document.activeElement.blur());
  await page.keyboard.down("KeyW");
  await page.waitForTimeout(300);
  await page.keyboard.up("KeyW");
  await page.waitForFunction(() => /from=\d+&to=\d+/.test(location.hash));
  await page.keyboard.press("f");
  await page.keyboard.press("r");
  await page.locator(".details h2", { hasText: "Area" }).waitFor();
  await accessible(page, "statistics");
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await page.keyboard.type("nvjet");
  await page.locator(".hits").waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await accessible(page, "keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+Shift+P");
  await page.locator("dialog[open] input").fill("whole");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !/from=/.test(location.hash));
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "save trace" }).click()]);
  const trace = JSON.parse(readFileSync(await saved.path(), "utf8"));
  assert.ok(trace.traceEvents.filter((e) => e.ph === "X").length > 100);
});
await test("timeline: keys by their place, wheel, link, hand-off", async () => {
  const page = await open(file("train", "#1/timeline"), ".tl-canvas"), canvas = page.locator(".tl-canvas"), box = await canvas.boundingBox();
  await page.waitForFunction(() => window.purlinFrame?.drawn > 10);
  const range = () => page.evaluate(() => { const q = new URLSearchParams(location.hash.split("?")[1]); return [Number(q.get("from") ?? 0), Number(q.get("to") ?? 1e18)]; }); // none: the whole
  const settled = async (act) => { const before = await page.evaluate(() => location.hash); await act(); await page.waitForFunction((h) => location.hash !== h, before); return range(); };
  const press = (code, key) => page.evaluate(async ([code, key]) => { const say = (type) => document.body.dispatchEvent(new KeyboardEvent(type, { code, key, bubbles: true })); say("keydown"); await new Promise((go) => setTimeout(go, 120)); say("keyup"); }, [code, key]);
  await page.mouse.move(box.x + box.width / 2, box.y + 120);
  const first = await settled(() => press("KeyW", "z")), right = await settled(() => press("KeyD", "d")), left = await settled(() => press("KeyA", "q")), out = await settled(() => press("KeyS", "s"));
  assert.ok(right[0] > first[0] && left[0] < right[0] && out[1] - out[0] > left[1] - left[0], String([first, right, left, out]));
  await page.keyboard.down("Control");
  const wheeled = await settled(() => page.mouse.wheel(0, -240));
  await page.keyboard.up("Control");
  assert.ok(wheeled[1] - wheeled[0] < out[1] - out[0]);
  // A slice by the pointer, marked; from work to its call and back; the link opens it again.
  await page.locator("[role=grid]").focus();
  await page.locator(".slices select").selectOption({ label: await page.locator(".slices option", { hasText: /stream/ }).first().textContent() });
  await page.locator("[role=grid]").focus();
  await page.keyboard.press("ArrowDown");
  const name = await page.locator(".details h2").innerText();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("[");
  await page.waitForFunction((n) => document.querySelector(".details h2").innerText !== n, name);
  await page.keyboard.press("]");
  await page.waitForFunction((n) => document.querySelector(".details h2").innerText === n, name);
  await page.keyboard.press("m");
  await page.locator(".details h2", { hasText: "Area" }).waitFor();
  await page.getByRole("button", { name: "clear" }).click();
  await page.getByRole("button", { name: "copy link" }).click();
  await page.waitForFunction(() => /sel=\d+/.test(location.hash));
  const other = await open(page.url(), ".tl-canvas");
  await other.waitForFunction((n) => document.querySelector(".details h2")?.innerText === n, name);
  // A link that is opened in the page itself is followed too.
  await page.evaluate(() => { location.hash = "#1/timeline?from=1000000&to=2000000"; });
  await page.mouse.move(box.x + box.width / 2, box.y + 120);
  const shown = await settled(() => page.mouse.wheel(200, 0));
  assert.ok(shown[0] > 9e5 && shown[1] < 3e6, String(shown));
  // Perfetto's page answers PING, then takes the trace.
  await context.route("https://ui.perfetto.dev/**", (route) => route.fulfill({ contentType: "text/html", body: `<script>addEventListener("message", (e) => { if (e.data === "PING") e.source.postMessage("PONG", "*"); else if (e.data.perfetto) window.got = e.data.perfetto; })</script>` }));
  const [popup] = await Promise.all([page.waitForEvent("popup"), page.getByRole("button", { name: "Perfetto", exact: true }).click()]);
  await popup.waitForFunction(() => window.got);
  const handed = await popup.evaluate(() => ({ title: window.got.title, trace: JSON.parse(new TextDecoder().decode(window.got.buffer)) }));
  assert.ok(handed.title && handed.trace.traceEvents.filter((e) => e.ph === "X").length > 100);
  await page.getByText("The trace is in Perfetto's page.").first().waitFor();
});
if (pages.captured) await test("a capture of this machine", async () => {
  const page = await open(file("captured"), ".kernels .grid-row");
  assert.match(await page.locator(".kernels").innerText(), /softmax/);
  assert.match(await page.locator(".kernels").innerText(), /transpose/);
  await page.goto(file("captured", "#1/timeline"));
  await page.locator(".tl-canvas").waitFor();
  await page.waitForFunction(() => window.purlinFrame?.drawn >= 10);
});
await test("what if", async () => {
  const page = await open(file("compare", "#1/timeline?file=0"), ".tl-canvas");
  const choice = page.locator(".tl-tools select");
  await choice.waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".tl-tools select option").length > 1);
  await choice.selectOption({ index: 1 });
  await page.locator(".tl-label.after").first().waitFor();
  assert.match(await page.locator(".after-note").innerText(), /→/);
});
await test("advice", async () => {
  const page = await open(file("compare", "#1/advice?file=0"), ".advised");
  assert.ok(await page.locator(".advised").count() >= 1);
  assert.match(await page.locator(".advised").first().innerText(), /Evidence/i);
  // The first change stands alone; the others say what they add to those before. So does the overview.
  const titles = await page.locator(".advised-title").allInnerTexts();
  assert.doesNotMatch(titles[0], /on top/);
  assert.match(titles[1], /24 % on top of those before/);
  assert.match(titles[2], /18 % on top of those before/);
  await accessible(page, "advice");
  assert.equal(await page.locator(".advised .chip.trade").count(), 0);
  // What costs precision is marked where it is listed.
  await page.goto(file("shapes", "#1/advice"));
  await page.locator(".advised", { has: page.locator(".chip.trade"), hasText: "8 bits" }).waitFor();
  assert.ok(await page.locator(".advised").count() > await page.locator(".advised .chip.trade").count());
  await page.goto(file("compare", "#1/overview?file=0"));
  await page.locator(".shortlist li").first().waitFor();
  assert.equal(await page.locator(".shortlist small", { hasText: "on top of those before" }).count(), 2);
});
// An own kernel of which no roof is known: nothing is promised, and what to record is said.
function unknownRoof() {
  const steps = [...Array(12).keys()], at = (n) => 1e6 + 700 * n;
  const events = steps.flatMap((n) => [
    { ph: "X", cat: "user_annotation", name: `ProfilerStep#${n}`, pid: 1, tid: 1, ts: at(n), dur: 690, args: {} },
    { ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, ts: at(n) + 1, dur: 4, args: { correlation: n + 1 } },
    { ph: "X", cat: "kernel", name: "turn_frames", pid: 0, tid: 7, ts: at(n) + 8, dur: 680, args: { device: 0, stream: 7, correlation: n + 1, grid: [131072, 1, 1], block: [256, 1, 1], "registers per thread": 32, "shared memory": 4096 } },
  ]);
  const path = join(folder, "own.json");
  writeFileSync(path, JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: "NVIDIA H200", computeMajor: 9, computeMinor: 0, numSms: 132, maxThreadsPerMultiprocessor: 2048, regsPerMultiprocessor: 65536, sharedMemPerMultiprocessor: 233472 }], traceEvents: events }));
  return path;
}
await test("advice without an estimate", async () => {
  run("report", "--html", (pages.own = join(folder, "own.html")), unknownRoof());
  const page = await open(file("own", "#1/advice"), ".unknown-roof");
  const text = await page.locator(".view.advice").innerText();
  assert.match(text, /turn_frames takes (9\d|100)(\.\d)? %[\s\S]*No saving is estimated/);
  assert.match(text, /purlin profile --counters/);
  assert.match(text, /bank conflicts/);
  assert.equal(await page.locator(".advised").count(), 0);
  await accessible(page, "advice without an estimate");
  await page.locator(".unknown-roof a").first().click();
  await page.locator(".view.kernel .unknown-roof").waitFor();
});
await test("compare", async () => {
  const page = await open(file("compare"), ".view.compare table");
  const rows = await page.locator(".view.compare tbody tr").count();
  await page.getByRole("button", { name: "all", exact: true }).click();
  await page.waitForFunction(() => /all=1/.test(location.hash));
  assert.ok(await page.locator(".view.compare tbody tr").count() >= rows);
  await accessible(page, "compare");
});
await test("tuning", async () => {
  const page = await open(file("tuning"), ".view.tuning .uplot");
  assert.ok(await page.locator(".parallel .config").count() > 4);
  assert.ok(await page.locator(".parallel .winner").count() >= 1);
  await page.locator(".parallel .value").first().focus();
  await page.keyboard.press("Enter");
  await page.locator(".parallel .config.off").first().waitFor({ state: "attached" });
  await accessible(page, "tuning");
});
// A library's kernel for the same problem, here made of the other: what it is worth against it.
await test("a tuning run beside another of its problem", async () => {
  const own = JSON.parse(readFileSync(data("page/softmax_tune.json"), "utf8")), other = join(folder, "library_tune.json");
  writeFileSync(other, JSON.stringify({ ...own, kernel: "library_softmax", best: { ...own.best, time_ms: own.best.time_ms * 1.3 } }));
  const server = await view([data("page/softmax_tune.json"), other]);
  try {
    const page = await open(server.url, ".view.tuning .uplot");
    await page.getByRole("heading", { name: "Other runs of this problem" }).waitFor();
    await page.locator("td.good", { hasText: "1.30×" }).waitFor();
    const library = page.locator(".stat", { hasText: "against library" });
    assert.match(await library.innerText(), /1\.18×[\s\S]*library, 211 µs/);
    await page.getByRole("link", { name: "library_softmax" }).click();
    await page.locator("td.bad", { hasText: "0.77×" }).waitFor();
    assert.match(await library.innerText(), /is one/);
    assert.match(await page.getByRole("row", { name: /^softmax softmax\/softmax\.toml/ }).innerText(), /1\.18×\s+211 µs\s+1\.18×/);
    assert.match(await page.locator(".view-head select").innerText(), /library_softmax R=16384,C=4096/);
    // A long list says how many more rows there are, and shows them.
    const configs = page.locator("section", { has: page.getByRole("heading", { name: "Configs" }) });
    assert.equal(await configs.locator("tbody tr").count(), 40);
    await configs.getByText("72 more configs").waitFor();
    await configs.getByRole("button", { name: "Show all" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".view.tuning tbody tr").length >= 112);
    await accessible(page, "tuning, two runs");
  } finally { server.stop(); }
});
await test("guard, served", async () => {
  const server = await view([...guardFiles, bisect, matrix]);
  try {
    const page = await open(server.url, ".view.guard table");
    assert.match(await page.locator(".view.guard").innerText(), /regression[\s\S]*softmax[\s\S]*Culprit: 4f1c/);
    assert.match(await page.locator(".view.guard").innerText(), /Matrix[\s\S]*\+12\.2 %[\s\S]*code[\s\S]*build \+12\.1 %[\s\S]*1\.12 µs/);
    await page.locator(".uplot").first().waitFor();
    assert.equal(await page.locator(".series-chart").count(), 2);
    await page.locator(".series-chart svg").first().focus();
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(() => /b114/.test(document.querySelector(".readout").innerText));
    await accessible(page, "guard");
  } finally { server.stop(); }
});
// A recorded journal of an H100, written on as `purlin tune` did.
await test("a tuning run, live", async () => {
  const lines = readFileSync(data("page/softmax_journal.jsonl"), "utf8").trimEnd().split("\n"), session = join(folder, "session"), journal = join(session, "journal.jsonl");
  const write = (from, to) => appendFileSync(journal, lines.slice(from, to).join("\n") + "\n");
  mkdirSync(session);
  write(0, 41);
  const server = await view([session]);
  try {
    const page = await open(server.url, ".view.tuning .uplot"), connections = [];
    const count = (n) => (p) => p.waitForFunction((wanted) => [...document.querySelectorAll(".stat")].some((s) => s.innerText.startsWith("evaluations\n" + wanted + "\n") || s.innerText === "evaluations\n" + wanted), String(n));
    const other = await context.newPage();
    other.on("request", (r) => /events/.test(r.url()) && connections.push(r.url()));
    await page.getByText("live", { exact: true }).waitFor();
    await count(40)(page);
    await other.goto(server.url);
    await other.getByText("live", { exact: true }).waitFor();
    write(41, 61);
    await count(60)(page);
    await count(60)(other);
    await accessible(page, "tuning, live");
    // The tab with the connection goes: another takes over, with what it missed.
    await page.close();
    write(61, lines.length);
    await count(112)(other);
    await other.getByText("ended: budget").waitFor();
    assert.equal(connections.length, 1, "one connection for all tabs");
    // Files are read again when the page is loaded again.
    await other.reload();
    await other.getByText("ended: budget").waitFor();
    await count(112)(other);
  } finally { server.stop(); }
});
await test("what other documents know of a kernel", async () => {
  if (!captured) return;
  const server = await view([captured, gpt2("sdpa"), ...guardFiles, data("page/softmax_tune.json")]);
  try {
    const page = await open(server.url + "#1/kernels?file=0", ".kernels .grid-row");
    await page.getByRole("link", { name: "softmax", exact: true }).click();
    for (const title of ["History over builds", "Verdicts of the guard", "In the config cache", "Tuning runs"]) await page.getByRole("heading", { name: title }).waitFor();
    const text = await page.locator(".view.kernel").innerText();
    assert.match(text, /regression[\s\S]*verified/);
    assert.match(text, /Not in this page: profiles of other builds/);
    await accessible(page, "kernel with history");
  } finally { server.stop(); }
  const files = await view([gpt2("sdpa"), gpt2("eager"), gpt2("counters")]);
  try {
    const page = await open(files.url, ".view.compare table");
    await page.goto(files.url + "#1/overview?file=2");
    await page.locator(".grid-row .name").first().click();
    await page.getByRole("heading", { name: "Profiles that contain it" }).waitFor();
    await page.getByText(/^(In the first file: |Its place in the first file is not known)/).waitFor();
    assert.equal(await page.locator(".view.kernel .series-chart").count(), 1);
    await accessible(page, "kernel in several files");
  } finally { files.stop(); }
});
await test("winners of the cache", async () => {
  if (!captured) return;
  const path = join(folder, "cache.json");
  const doc = JSON.parse(run("cache", "ls", "--json")), own = { ...doc.entries[0], time_ms: 1.5 };
  // With a winner of a library for the same problem, here made of the other.
  writeFileSync(path, JSON.stringify({ ...doc, entries: [own, { ...own, record: "x", time_ms: own.time_ms * 2, key: { ...own.key, kernel: "cublaslt-nn-f32", toolkit: "cuBLASLt 13.1.0" } }] }));
  const server = await view([path]);
  try {
    const page = await open(server.url, ".view table");
    assert.match(await page.locator(".view").innerText(), /over library[\s\S]*softmax[\s\S]*2\.00×[\s\S]*verified/);
    await accessible(page, "cache");
  } finally { server.stop(); }
});
await test("a profile, served", async () => {
  const server = await view([join(here, "../../tests/data/traces/kineto_h200_fusion_before.json.gz")]);
  try {
    const page = await open(server.url, ".kernels .grid-row");
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Timeline" }).click();
    await page.locator(".tl-canvas").waitFor();
    await page.waitForFunction(() => window.purlinFrame?.drawn > 0);
  } finally { server.stop(); }
});
const fleetViews = [["Kernels", /Tune these[\s\S]*Got slower[\s\S]*rms_norm_kernel/], ["Compare", /Choose what/], ["Nodes", /fullest spool\s+99\.6 %\s+a100-03[\s\S]*h100-07[\s\S]*99\.6 %\s+267 MB of 268 MB/], ["Backlog", /tuned now\s+2\s+open\s+\d+\s+failed\s+1\s+done\s+4\s+GPU time spent\s+26\.2 min[\s\S]*won so far\s+45\.\d h\s+16\d,\d{3} GPU-seconds[\s\S]*h100-tuner-1, until[\s\S]*no config worked[\s\S]*1\.18x of the default\s+29\.\d h won/]];
const demo = await serve("--demo");
await test("fleet", async () => {
  const server = demo;
  {
    const posted = await fetch(`${server.url}/v1/guard`, { method: "POST", body: JSON.stringify({ ...JSON.parse(readFileSync(data("page/verdict.json"), "utf8")), items: JSON.parse(readFileSync(data("page/verdict.json"), "utf8")).items.map((i) => ({ ...i, kernel: "rms_norm_kernel" })) }) });
    assert.equal(posted.status, 201);
    if (captured) run("cache", "push", `${server.url}/team`);
    const page = await open(server.url, ".fleet-kernels");
    for (const [name, text] of fleetViews) {
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name, exact: true }).click();
      await page.waitForFunction((t) => new RegExp(t).test(document.querySelector("main").innerText) && !/Asking the server/.test(document.querySelector("main").innerText), text.source);
      await fits(page, `fleet, ${name}`);
      // 70 equal rows take axe-core seconds.
      if (name === "Nodes") { assert.match(await page.locator("tbody tr", { hasText: "l40s-00" }).innerText(), /not said/); await page.locator("input[type=search]").fill("a100-0"); await page.waitForFunction(() => /10 of 70 nodes/.test(document.querySelector("main").innerText)); }
      await accessible(page, `fleet, ${name}`);
    }
    // A planted regression: its kernel, with the build that brought it, and the guard's verdict.
    await page.goto(server.url + "#1/kernels");
    await page.locator(".shortlist.bad a", { hasText: "rms_norm_kernel" }).click();
    await page.locator(".mark.bad").first().waitFor({ state: "attached" });
    await page.waitForFunction(() => /v1\.8 → v1\.9/.test(document.querySelector(".series-chart").textContent) && !/Asking the server/.test(document.querySelector("main").innerText));
    assert.match(await page.locator("main").innerText(), /alarm[\s\S]*Shapes[\s\S]*rows=16384,cols=4096[\s\S]*regression[\s\S]*In the shared caches/);
    if (captured) await page.getByRole("heading", { name: "team", exact: true }).waitFor();
    // Of its inside: what the newest raw profile has, and where that is from.
    assert.match(await page.locator("main").innerText(), /Advice\s+Of the time of that profile; from h100-02, build v1\.9, 20\d\d-[\s\S]*What would not help[\s\S]*Why warps wait\s+8,300 samples; from h100-02[\s\S]*long scoreboard\s+65 %\s+72 %[\s\S]*rms_norm_kernel\.cu:41[\s\S]*limited by registers[\s\S]*dram__bytes_read\.sum\s+\d+ MB\s+12/);
    assert.match(await page.getByRole("img", { name: /^Durations: median \d/ }).getAttribute("aria-label"), /95 % below \d/);
    await fits(page, "fleet, kernel");
    // Days of one's own choice, in the address.
    await page.getByRole("button", { name: "days…" }).click();
    await page.locator("input[type=date]").first().fill(new Date(Date.now() - 3 * 864e5).toISOString().slice(0, 10));
    await page.waitForFunction(() => /begin=\d{4}-\d\d-\d\dT00/.test(decodeURIComponent(location.hash)) && /end=/.test(location.hash) && !/Asking the server/.test(document.querySelector("main").innerText) && document.querySelectorAll(".series-chart:not(.distribution) circle").length <= 4);
    await page.getByRole("button", { name: "week" }).click();
    await page.waitForFunction(() => !/end=|begin=/.test(location.hash) && document.querySelectorAll(".series-chart:not(.distribution) circle").length > 6);
    await accessible(page, "fleet, kernel");
    await page.goto(server.url + "#1/compare?by=build&before=v1.8&after=v1.9");
    await page.waitForFunction(() => /rms_norm_kernel[\s\S]*slower/.test(document.querySelector("main").innerText));
    await accessible(page, "fleet, compared");
    await page.evaluate(() => { location.hash = "#1/compare?by=time"; });
    await page.waitForFunction(() => /The first half of the time against the second[\s\S]*rms_norm_kernel/.test(document.querySelector("main").innerText));
    await page.evaluate(() => { location.hash = "#1/compare?by=driver&before=570.124.06&after=580.65.06"; });
    await page.waitForFunction(() => /paged_attention_v2[\s\S]*slower/.test(document.querySelector("main").innerText) && !/first half/.test(document.querySelector("main").innerText));
    // The place of a kernel in older links.
    await page.goto(server.url + "#1/kernels?kernel=rms_norm_kernel");
    await page.waitForFunction(() => document.querySelector("h1")?.innerText.trim() === "rms_norm_kernel");
    await page.goto(server.url + "#1/kernels?model=NVIDIA+H200");
    await page.waitForFunction(() => /paged_attention/.test(document.querySelector(".fleet-kernels")?.innerText) && !/flash_bwd_dq/.test(document.querySelector(".fleet-kernels").innerText));
  }
});
await ofFleet({ test, open, accessible, url: demo.url });
await ofRoofs({ test, open, accessible, url: demo.url });
await ofWindows({ test, open, accessible, url: demo.url });
await ofLongNames({ test, open, folder, url: demo.url });
void demo.stop();
await ofManyKernels({ test, open, folder });
await ofViews({ test, open, accessible, folder, file: file("train"), guardFiles, captured });
await test("fleet: tokens, no data, names of strangers, a server that ends", async () => {
  const tokens = join(folder, "tokens");
  writeFileSync(tokens, "read secret-of-the-page tester\nwrite another-secret-of-it writer\n", { mode: 0o600 });
  const server = await serve("--data", join(folder, "served"), "--token-file", tokens);
  let stopped = false;
  try {
    const page = await open(server.url, "input[type=password]", /status of 40[13]|Failed to load resource|ERR_CONNECTION/);
    await accessible(page, "fleet, asked for a token");
    await page.locator("input[type=password]").fill("wrong");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /does not know that token/.test(document.querySelector("main").innerText));
    await page.locator("input[type=password]").fill("secret-of-the-page");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /No kernel was recorded/.test(document.querySelector("main").innerText));
    await accessible(page, "fleet without data");
    for (const [name, text] of [["Nodes", "No node has sent anything"], ["Backlog", "The backlog is empty"]]) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.waitForFunction((t) => document.querySelector("main").innerText.includes(t), text);
      await accessible(page, `fleet without data, ${name}`);
    }
    // A node may send any name: the server's own answer, with one of them.
    await page.route("**/v1/query/top?**", async (route) => { const json = await (await route.fetch()).json(); await route.fulfill({ json: { ...json, gpu_s: 1, kernel_count: 1, kernels: [{ kernel: "<img src=x onerror=alert(1)>", raw_kernel: "x", role: "other", launches: 1, recorded: 1, gpu_s: 1, share: 1, cumulative_share: 1, p50_ns: 1, p95_ns: 1 }] } }); });
    await page.getByRole("link", { name: "Kernels", exact: true }).click();
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    assert.equal(await page.locator("main img").count(), 0);
    await server.stop();
    stopped = true;
    await page.getByRole("link", { name: "Nodes", exact: true }).click();
    await page.waitForFunction(() => /did not answer as expected/.test(document.querySelector("main").innerText));
    await accessible(page, "fleet without a server");
  } finally { if (!stopped) server.stop(); }
});
await test("dark, forced colours", async () => {
  const page = await context.newPage();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(file("train"));
  await page.locator(".kernels .grid-row").first().waitFor();
  await accessible(page, "overview, dark");
  await page.goto(file("compare", "#1/advice?file=0"));
  await page.reload();
  await page.locator(".advised").first().waitFor();
  await accessible(page, "advice, dark");
  await page.goto(file("gpt2"));
  await page.reload();
  await page.locator(".grid-row .name").first().click();
  await page.locator(".view.kernel .lacks").waitFor();
  await accessible(page, "kernel, dark");
  const server = await view([...guardFiles, data("page/softmax_journal.jsonl")]);
  try {
    for (const [hash, ready] of [["", ".series-chart"], ["#1/tuning", ".view.tuning .uplot"]]) {
      await page.goto(server.url + hash);
      await page.reload();
      await page.locator(ready).first().waitFor();
      await accessible(page, `${ready}, dark`);
    }
    await page.emulateMedia({ forcedColors: "active" });
    await page.goto(server.url);
    await page.reload();
    await page.locator(".series-chart").first().waitFor();
    // What is drawn is still there: the line of a level or a point is no invisible colour.
    assert.notEqual(await page.locator(".series-chart circle").first().evaluate((e) => getComputedStyle(e).fill), await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
  } finally { server.stop(); }
  await page.goto(file("train", "#1/timeline"));
  await page.reload();
  await page.locator(".tl-canvas").waitFor();
});

await engine.close();
rmSync(folder, { recursive: true, force: true });
console.log(failed ? `${failed} of ${ran} failed` : `${ran} passed`);
process.exit(failed ? 1 : 0);
