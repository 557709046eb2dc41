// SPDX-License-Identifier: Apache-2.0
// Makes the pages that tests and screenshots look at, with the real binary and real captures of
// tests/data; a tuning run of a recorded space, and a comparison of recorded samples.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const purlin = process.env.PURLIN ?? join(root, "build/ci/bin/purlin");
export const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const data = (name) => join(root, "tests/data", name);

export const run = (...args) => execFileSync(purlin, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"], env: environment });
let environment = process.env;
function allow(args, codes) {
  try { return run(...args); } catch (failed) { if (codes.includes(failed.status)) return failed.stdout; throw new Error(`${args.join(" ")}: ${failed.stderr}`); }
}

// A command of an arm: each process prints times with a noise of its own.
function arm(path, times) {
  const rows = Object.entries(times).map(([kernel, time]) => `f = ${time} * (1 + 0.02 * rand()); for (i = 0; i < 5; ++i) printf "0,${kernel},%.3f\\n", f * (1 + 0.004 * rand());`);
  writeFileSync(path, `awk -v seed="$(od -An -N3 -tu4 /dev/urandom)" 'BEGIN { srand(seed); print "process,kernel,time_us"; ${rows.join(" ")} }'\n`);
}

// 36 nightly builds; softmax gets slower at the 20th, with a new driver at the 28th.
function history(path) {
  let state = 7;
  const random = () => { state = (1103515245 * state + 12345) % 2147483648; return state / 2147483648; };
  let text = "";
  for (let night = 0; night < 36; ++night) {
    const driver = night < 28 ? "570.86.15" : "580.159.04", times = { gemm: night < 28 ? 2810e3 : 2790e3, softmax: night < 20 ? 412e3 : 447e3, layernorm: 96e3 };
    text += JSON.stringify({
      schema: "purlin.history/1", tool_version: "0.1.0", environment: {
        devices: [{ id: "cuda:0", name: "NVIDIA H200", arch: "sm_90", driver, toolkit: "NVRTC 13.0" }], host: "bench7", build: `b${1000 + night}`,
        recorded_at: new Date(Date.UTC(2026, 8, 1 + night, 2)).toISOString().replace(".000", ""),
      }, suite: "nightly", items: Object.entries(times).map(([kernel, ns]) => ({ kernel, shape: "M=4096,N=4096", variant: "", processes: Array.from({ length: 8 }, () => ns * (1 + 0.012 * random())) })),
    }) + "\n";
  }
  writeFileSync(path, text);
}

export function makePages(folder) {
  mkdirSync(folder, { recursive: true });
  environment = { ...process.env, HOME: folder, XDG_CACHE_HOME: join(folder, "cache"), XDG_STATE_HOME: join(folder, "state"), PURLIN_CACHE: join(folder, "configs") };
  const at = (name) => join(folder, name), pages = {};
  const trace = (name) => data(`traces/${name}`);
  run("report", "--html", (pages.train = at("train.html")), process.env.PURLIN_TRACE ?? data("timeline/transformer_h200.json.gz"));
  run("diff", "--html", (pages.compare = at("compare.html")), trace("kineto_h200_decode_before.json.gz"), trace("kineto_h200_decode_after.json.gz"));
  run("report", "--html", (pages.fusion = at("fusion.html")), trace("kineto_h200_fusion_before.json.gz"));
  run("report", "--html", (pages.shapes = at("shapes.html")), process.env.PURLIN_TRACE ?? trace("kineto_h200_transformer.json.gz"));
  run("report", "--html", (pages.counters = at("counters.html")), trace("kineto_a100_alexnet_counters.json.gz"));
  run("tune", "--device", `replay:${process.env.PURLIN_SPACE ?? data("spaces/convolution_milo-A100.excerpt.json.gz")}`, "--budget", "220", "--seed", "3", "--html", (pages.tuning = at("tuning.html")));
  arm(at("a.sh"), { gemm: 2810, softmax: 412, layernorm: 96, attention: 730, dropout: 31 });
  arm(at("b.sh"), { gemm: 2812, softmax: 447, layernorm: 89, attention: 731, dropout: 31.1 });
  writeFileSync(at("verdict.json"), allow(["guard", "compare", "--commands", `sh ${at("a.sh")}`, `sh ${at("b.sh")}`, "--journal", at("pairs.jsonl"), "--json", "--no-profiles"], [0, 1, 3]));
  // A real capture of this machine's OpenCL device, where the build has the sample.
  const sample = join(dirname(purlin), "purlin-sample");
  if (existsSync(sample)) {
    const kernel = (name) => join(root, "kernels", name, name + ".toml");
    run("profile", "--full", "-o", at("run.plprof"), "--", sample, "--device", "opencl:0", "--steps", "3", kernel("softmax"), kernel("transpose"));
    run("report", "--html", (pages.captured = at("captured.html")), at("run.plprof"));
  }
  history(at("history.jsonl"));
  const effect = (ratio) => ({ ratio, low: ratio - 0.01, high: ratio + 0.01, pairs: 12 });
  writeFileSync(at("bisect.json"), JSON.stringify({
    schema: "purlin.guard-bisect/1", tool_version: "0.1.0", environment: {}, outcome: "culprit", message: "", item: { kernel: "softmax", shape: "", variant: "" }, whole: effect(1.08), culprit: "4f1c2d3e5a6b", candidates: ["4f1c2d3e5a6b"],
    confirmation: { verdict: "regression", reason: "", effect: effect(1.081), pairs: 12 }, steps: [{ commit: "9a8b7c6d5e4f", result: "good", reason: "not slower", effect: effect(1.001) }, { commit: "4f1c2d3e5a6b", result: "bad", reason: "slower", effect: effect(1.079) }], seconds: 61,
  }));
  return { pages, guardFiles: [at("verdict.json"), at("pairs.jsonl"), at("history.jsonl"), at("bisect.json")] };
}

// `purlin view` or `purlin serve`, until it is stopped.
export const view = (files) => started(["view", "--no-open", "--json", ...files]);
export const serve = (folder) => started(["serve", "--listen", "127.0.0.1:0", "--data", join(folder, "served"), "--json"]);
async function started(args) {
  const child = spawn(purlin, args, { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const piece of child.stdout) { text += piece; try { return { url: JSON.parse(text).url, stop: () => child.kill("SIGINT") }; } catch { /* not yet whole */ } }
  throw new Error(`purlin ${args[0]} ended: ${text}`);
}

export async function browser() {
  const { chromium: engine } = await import("playwright-core");
  return engine.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"] });
}
