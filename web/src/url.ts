// SPDX-License-Identifier: Apache-2.0
// The place in the page, as the URL's fragment: #VERSION/VIEW/ARGUMENT?key=value. Older versions are
// upgraded step by step, so that links that were copied once keep opening (test/urls.json).
import { signal } from "@preact/signals";

export interface Place { view: string; arg: string; query: Record<string, string> }
export const kVersion = 1;

// Version 0 was `#kernel=ID` of the report of 2026; "" is no place at all.
const upgraders: Record<number, (hash: string) => string> = {
  0: (hash) => {
    const kernel = /(?:^|&)kernel=([^&]*)/.exec(hash);
    return kernel ? `1/kernels/${kernel[1]}` : "1/";
  },
};

export function parse(fragment: string): Place {
  let hash = fragment.replace(/^#/, "");
  let version = Number(/^(\d+)\//.exec(hash)?.[1] ?? 0);
  for (; version < kVersion && upgraders[version]; ++version) hash = upgraders[version](hash);
  const [path, search = ""] = hash.split("?");
  const [, view = "", ...rest] = path.split("/");
  const query: Record<string, string> = {};
  for (const [key, value] of new URLSearchParams(search)) query[key] = value;
  return { view, arg: safely(rest.join("/")), query };
}
function safely(text: string): string {
  try { return decodeURIComponent(text); } catch { return text; }
}

export function print(place: Place): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(place.query)) if (value !== "") search.set(key, value);
  const query = search.toString();
  return `#${kVersion}/${place.view}${place.arg ? "/" + encodeURIComponent(place.arg) : ""}${query ? "?" + query : ""}`;
}

export const place = signal<Place>(parse(location.hash));
addEventListener("hashchange", () => { place.value = parse(location.hash); });

// What belongs to the page and not to a view stays when the view changes.
const kept = (query: Record<string, string>): Record<string, string> => (query.file ? { file: query.file } : {});
export const link = (view: string, arg = "", query: Record<string, string> = {}) =>
  print({ view, arg, query: { ...kept(place.value.query), ...query } });
export function go(view: string, arg = "", query: Record<string, string> = {}) {
  location.hash = link(view, arg, query);
}
// Changes the present place, without a new entry in the history.
export function adjust(query: Record<string, string>) {
  const next = { ...place.value, query: { ...place.value.query, ...query } };
  for (const key of Object.keys(next.query)) if (next.query[key] === "") delete next.query[key];
  history.replaceState(null, "", print(next));
  place.value = next;
}
