// SPDX-License-Identifier: Apache-2.0
// Every view in a real browser, from files and from `purlin view`: what it shows, its keys, its URLs,
// no request to elsewhere, no message on the console, and axe-core without a serious fault.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, chromium, makePages, serve, view } from "./pages.mjs";

if (!chromium) { console.log("skipped: no Chromium (./dev setup page)"); process.exit(77); }
const here = dirname(fileURLToPath(import.meta.url)), axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "purlin-page-"));
const { pages, guardFiles } = makePages(folder);
const file = (name, hash = "") => `file://${pages[name]}${hash}`;
const engine = await browser();
const context = await engine.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", bypassCSP: false });
context.setDefaultTimeout(10000);
let failed = 0, ran = 0;
const faults = [];

async function open(url, ready) {
  const page = await context.newPage();
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !/status of 401/.test(m.text())) faults.push(`${url}: ${m.text()}`); });
  page.on("pageerror", (e) => faults.push(`${url}: ${e.message}`));
  page.on("request", (r) => { const to = new URL(r.url()); if (!["file:", "blob:", "data:"].includes(to.protocol) && to.host !== new URL(url).host) faults.push(`${url} asks ${r.url()}`); });
  await page.goto(url);
  await page.locator(ready).first().waitFor({ timeout: 15000 });
  return page;
}
async function accessible(page, where) {
  // axe-core runs beside the page's policy: the test's world is its own.
  await page.evaluate(axe + ";window.axe = axe;");
  const result = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
  const serious = result.violations.filter((v) => ["serious", "critical"].includes(v.impact));
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target + " " + (n.failureSummary ?? "").split("\n")[1]).join(" | ")}`), [], `axe-core on ${where}`);
}
async function test(name, body) {
  ++ran;
  const before = faults.length;
  try {
    await body();
    assert.deepEqual(faults.slice(before), [], "messages or requests");
    console.log(`ok ${name}`);
  } catch (error) { ++failed; console.log(`FAILED ${name}\n${error.stack ?? error}`); }
  for (const page of context.pages()) await page.close();
}

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
  await page.waitForFunction(() => /from=/.test(location.hash), undefined, { timeout: 5000 }).catch(() => undefined);
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
  await accessible(page, "advice");
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
await test("guard, served", async () => {
  const server = await view(guardFiles);
  try {
    const page = await open(server.url, ".view.guard table");
    assert.match(await page.locator(".view.guard").innerText(), /softmax[\s\S]*Culprit: 4f1c/);
    await page.locator(".uplot").first().waitFor();
    await accessible(page, "guard");
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
await test("fleet", async () => {
  const server = await serve(folder);
  try {
    const answers = JSON.parse(readFileSync(join(here, "fleet.json"), "utf8"));
    await context.route("**/v1/**", (route) => {
      const path = new URL(route.request().url()).pathname.replace("/v1/", "");
      return answers[path] ? route.fulfill({ json: answers[path] }) : route.fulfill({ status: 401, json: { error: { status: 401, message: "this server wants a token" } } });
    });
    const page = await open(server.url, ".view table");
    assert.match(await page.locator(".view").innerText(), /nvjet[\s\S]*alarm|alarm[\s\S]*nvjet/);
    await accessible(page, "fleet");
    for (const [name, text] of [["Nodes", /node-17/], ["Backlog", /open/], ["Compare", /Choose what/]]) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.waitForFunction((t) => new RegExp(t).test(document.querySelector("main").innerText), text.source);
      await accessible(page, "fleet, " + name);
    }
    delete answers.nodes;
    await page.getByRole("link", { name: "Nodes", exact: true }).click();
    await page.locator("input[type=password]").waitFor();
  } finally { await context.unroute("**/v1/**"); server.stop(); }
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
  await page.emulateMedia({ forcedColors: "active" });
  await page.goto(file("train", "#1/timeline"));
  await page.reload();
  await page.locator(".tl-canvas").waitFor();
});

await engine.close();
rmSync(folder, { recursive: true, force: true });
console.log(failed ? `${failed} of ${ran} failed` : `${ran} passed`);
process.exit(failed ? 1 : 0);
