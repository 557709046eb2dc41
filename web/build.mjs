// SPDX-License-Identifier: Apache-2.0
// Builds the page: node build.mjs [DIR]. Writes page.js, more.js, fleet.js, page.css and sources.sha256 to dist/ or DIR.
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
const script = {
  ...shared, format: "iife", jsx: "automatic", jsxImportSource: "preact", define: { "process.env.NODE_ENV": '"production"' },
};

// page.js has the first view and hands its modules to more.js, which has the other views.
const entry = "src/main.tsx";
const first = await build({ ...script, entryPoints: [entry], write: false, metafile: true });
const modules = Object.keys(first.metafile.inputs).filter((file) => file !== entry).sort();
const registry = modules.map((file, i) => `import * as m${i} from "./${file}";`).join("\n")
  + `\nglobalThis.purlinModules = {${modules.map((file, i) => `"${file}": m${i}`).join(", ")}};\nimport "./${entry}";\n`;
await build({ ...script, stdin: { contents: registry, resolveDir: root, loader: "ts" }, outfile: join(out, "page.js") });
const fromPage = {
  name: "modules of page.js",
  setup(building) {
    building.onResolve({ filter: /./ }, async (args) => {
      if (args.pluginData === "asked" || args.kind === "entry-point") return undefined;
      const { path } = await building.resolve(args.path, { kind: args.kind, resolveDir: args.resolveDir, importer: args.importer, pluginData: "asked" });
      const file = relative(root, path);
      return modules.includes(file) ? { path: `${file}.cjs`, namespace: "of-page", pluginData: file } : undefined;
    });
    building.onLoad({ filter: /./, namespace: "of-page" }, ({ pluginData }) => ({ contents: `module.exports = globalThis.purlinModules["${pluginData}"];` }));
  },
};
await build({ ...script, entryPoints: ["src/more.tsx"], outfile: join(out, "more.js"), plugins: [fromPage] });
await build({ ...script, entryPoints: ["src/fleet/main.tsx"], outfile: join(out, "fleet.js") });
await build({ ...shared, entryPoints: ["src/style.css"], outfile: join(out, "page.css") });
writeFileSync(join(out, "sources.sha256"), list);
