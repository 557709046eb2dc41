// SPDX-License-Identifier: Apache-2.0
// Screenshots of every view: node screenshots.mjs [DIR] [--all]. Into docs/screenshots, or DIR;
// --all: both widths and both colour schemes.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browser, makePages, root, view } from "./test/pages.mjs";

const args = process.argv.slice(2).filter((a) => !a.startsWith("--")), all = process.argv.includes("--all");
const out = args[0] ?? join(root, "docs/screenshots"), only = args[1];
mkdirSync(out, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "purlin-shots-"));
const { pages, guardFiles } = makePages(folder);
const server = await view(guardFiles);
const shots = [
  ["overview", `file://${pages.shapes}`, ".kernels .grid-row"], ["kernel", `file://${pages.shapes}`, ".kernels .grid-row", async (p) => { await p.locator(".grid-row .name").first().click(); await p.locator(".view.kernel h1").waitFor(); }],
  ["counters", `file://${pages.counters}`, ".kernels .grid-row", async (p) => { await p.locator(".grid-row .name").nth(1).click(); await p.locator(".view.kernel h1").waitFor(); }],
  ["roofline", `file://${pages.shapes}#1/roofline`, ".roofline svg"],
  ["timeline", `file://${pages.shapes}#1/timeline`, ".tl-canvas", async (p) => { await p.waitForTimeout(400); const box = await p.locator(".tl-canvas").boundingBox(); await p.mouse.move(box.x + box.width * 0.55, box.y + 90); await p.keyboard.down("KeyW"); await p.waitForTimeout(process.env.SHOT_ZOOM ? Number(process.env.SHOT_ZOOM) : 450); await p.keyboard.up("KeyW"); await p.mouse.click(box.x + box.width * 0.55, box.y + 95); await p.waitForTimeout(200); await p.mouse.move(10, 300); }],
  ["timeline_whole", `file://${pages.shapes}#1/timeline`, ".tl-canvas", async (p) => { await p.waitForTimeout(300); }],
  ["whatif", `file://${pages.compare}#1/timeline?file=0&after=applied0`, ".tl-label.after", async (p) => { await p.waitForTimeout(400); }],
  ["advice", `file://${pages.compare}#1/advice?file=0`, ".advised"], ["compare", `file://${pages.compare}`, ".view.compare table"],
  ["tuning", `file://${pages.tuning}`, ".view.tuning .uplot"], ["guard", server.url, ".view.guard .uplot"],
];
const engine = await browser();
for (const width of all ? [1280, 1920] : [1280]) for (const scheme of all ? ["light", "dark"] : ["light"]) {
  const context = await engine.newContext({ viewport: { width, height: width === 1280 ? 800 : 1080 }, colorScheme: scheme, reducedMotion: "reduce" });
  for (const [name, url, ready, use] of shots) {
    if (only ? name !== only : !all && ["counters", "timeline_whole"].includes(name)) continue;
    const page = await context.newPage();
    page.on("console", (m) => m.type() === "error" && console.log(name, m.text()));
    page.on("pageerror", (e) => console.log(name, e.message));
    await page.goto(url);
    await page.locator(ready).first().waitFor({ timeout: 15000 });
    if (use) await use(page);
    await page.waitForTimeout(150);
    await page.screenshot({ path: join(out, all ? `${name}_${width}_${scheme}.png` : `${name}.png`) });
    await page.close();
  }
  await context.close();
}
await engine.close();
server.stop();
rmSync(folder, { recursive: true, force: true });
