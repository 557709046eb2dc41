// SPDX-License-Identifier: Apache-2.0
// The same Chrome trace in this page and in speedscope: node beside.mjs TRACE.json node_modules/speedscope
// (npm install speedscope, in a folder of its own). Time until it is shown, and frames of 60 zooms by
// the wheel from Chromium's own trace. Bounded: 90 s each.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join, normalize } from "node:path";
import { browser, view } from "./test/pages.mjs";

const [trace, package_] = process.argv.slice(2), release = join(package_, "dist/release");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };
const server = createServer((request, response) => {
  const path = new URL(request.url, "http://x").pathname, file = path === "/trace.json" ? trace : join(release, normalize(path));
  try { response.writeHead(200, { "Content-Type": types[/\.\w+$/.exec(path)?.[0]] ?? "application/octet-stream" }); response.end(readFileSync(file)); } catch { response.writeHead(404); response.end(); }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];
const read = Date.now(), own = await view([trace]), analysed = Date.now() - read, engine = await browser(), base = `http://127.0.0.1:${server.address().port}`;
console.log(`${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}; Chromium ${engine.version()}, headless, no GPU; ${(readFileSync(trace).length / 1e6).toFixed(1)} MB; purlin view read and analysed it in ${analysed} ms before`);
for (const [name, url, shown, canvas] of [
  ["purlin view", own.url + "#1/timeline", () => window.purlinFrame?.drawn > 0, ".tl-canvas"],
  ["speedscope", `${base}/index.html#profileURL=${encodeURIComponent(base + "/trace.json")}`, () => /Time Order/.test(document.body.innerText), "canvas"],
]) {
  const page = await engine.newPage({ viewport: { width: 1280, height: 800 } }), begin = Date.now();
  await page.goto(url);
  const opened = await page.waitForFunction(shown, undefined, { timeout: 90e3 }).then(() => Date.now() - begin, () => null);
  if (opened === null) { console.log(`${name}: not shown within 90 s`); continue; }
  const box = await page.locator(canvas).last().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + Math.min(120, box.height / 2));
  await engine.startTracing(page, { categories: ["devtools.timeline"] });
  await page.keyboard.down("Control");
  for (let i = 0; i < 60; ++i) { await page.mouse.wheel(0, i < 30 ? -60 : 60); await page.waitForTimeout(30); }
  await page.keyboard.up("Control");
  const frames = JSON.parse((await engine.stopTracing()).toString()).traceEvents.filter((e) => e.name === "FireAnimationFrame" && e.dur).map((e) => e.dur / 1000);
  console.log(`${name}: shown after ${opened} ms; ${frames.length} animation frames, p50 ${quantile(frames, 0.5)?.toFixed(1)}, p95 ${quantile(frames, 0.95)?.toFixed(1)} ms`);
  await page.close();
}
await engine.close();
server.close();
await own.stop();
