// SPDX-License-Identifier: Apache-2.0
// The documents of the page: in script elements of this file, or fetched from the server that gave
// the shell. Heads are JSON; arrays are views into one buffer, unpacked when first asked for.

export type Json = any;
export type Arrays = Record<string, Float64Array | Uint32Array | Uint8Array>;

interface Entry { name: string; schema: string; bytes: number; path?: string }
export interface FileInfo {
  path: string; command: string; source: string; build: string; recorded_at: string; devices: string[];
}
export interface Index {
  schema: string; tool_version: string; title: string; view: string; files: FileInfo[]; documents: Entry[];
}

const element = (id: string) => document.getElementById("purlin-" + id);

export const index: Index = JSON.parse(element("page")?.textContent ?? "{}");
index.files ??= [];
index.documents ??= [];

// By a server, not from a file.
export const served = index.documents.some((entry) => entry.path !== undefined);

const heads = new Map<string, Promise<Json>>();
const buffers = new Map<string, Promise<Arrays>>();

function entryOf(name: string): Entry | undefined {
  return index.documents.find((entry) => entry.name === name);
}

async function get(path: string): Promise<Response> {
  const response = await fetch(path, { cache: "no-store" });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  return response;
}

// Names of one kind, "report" and "report-1", in order.
export function names(kind: string): string[] {
  return index.documents.map((e) => e.name).filter((name) => name.replace(/-\d+$/, "") === kind);
}
export const has = (kind: string) => names(kind).length > 0;
// Of a file of the page: "report", "report-1".
export const numbered = (kind: string, file: number) => (file === 0 ? kind : `${kind}-${file}`);

// The head of a document; undefined where the page has none of that name.
export function head(name: string): Promise<Json | undefined> {
  const entry = entryOf(name);
  if (!entry) return Promise.resolve(undefined);
  let found = heads.get(name);
  if (!found) {
    found = entry.path === undefined
      ? Promise.resolve().then(() => JSON.parse(element(name)!.textContent!))
      : get(entry.path + ".json").then((r) => r.json());
    heads.set(name, found);
  }
  return found;
}

// Runs the rest of the code, once: its element's text is inert until then, and the policy knows it.
let more: Promise<void> | undefined;
export function moreScript(): Promise<void> {
  return more ??= (async () => {
    const script = document.createElement("script");
    script.textContent = element("more")?.textContent ?? await get("more.js").then((r) => r.text());
    document.head.append(script);
  })().catch((error) => { more = undefined; throw error; });
}

function fromBase64(text: string): Uint8Array {
  const modern = (Uint8Array as any).fromBase64;
  if (modern) return modern.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpack(name: string): Promise<ArrayBuffer> {
  const path = entryOf(name)!.path;
  if (path !== undefined) return get(path + ".bin").then((r) => r.arrayBuffer());
  const parts: Uint8Array[] = [];
  for (let i = 0; ; ++i) {
    const chunk = element(`${name}.${i}`);
    if (!chunk) break;
    parts.push(fromBase64(chunk.textContent!));
    chunk.remove(); // the text is not needed a second time
  }
  const packed = new Blob(parts as BlobPart[]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

export function arrays(name: string): Promise<Arrays> {
  let found = buffers.get(name);
  if (!found) {
    found = Promise.all([head(name), unpack(name)]).then(([json, buffer]) => {
      const out: Arrays = {};
      for (const [key, place] of Object.entries<Json>(json.arrays ?? {})) {
        const Type = { f64: Float64Array, u32: Uint32Array, u8: Uint8Array }[place.type as "f64"];
        if (Type) out[key] = new Type(buffer, place.at, place.count);
      }
      return out;
    });
    buffers.set(name, found);
  }
  return found;
}
