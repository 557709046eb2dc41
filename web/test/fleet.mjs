// SPDX-License-Identifier: Apache-2.0
// The fleet's page: what bounds the kernels, and windows that are requested of a node, from the form to
// the profile that came.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { faulty } from "./faulty.mjs";
import { gpt2 } from "./pages.mjs";

const expected = /status of \d+|Failed to load resource|ERR_/;
const says = (page, pattern) => page.waitForFunction((p) => new RegExp(p).test(document.querySelector("main").innerText), pattern.source);
const row = (page, name) => page.locator("tbody tr", { has: page.getByRole("link", { name, exact: true }) });

export async function ofRoofs({ test, open, accessible, url }) {
  await test("fleet, what bounds its kernels", async () => {
    const middle = await faulty(url), { faults } = middle;
    try {
      const page = await open(`${middle.url}#1/kernels`, ".fleet-kernels .meter", expected);
      assert.match(await row(page, "nvjet_tst_256x128_64x4_2x1_v_bz_TNT").innerText(), /67 %\s+compute\s+33 %/);
      assert.match(await row(page, "rms_norm_kernel").innerText(), /\d\d %\s+memory/);
      // What is not known says so, with the reason; it is never 0.
      const unknown = row(page, "ncclDevKernel_AllGather_RING_LL");
      assert.match(await unknown.innerText(), /unknown\s+unknown/);
      assert.ok(await unknown.locator("[title*='no model says']").count());
      assert.doesNotMatch(await page.locator(".fleet-kernels").innerText(), /\b0 %\s+(compute|memory|unknown)/);
      // A part of its time is not known: the share is said.
      faults.set("query/roofs", (r) => { const first = r.roofs.find((k) => /^nvjet_tst_256/.test(k.kernel)); first.known_gpu_s = first.gpu_s / 2; first.unknown = "no problem shape was recorded"; return r; });
      await page.reload();
      await page.locator(".fleet-kernels [title*='Of 50 % of its GPU time; for the rest, no problem shape was recorded']").waitFor();
      // Without the answer the table stays.
      faults.set("query/roofs", 500);
      await page.reload();
      await says(page, /What bounds them: 500[\s\S]*nvjet_tst_256/);
      faults.clear();
      await page.getByRole("button", { name: "Ask again" }).click();
      await page.locator(".fleet-kernels .meter").first().waitFor();
      await page.goto(`${middle.url}#1/kernels/nvjet_tst_256x128_64x4_2x1_v_bz_TNT`);
      await says(page, /of its roof\s+6\d(\.\d)? %\s+6\d(\.\d)? % in the first half/);
      await accessible(page, "fleet, a kernel and its roof");
    } finally { middle.stop(); }
  });
  await test("fleet, kernels beyond the first hundred", async () => {
    const middle = await faulty(url), { faults } = middle;
    try {
      const asked = [];
      faults.set("query/top", (t) => { asked.push(t.kernels.length); return { ...t, kernels: asked.length > 1 ? t.kernels : t.kernels.slice(0, 10) }; });
      const page = await open(`${middle.url}#1/kernels`, ".fleet-kernels", expected);
      await says(page, /10 of 40 kernels[\s\S]*30 more kernels with 3\d % of the GPU time/);
      await page.getByRole("button", { name: "Show more" }).click();
      await says(page, /40 of 40 kernels/);
      assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
    } finally { middle.stop(); }
  });
}

export async function ofWindows({ test, open, accessible, url }) {
  const exchange = async (reports) => (await (await fetch(`${url}/v1/windows/exchange`, { method: "POST", body: JSON.stringify({ node: "h100-07", claimer: "tester", reports }) })).json()).windows;
  await test("fleet, a window of a node", async () => {
    const middle = await faulty(url), { faults } = middle, profile = readFileSync(gpt2("sdpa")), sha256 = createHash("sha256").update(profile).digest("hex");
    try {
      // A token that may not write has no button.
      faults.set("v1/access", (a) => ({ ...a, scopes: ["read"] }));
      const page = await open(`${middle.url}#1/nodes?node=h100-07`, "tbody tr", expected);
      await says(page, /h100-07/);
      assert.equal(await page.getByRole("button", { name: /^Record a window/ }).count(), 0);
      faults.clear();
      await page.clock.install();
      const later = () => page.clock.fastForward(3100); // the page asks again
      await page.reload();
      await page.getByRole("button", { name: "Record a window of h100-07" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("seconds").fill("2");
      await dialog.getByLabel("processes of job").selectOption("train-llm");
      await accessible(page, "fleet, the form of a window");
      // The server refuses: said in the form, which stays.
      faults.set("v1/windows", 429);
      await dialog.getByRole("button", { name: "Record" }).click();
      await dialog.getByText("Not requested: 429").waitFor();
      faults.clear();
      await dialog.getByRole("button", { name: "Record" }).click();
      await dialog.waitFor({ state: "detached" });
      await says(page, /Requested windows[\s\S]*h100-07\s+job train-llm\s+2\.00 s\s+asked\s+waits for the node's next batch/);
      // The node's collector: takes it, records, sends.
      const [taken] = await exchange([]);
      assert.equal(taken.length_s, 2);
      await exchange([{ id: taken.id, state: "recording", detail: "" }]);
      await later();
      await says(page, /recording/);
      await accessible(page, "fleet, a window that is recorded");
      await exchange([{ id: taken.id, state: "sending", detail: sha256 }]);
      await later();
      await says(page, /recorded, on its way/);
      assert.equal((await fetch(`${url}/v1/raw/${sha256}`, { method: "PUT", body: profile })).status, 204);
      await later();
      await says(page, /arrived/);
      const section = page.locator("#windows"), [saved] = await Promise.all([page.waitForEvent("download"), section.getByRole("button", { name: /^save the profile of h100-07/ }).click()]);
      assert.ok(readFileSync(await saved.path()).equals(profile));
      // Refused by the node, with its reason.
      await page.getByRole("button", { name: "Record a window of h100-07" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Record" }).click();
      await says(page, /asked/);
      const [second] = await exchange([]);
      await exchange([{ id: second.id, state: "refused", detail: "no captured process" }]);
      await later();
      await says(page, /refused\s+no captured process/);
    } finally { middle.stop(); }
  });
}
