// SPDX-License-Identifier: Apache-2.0
// The views of documents: profiles, comparisons, tuning runs, verdicts and the cache, as files and from
// `purlin view`.
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { data, gpt2, run, view } from "./pages.mjs";

const here = dirname(fileURLToPath(import.meta.url));

// An own kernel of which no roof is known: nothing is promised, and what to record is said.
function unknownRoof(folder) {
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

export async function ofDocuments({ test, open, accessible, file, context, folder, made }) {
  const { pages, guardFiles, bisect, matrix, captured } = made;
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
  await test("advice without an estimate", async () => {
    run("report", "--html", (pages.own = join(folder, "own.html")), unknownRoof(folder));
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
    const server = await view([data("traces/kineto_h200_fusion_before.json.gz")]);
    try {
      const page = await open(server.url, ".kernels .grid-row");
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Timeline" }).click();
      await page.locator(".tl-canvas").waitFor();
      await page.waitForFunction(() => window.purlinFrame?.drawn > 0);
    } finally { server.stop(); }
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
}
