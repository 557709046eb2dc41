// SPDX-License-Identifier: Apache-2.0
// Builds the page: node build.mjs [DIR]. Writes page.js, fleet.js, page.css and sources.sha256 to dist/ or DIR.
// The same sources and lock give the same bytes; tests/suites/page_bundle.sh checks that.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(root, "dist");
mkdirSync(out, { recursive: true });

// `sha256sum` of this list in web/ must be the recorded one: a check that needs no npm.
export function sources() {
  const files = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)));
  return [...files, "package.json", "package-lock.json", "build.mjs", "tsconfig.json"].sort();
}
const list = sources()
  .map((file) => `${createHash("sha256").update(readFileSync(join(root, file))).digest("hex")}  ${file}\n`)
  .join("");

const { build } = await import("esbuild");
const shared = {
  absWorkingDir: root, bundle: true, minify: true, legalComments: "none", charset: "utf8",
  target: ["es2021", "chrome100", "firefox113", "safari16.4"], logLevel: "warning",
};
for (const [entry, file] of [["src/main.tsx", "page.js"], ["src/fleet/main.tsx", "fleet.js"]])
  await build({
    ...shared, entryPoints: [entry], outfile: join(out, file), format: "iife",
    jsx: "automatic", jsxImportSource: "preact", define: { "process.env.NODE_ENV": '"production"' },
  });
await build({ ...shared, entryPoints: ["src/style.css"], outfile: join(out, "page.css") });
writeFileSync(join(out, "sources.sha256"), list);
