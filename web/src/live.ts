// SPDX-License-Identifier: Apache-2.0
// Tuning sessions under way: the server's events for all of them, over one connection for all tabs
// of this page. The tab that holds the lock has it and tells the others.
import { signal, type Signal } from "@preact/signals";
import { head, names, served, type Json } from "./data";

interface News { document: string; first: number; evaluations: Json[]; end: Json }
const kept = new Map<string, Signal<Json>>();
const waiting = new Map<string, Json>(); // newer than what is shown
export const connection = signal<"" | "open" | "lost">("");
let source: EventSource | undefined, shown = 0;

const newest = (name: string) => waiting.get(name) ?? kept.get(name)!.value;
const counts = () => Object.fromEntries([...kept.keys()].map((name) => [name, newest(name).evaluations.length]));

// A view is drawn at most twice a second.
function show() {
  shown = 0;
  for (const [name, doc] of waiting) kept.get(name)!.value = doc;
  waiting.clear();
}
function take(news: News) {
  if (!kept.has(news.document)) return;
  const doc = newest(news.document);
  if (news.first > doc.evaluations.length) return; // what is between comes with the answer to a greeting
  waiting.set(news.document, { ...doc, evaluations: [...doc.evaluations.slice(0, news.first), ...news.evaluations], end: news.end });
  if (!shown) shown = window.setTimeout(show, 500);
}

async function start() {
  const tabs = "BroadcastChannel" in window ? new BroadcastChannel("purlin-events") : undefined;
  const open = () => new Promise<never>(() => {
    source = new EventSource("events?" + new URLSearchParams(Object.entries(counts()).map(([name, n]) => [name, String(n)])));
    const say = (state: "open" | "lost") => { connection.value = state; tabs?.postMessage({ state }); };
    source.onopen = () => say("open");
    source.onerror = () => say("lost");
    source.onmessage = (message) => { const news = JSON.parse(message.data); take(news); tabs?.postMessage({ news }); };
  });
  if (tabs) tabs.onmessage = ({ data }) => {
    if (data.news) take(data.news);
    else if (data.state) connection.value = data.state;
    else if (source) {
      tabs.postMessage({ state: connection.value });
      for (const name of kept.keys()) { const doc = newest(name), first = Math.min(data.counts[name] ?? 0, doc.evaluations.length); tabs.postMessage({ news: { document: name, first, evaluations: doc.evaluations.slice(first), end: doc.end } }); }
    }
  };
  tabs?.postMessage({ counts: counts() });
  if (tabs && navigator.locks) void navigator.locks.request("purlin-events", open); else void open();
}

let started: Promise<void> | undefined;
// The document of a session, which grows while it is under way.
export async function followed(name: string): Promise<Signal<Json>> {
  await (started ??= (async () => {
    for (const each of names("tune")) { const doc = await head(each); if (doc.of_journal) kept.set(each, signal(doc)); }
    if (kept.size && served) await start();
  })());
  return kept.get(name) ?? signal(await head(name));
}
