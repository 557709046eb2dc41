// SPDX-License-Identifier: Apache-2.0
// The views of a fleet's server: the demo's, one without data, and one that ends.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fits } from "./long.mjs";
import { data, run, serve } from "./pages.mjs";

const fleetViews = [["Kernels", /Tune these[\s\S]*Got slower[\s\S]*rms_norm_kernel/], ["Compare", /Choose what/], ["Nodes", /fullest spool\s+99\.6 %\s+a100-03[\s\S]*h100-07[\s\S]*99\.6 %\s+267 MB of 268 MB/], ["Backlog", /tuned now\s+2\s+open\s+\d+\s+failed\s+1\s+done\s+4\s+GPU time spent\s+26\.2 min[\s\S]*won so far\s+45\.\d h\s+16\d,\d{3} GPU-seconds[\s\S]*h100-tuner-1, until[\s\S]*no config worked[\s\S]*1\.18x of the default\s+29\.\d h won/]];

// `server`: of `purlin serve --demo`.
export async function ofServer({ test, open, accessible, folder, made, server }) {
  const { captured } = made;
  await test("fleet", async () => {
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
  });
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
}
