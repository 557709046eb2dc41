// SPDX-License-Identifier: Apache-2.0
// Screenshots of every view, of real captures (tests/data/page): node screenshots.mjs [DIR] [NAME] [--all] [--full].
// Into docs/screenshots, or DIR; --all: both widths and both colour schemes; --full: down to the end of each page.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browser, data, gpt2, makePages, root, serve, view } from "./test/pages.mjs";

const args = process.argv.slice(2).filter((a) => !a.startsWith("--")), all = process.argv.includes("--all"), fullPage = process.argv.includes("--full");
const out = args[0] ?? join(root, "docs/screenshots"), only = args[1];
mkdirSync(out, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "purlin-shots-"));
const { pages, guardFiles, captured } = makePages(folder, 8);
const servers = { guard: await view(guardFiles), tuning: await view([data("page/softmax_tune.json")]), live: await view([data("page/softmax_journal.jsonl")]), compare: await view([gpt2("eager"), gpt2("sdpa")]), counters: await view([gpt2("counters")]), fleet: await serve("--demo"), ...(captured ? { kernel: await view([captured, ...guardFiles]) } : {}) };
const gpt = `file://${pages.gpt2}`, at = (name, hash = "") => servers[name].url + hash;
const asked = (p) => p.waitForFunction(() => !/Asking the server/.test(document.querySelector("main").innerText));
// Into a step of the steady state, with a slice that was launched by a call.
async function picked(p) {
  await p.waitForTimeout(400);
  const box = await p.locator(".tl-canvas").boundingBox(), label = await p.locator(".tl-label", { hasText: "stream 7" }).first().boundingBox();
  for (let x = 0.42; x < 0.9; x += 0.02) {
    await p.mouse.click(box.x + box.width * x, label.y + 8);
    await p.waitForTimeout(60);
    if (await p.getByText("launched by").count()) break;
  }
  await p.mouse.move(10, 300);
}
const first = async (p) => { await p.locator(".grid-row .name").first().click(); await p.locator(".view.kernel h1").waitFor(); await p.getByText("Not in this page").waitFor(); };
// Name, address, what is there when it is ready, what is done then. `more`: with --all only.
const shots = [
  ["overview", gpt, ".kernels .grid-row"], ["roofline", at("compare", "#1/roofline?file=1"), ".roofline svg"],
  ["timeline", `${gpt}#1/timeline?from=742000000&to=745200000`, ".tl-canvas", picked], ["whatif", `${gpt}#1/timeline?after=applied0`, ".tl-label.after", async (p) => { await p.waitForTimeout(400); }],
  ["advice", `${gpt}#1/advice`, ".advised"], ["compare", at("compare"), ".view.compare table"],
  ["tuning", at("tuning"), ".view.tuning .uplot"], ["guard", at("guard"), ".view.guard .uplot"],
  ["fleet", at("fleet"), ".fleet-kernels", asked], ["fleet_kernel", at("fleet", "#1/kernels/rms_norm_kernel"), ".series-chart", asked],
  ["fleet_inside", at("fleet", "#1/kernels/rms_norm_kernel"), ".series-chart", async (p) => { await asked(p); await p.getByRole("heading", { name: "Advice", exact: true }).evaluate((e) => scrollTo(0, e.getBoundingClientRect().top + scrollY - 70)); }],
  ...(captured ? [["kernel", at("kernel", "#1/kernels"), ".kernels .grid-row", async (p) => { await p.getByRole("link", { name: "softmax", exact: true }).click(); await p.getByText("Not in this page").waitFor(); }]] : []),
];
const more = [
  ["gpt2_kernel", gpt, ".kernels .grid-row", first], ["counters", at("counters"), ".kernels .grid-row", first], ["timeline_whole", `${gpt}#1/timeline`, ".tl-canvas", async (p) => { await p.waitForTimeout(300); }], ["live", at("live"), ".view.tuning .uplot"],
  ["fleet_nodes", at("fleet", "#1/nodes"), ".view table", asked], ["fleet_backlog", at("fleet", "#1/backlog"), ".view table", asked], ["fleet_compare", at("fleet", "#1/compare?by=build&before=v1.8&after=v1.9&all=1"), ".fleet-compare", asked],
  ...(captured ? [["cache_kernel", at("kernel", "#1/kernels"), ".kernels .grid-row", async (p) => { await p.getByRole("link", { name: "softmax", exact: true }).click(); await p.getByText("Not in this page").waitFor(); await p.getByRole("heading", { name: "History over builds" }).evaluate((e) => e.scrollIntoView()); }]] : []),
];
const engine = await browser();
for (const width of all ? [1280, 1920] : [1280]) for (const scheme of all ? ["light", "dark"] : ["light"]) {
  const context = await engine.newContext({ viewport: { width, height: width === 1280 ? 800 : 1080 }, colorScheme: scheme, reducedMotion: "reduce" });
  for (const [name, url, ready, use] of [...shots, ...(all || only ? more : [])]) {
    if (only && name !== only) continue;
    const page = await context.newPage();
    page.on("console", (m) => m.type() === "error" && console.log(name, m.text()));
    page.on("pageerror", (e) => console.log(name, e.message));
    await page.goto(url);
    await page.locator(ready).first().waitFor({ timeout: 15000 });
    if (use) await use(page);
    await page.waitForTimeout(150);
    await page.screenshot({ fullPage, path: join(out, all ? `${name}_${width}_${scheme}.png` : `${name}.png`) });
    await page.close();
  }
  await context.close();
}
await engine.close();
for (const server of Object.values(servers)) server.stop();
rmSync(folder, { recursive: true, force: true });
