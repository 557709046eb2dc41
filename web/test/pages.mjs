// SPDX-License-Identifier: Apache-2.0
// Makes the pages that tests and screenshots look at, with the real binary and real captures of
// tests/data: GPT-2 in training, a tuning run, a history and a verdict of an H100 (tests/data/page),
// traces of PyTorch, and a capture and a tuning run of this machine's OpenCL device.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const purlin = process.env.PURLIN ?? join(root, "build/ci/bin/purlin");
export const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
export const data = (name) => join(root, "tests/data", name);

export const run = (...args) => execFileSync(purlin, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"], env: environment });
let environment = process.env;
// `evaluations`: of the tuning run of this machine. Each is compiled anew, which takes PoCL seconds.
export function makePages(folder, evaluations = 2) {
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
  run("report", "--html", (pages.gpt2 = at("gpt2.html")), gpt2("sdpa"));
  // A real capture of this machine's OpenCL device, with a winner for one of its kernels in the cache,
  // and the history and verdict of kernels of these names.
  const sample = join(dirname(purlin), "purlin-sample");
  if (existsSync(sample)) {
    const kernel = (name) => join(root, "kernels", name, name + ".toml");
    run("profile", "--full", "--build", "b113", "-o", at("run.plprof"), "--", sample, "--device", "opencl:0", "--steps", "3", kernel("softmax"), kernel("transpose"));
    run("tune", kernel("softmax"), "--device", "opencl:0", "--shape", "small", "--budget", String(evaluations), "--seed", "1");
    run("report", "--html", (pages.captured = at("captured.html")), at("run.plprof"));
  }
  // Not of a measurement: the answer of a bisect.
  const effect = (ratio) => ({ ratio, low: ratio - 0.01, high: ratio + 0.01, pairs: 12 });
  writeFileSync(at("bisect.json"), JSON.stringify({
    schema: "purlin.guard-bisect/1", tool_version: "0.1.0", environment: {}, outcome: "culprit", message: "", item: { kernel: "softmax", shape: "", variant: "" }, whole: effect(1.08), culprit: "4f1c2d3e5a6b", candidates: ["4f1c2d3e5a6b"],
    confirmation: { verdict: "regression", reason: "", effect: effect(1.081), pairs: 12 }, steps: [{ commit: "9a8b7c6d5e4f", result: "good", reason: "not slower", effect: effect(1.001) }, { commit: "4f1c2d3e5a6b", result: "bad", reason: "slower", effect: effect(1.079) }], seconds: 61,
  }));
  // Nor this one: a matrix of two factors.
  const item = { kernel: "softmax", shape: "R=1024" }, level = (build, driver, p50_ns) => ({ cell: `build=${build} driver=${driver}`, source: "here", problem: "", failures: [], items: [{ ...item, p50_ns, rounds: 12 }] });
  writeFileSync(at("matrix.json"), JSON.stringify({
    schema: "purlin.guard-matrix/1", tool_version: "0.1.0", environment: {}, matrix: "upgrade", factors: [{ name: "build", kind: "code", levels: ["v1", "v2"] }, { name: "driver", kind: "driver", levels: ["570", "580"] }],
    cells: [level("v1", "570", 1000), level("v2", "570", 1120), level("v1", "580", 1001), level("v2", "580", 1122)],
    items: [{ ...item, variant: "", ratio: 1.122, low: 1.118, high: 1.126, cause: "code", reason: "build explains 99 % of the change", interaction: 0.001, shares: [{ factor: "build", ratio: 1.121, low: 1.117, high: 1.125, p_value: 0.001, paired: true }, { factor: "driver", ratio: 1.001, low: 0.998, high: 1.004, p_value: 0.6, paired: true }] }],
  }));
  const guardFiles = ["verdict.json", "pairs.jsonl", "nightly.jsonl"].map((name) => data(`page/${name}`));
  return { pages, guardFiles, bisect: at("bisect.json"), matrix: at("matrix.json"), captured: existsSync(at("run.plprof")) ? at("run.plprof") : null };
}
export const gpt2 = (build) => data(`page/gpt2_${build}.plprof`);

// `purlin view` or `purlin serve`, until it is stopped.
export const view = (files) => started(["view", "--no-open", "--json", ...files]);
export const serve = (...args) => started(["serve", "--listen", "127.0.0.1:0", "--json", ...args]);
const children = new Set();
process.on("exit", () => { for (const child of children) child.kill("SIGKILL"); });
async function started(args) {
  const child = spawn(purlin, args, { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  const ended = new Promise((done) => child.on("exit", done));
  let text = "";
  for await (const piece of child.stdout) { text += piece; try { return { url: JSON.parse(text).url, stop: () => { child.kill("SIGINT"); return ended; } }; } catch { /* not yet whole */ } }
  throw new Error(`purlin ${args[0]} ended: ${text}`);
}

export async function browser() {
  const { chromium: engine } = await import("playwright-core");
  return engine.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"] });
}
