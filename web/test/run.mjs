// SPDX-License-Identifier: Apache-2.0
// Every view in a real browser, from files and from `purlin view`: what it shows, its keys, its URLs,
// no request to elsewhere, no message on the console, and axe-core without a serious fault.
//
//   node run.mjs [documents|fleet] [PART OF A TEST'S NAME]
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ofDocuments } from "./documents.mjs";
import { ofRoofs, ofWindows } from "./fleet.mjs";
import { ofLongNames, ofManyKernels } from "./long.mjs";
import { browser, chromium, makePages, serve } from "./pages.mjs";
import { ofFleet, ofViews } from "./partial.mjs";
import { ofServer } from "./server.mjs";
import { units } from "./unit.mjs";

if (!chromium) { console.log("skipped: no Chromium (./dev setup page)"); process.exit(77); }
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "purlin-page-"));
const made = makePages(folder), { pages, guardFiles, captured } = made;
const file = (name, hash = "") => `file://${pages[name]}${hash}`;
const engine = await browser();
const context = await engine.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", bypassCSP: false });
context.setDefaultTimeout(10000);
let failed = 0, ran = 0;
const faults = [];
const parts = ["documents", "fleet"], part = parts.includes(process.argv[2]) ? process.argv[2] : "", only = process.argv[part ? 3 : 2] ?? "";

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

if (part !== "fleet") {
  await units(test);
  await ofDocuments({ test, open, accessible, file, context, folder, made });
  await ofManyKernels({ test, open, folder });
  await ofViews({ test, open, accessible, folder, file: file("train"), guardFiles, captured });
}
if (part !== "documents") {
  const server = await serve("--demo"), fleet = { test, open, accessible, folder, url: server.url };
  await ofServer({ ...fleet, made, server });
  await ofFleet(fleet);
  await ofRoofs(fleet);
  await ofWindows(fleet);
  await ofLongNames(fleet);
  await server.stop();
}

await engine.close();
rmSync(folder, { recursive: true, force: true });
console.log(failed ? `${failed} of ${ran} failed` : `${ran} passed`);
process.exit(failed || !ran ? 1 : 0);
