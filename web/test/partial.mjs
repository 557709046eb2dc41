// SPDX-License-Identifier: Apache-2.0
// What each view shows of an answer that is late, refused, cut off, of another version, or thin: it
// says so in its place, leaves the rest, and is whole again when it is asked again.
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { faulty } from "./faulty.mjs";
import { data, gpt2, view } from "./pages.mjs";

const expected = /status of \d+|Failed to load resource|ERR_|cannot be shown|not whole|documents\/|EventSource/;
const text = (page) => page.locator("main").innerText();
const says = (page, pattern) => page.waitForFunction((p) => new RegExp(p).test(document.querySelector("main").innerText), pattern.source);
const section = (page, title) => page.locator("section.card", { has: page.getByRole("heading", { name: title, exact: true }) });

// Presses the buttons of that name, one after the other, until none is there.
async function again(page, name) {
  const button = page.locator("main").getByRole("button", { name }).first();
  for (let tries = 0; tries < 60 && await button.count(); ++tries) { await button.click({ timeout: 1000 }).catch(() => undefined); await page.waitForTimeout(50); }
  assert.equal(await button.count(), 0, `"${name}" is still there: ${await text(page)}`);
}

export async function ofFleet({ test, open, accessible, url }) {
  // The server fills the backlog of the demo after its begin.
  const tasks = async () => (await (await fetch(`${url}/v1/backlog`)).json()).tasks.length;
  await test("fleet, parts fail: kernels", async () => {
    const middle = await faulty(url), { faults } = middle;
    try {
      faults.set("query/top", 500);
      faults.set("query/slower", "cut");
      for (let tries = 0; tries < 100 && !(await tasks()); ++tries) await new Promise((go) => setTimeout(go, 200));
      const page = await open(middle.url, ".shortlist .name", expected);
      await says(page, /Tune these[\s\S]*nvjet[\s\S]*Got slower[\s\S]*is not whole[\s\S]*500/);
      await accessible(page, "fleet, parts fail");
      faults.clear();
      await again(page, "Ask again");
      await says(page, /1,\d\d\d h[\s\S]*rms_norm_kernel/);
      // An empty list of another version is no crash.
      faults.set("v1/backlog", () => ({ schema: "purlin.backlog/9" }));
      await page.reload();
      await says(page, /The answer to backlog has no list "tasks"[\s\S]*nvjet/);
      faults.clear();
      // Thin: little of the time recorded, few launches of a kernel.
      faults.set("query/top", (t) => { t.coverage.seen_share = 0.12; t.kernels[0].recorded = 7; return t; });
      await page.reload();
      await page.locator(".notice.warn", { hasText: "12 % of the busy time" }).waitFor();
      assert.match(await page.locator(".fleet-kernels tbody tr").first().innerText(), /≈ 2\.\d+ ms/);
      assert.doesNotMatch(await page.locator(".fleet-kernels tbody tr").nth(1).innerText(), /≈/);
      await page.locator(".fleet-kernels tbody tr").first().locator("td", { hasText: /33 %/ }).waitFor();
      await page.locator(".fleet-kernels tbody tr").first().getByText("tuned", { exact: true }).waitFor();
    } finally { middle.stop(); }
  });
  await test("fleet, parts fail: a kernel", async () => {
    const middle = await faulty(url), { faults } = middle;
    try {
      faults.set("v1/raws", 404);
      faults.set("v1/guard", () => ({}));
      faults.set("v1/caches", 500);
      faults.set("v1/backlog", "cut");
      faults.set("by=driver", 500);
      const page = await open(`${middle.url}#1/kernels/rms_norm_kernel`, ".series-chart", expected);
      for (const [title, pattern] of [["Raw profiles", /another version may lack raws/], ["Advice, stalls and counters", /another version may lack raws\/kernel/], ["Verdicts of the guard", /no list "runs"/], ["In the shared caches", /500/], ["Backlog", /not whole/], ["History", /Changes of driver: 500/]]) {
        await section(page, title).locator(".notice.warn").waitFor();
        assert.match(await section(page, title).innerText(), pattern);
      }
      assert.match(await text(page), /Shapes[\s\S]*rows=16384,cols=4096[\s\S]*v1\.9/);
      await accessible(page, "fleet, parts of a kernel fail");
      faults.clear();
      await again(page, "Ask again");
      await says(page, /Why warps wait[\s\S]*Raw profiles[\s\S]*h100-02\s+v1\.9 · train-llm/);
      // Its totals fail: the rest is still there. Few launches: its durations are hints.
      faults.set("query/top", 500);
      await page.reload();
      await says(page, /Its totals: 500[\s\S]*Shapes[\s\S]*rows=16384/);
      faults.set("query/top", (t) => { t.kernels[0].recorded = 1; return t; });
      await again(page, "Ask again");
      await says(page, /Only 1 launch of it was recorded[\s\S]*≈ 180/);
    } finally { middle.stop(); }
  });
  await test("fleet, parts fail: raw profiles", async () => {
    const middle = await faulty(url), { faults } = middle, raw = { sha256: "a".repeat(64), node: "h100-07", begin: "2026-11-25T10:00:00Z", build: "v1.9", job: "pretrain", bytes: 31e6, kept_for: "a regression" };
    try {
      faults.set("v1/raws", () => ({ raws: [raw], raws_in_all: 9 }));
      const page = await open(`${middle.url}#1/kernels/rms_norm_kernel`, ".series-chart", expected), part = section(page, "Raw profiles");
      await part.getByText("8 more").waitFor();
      faults.set("v1/raw/", 404);
      await part.getByRole("button").click();
      await part.getByText("not saved: the server keeps it no longer").waitFor();
      faults.set("v1/raw/", Buffer.from("PLPROF"));
      const [saved] = await Promise.all([page.waitForEvent("download"), part.getByRole("button").click()]);
      assert.equal(saved.suggestedFilename(), "h100-07-202611251000.plprof");
      await part.getByText("saved", { exact: true }).waitFor();
      // Nothing of a kernel's inside: why, in each case. A node's names are strangers' texts.
      faults.delete("v1/raws");
      faults.set("raws/kernel", (a) => ({ ...a, raws_in_all: 6, raws_read: 4, row: null, advice: null, stalls: null, counters: null, unread: [{ ...raw, node: "<img src=x>", why: "it has not arrived" }] }));
      await page.reload();
      const none = section(page, "Advice, stalls and counters");
      await none.getByText(/Nothing of it in the 4 newest of 6 raw profiles/).waitFor();
      assert.match(await none.innerText(), /1 raw profile could not be read:[\s\S]*<img src=x>: it has not arrived/);
      faults.set("raws/kernel", (a) => ({ ...a, raws_in_all: 0, raws_read: 0, row: null, advice: null, stalls: null, counters: null }));
      await page.reload();
      await none.getByText(/No raw profile of this time may show it/).waitFor();
      faults.set("raws/kernel", (a) => ({ ...a, stalls: null, row: { ...a.row, kernel: { ...a.row.kernel, namesakes: 2 } } }));
      await page.reload();
      await section(page, "Not in the raw profiles").getByText(/No stall samples of it in 1 raw profile\. purlin profile --stalls/).waitFor();
      assert.match(await text(page), /That profile has 2 kernels of this name/);
    } finally { middle.stop(); }
  });
  await test("fleet, parts fail: nodes, backlog, late answers", async () => {
    const middle = await faulty(url), { faults } = middle;
    try {
      faults.set("v1/nodes", 500);
      faults.set("query/stragglers", "cut");
      const page = await open(`${middle.url}#1/nodes`, "section.card", expected);
      await says(page, /Stragglers[\s\S]*not whole[\s\S]*a100-03[\s\S]*500/);
      faults.clear();
      await again(page, "Ask again");
      await says(page, /silent for 15 min[\s\S]*h100-07/);
      // The backlog asks again by itself: what it had stays, with its time.
      await page.clock.install();
      await page.getByRole("link", { name: "Backlog", exact: true }).click();
      await says(page, /possible saving/);
      faults.set("v1/backlog", 500);
      await page.clock.fastForward(16_000);
      await says(page, /500[\s\S]*This is of \d\d:\d\d\.[\s\S]*nvjet/);
      await accessible(page, "backlog, no longer new");
      // An older server has no sum of all days.
      faults.set("v1/backlog", (b) => ({ ...b, tuning_gpu_s: undefined, tuning_gpu_s_today: 5400 }));
      await again(page, "Ask again");
      await says(page, /GPU time spent\s+1\.50 h\s+1\.50 h today/);
      await page.getByRole("button", { name: "failed" }).click();
      await says(page, /no config worked/);
      assert.equal(await page.locator("tbody tr").count(), 1);
      // No answer: after some time it says so, after a minute it ends.
      faults.clear();
      faults.set("v1/nodes", "slow");
      await page.getByRole("link", { name: "Nodes", exact: true }).click();
      await says(page, /Asking the server…/);
      await page.locator(".asking").waitFor();
      await page.clock.fastForward(7_000);
      await says(page, /It takes long/);
      await page.clock.fastForward(60_000);
      await says(page, /No answer to nodes within 60 s/);
      await page.clock.resume();
      faults.clear();
      // A busy server is asked again without a word.
      faults.set("v1/nodes", 503);
      await page.getByRole("button", { name: "Ask again" }).click();
      await page.waitForTimeout(200);
      faults.clear();
      await says(page, /silent for 15 min/);
    } finally { middle.stop(); }
  });
}

export async function ofViews({ test, open, accessible, folder, file, guardFiles, captured }) {
  await test("a file that was cut off says so", async () => {
    const whole = readFileSync(new URL(file), "utf8"), path = join(folder, "cut.html");
    writeFileSync(path, whole.slice(0, whole.length * 0.6));
    const page = await open(`file://${path}`, "#purlin-begin");
    assert.match(await page.locator("body").innerText(), /the file was cut off/);
  });
  await test("parts fail: a profile, served", async () => {
    const server = await view([gpt2("sdpa")]), middle = await faulty(server.url), { faults } = middle;
    try {
      faults.set("advice.json", 500);
      const page = await open(middle.url, ".kernels .grid-row", expected);
      await says(page, /This page is not whole: documents\/advice\.json: 500/);
      faults.clear();
      faults.set("more.js", "cut");
      await page.goto(`${middle.url}#1/timeline`);
      await says(page, /This view cannot be shown/);
      await accessible(page, "a view that cannot be shown");
      faults.clear();
      faults.set("timeline.bin", "cut");
      await page.getByRole("button", { name: "Try again" }).click();
      await says(page, /documents\/timeline\.bin: the answer is not whole/);
      faults.clear();
      await again(page, "Try again");
      await page.waitForFunction(() => window.purlinFrame?.drawn > 10);
      // What if: the timeline stays without the overlay.
      faults.set("applied0.bin", 500);
      await page.locator(".tl-tools select").selectOption({ index: 1 });
      await says(page, /The timeline after the change cannot be shown/);
      assert.equal(await page.locator(".tl-label.after").count(), 0);
      faults.clear();
      await again(page, "Try again");
      await page.locator(".tl-label.after").first().waitFor();
      await server.stop();
      await page.goto(`${middle.url}`).catch(() => undefined);
    } finally { middle.stop(); server.stop(); }
  });
  await test("parts fail: what other documents know of a kernel", async () => {
    if (!captured) return;
    const server = await view([captured, ...guardFiles]), middle = await faulty(server.url), { faults } = middle;
    try {
      faults.set("history.json", 500);
      faults.set("guard.json", "cut");
      const page = await open(`${middle.url}#1/kernels?file=0`, ".kernels .grid-row", expected);
      await page.getByRole("link", { name: "softmax", exact: true }).click();
      await says(page, /2 documents of this page could not be read[\s\S]*Facts/);
      assert.doesNotMatch(await text(page), /Not in this page/);
      await accessible(page, "kernel, documents missing");
      faults.clear();
      await again(page, "Try again");
      await page.getByRole("heading", { name: "History over builds" }).waitFor();
      await page.getByRole("heading", { name: "Verdicts of the guard" }).waitFor();
    } finally { middle.stop(); server.stop(); }
  });
  await test("parts fail: a tuning run, live", async () => {
    const lines = readFileSync(data("page/softmax_journal.jsonl"), "utf8").trimEnd().split("\n"), session = join(folder, "lossy"), journal = join(session, "journal.jsonl");
    const write = (from, to) => appendFileSync(journal, lines.slice(from, to).join("\n") + "\n");
    mkdirSync(session);
    write(0, 1);
    const server = await view([session]), middle = await faulty(server.url), { faults } = middle;
    const count = (page, n) => page.waitForFunction((wanted) => [...document.querySelectorAll(".stat")].some((s) => s.innerText.split("\n")[0] === "evaluations" && s.innerText.split("\n")[1] === wanted), String(n));
    try {
      // A server that sends no events: what there was stays, and the connection is tried again.
      faults.set("/events", 404);
      const page = await open(middle.url, ".view.tuning", expected);
      await says(page, /No evaluation yet/);
      await page.getByText(/^connection lost at/).waitFor();
      await accessible(page, "tuning, connection lost");
      faults.clear();
      write(1, 41);
      await page.getByText("live", { exact: true }).waitFor();
      await count(page, 40);
      // The connection ends in the midst: nothing is lost, nothing is there twice.
      middle.drop();
      write(41, 61);
      await count(page, 60);
      await page.getByText("live", { exact: true }).waitFor();
      await server.stop();
      await page.getByText(/^connection lost at/).waitFor();
      await count(page, 60);
    } finally { middle.stop(); server.stop(); }
  });
}
