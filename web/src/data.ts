// SPDX-License-Identifier: Apache-2.0
// The documents of the page: in script elements of this file, or fetched from the server that gave
// the shell. Heads are JSON; arrays are views into one buffer, unpacked when first asked for.

import { reason } from "./format";

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
index.title ??= "";
index.files ??= [];
index.documents ??= [];

// By a server, not from a file.
export const served = index.documents.some((entry) => entry.path !== undefined);

const heads = new Map<string, Promise<Json>>();
const buffers = new Map<string, Promise<Arrays>>();

function entryOf(name: string): Entry | undefined {
  return index.documents.find((entry) => entry.name === name);
}

// The answer of the server that gave the page. Its failures say what to do.
async function get<T>(path: string, read: (response: Response) => Promise<T>): Promise<T> {
  const response = await fetch(path, { cache: "no-store" }).catch(() => { throw new Error(`${path}: the server does not answer. It may have been stopped: start purlin view again, and load this page`); });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`.trim());
  return read(response).catch((error) => { throw new Error(`${path}: the answer is not whole (${reason(error)})`); });
}
// What failed is asked for again the next time.
export function once<Key, T>(kept: Map<Key, Promise<T>>, name: Key, load: () => Promise<T>): Promise<T> {
  let found = kept.get(name);
  if (!found) {
    found = load();
    kept.set(name, found);
    if (served) found.catch(() => kept.delete(name));
  }
  return found;
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
  return once(heads, name, async () => (entry.path === undefined ? JSON.parse(element(name)!.textContent!) : get(entry.path + ".json", (r) => r.json())));
}

// Runs the rest of the code, once: its element's text is inert until then, and the policy knows it.
let more: Promise<void> | undefined;
export function moreScript(): Promise<void> {
  return more ??= (async () => {
    const script = document.createElement("script");
    script.textContent = element("more")?.textContent ?? await get("more.js", (r) => r.text());
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
  if (path !== undefined) return get(path + ".bin", (r) => r.arrayBuffer());
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
  return once(buffers, name, async () => {
    const [json, buffer] = await Promise.all([head(name), unpack(name)]), out: Arrays = {};
    for (const [key, place] of Object.entries<Json>(json.arrays ?? {})) {
      const Type = { f64: Float64Array, u32: Uint32Array, u8: Uint8Array }[place.type as "f64"];
      if (!Type) continue;
      if (place.at + Type.BYTES_PER_ELEMENT * place.count > buffer.byteLength) throw new Error(`${name}: the data end before ${key}. What it came from was cut off`);
      out[key] = new Type(buffer, place.at, place.count);
    }
    return out;
  });
}
