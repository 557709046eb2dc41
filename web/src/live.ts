// SPDX-License-Identifier: Apache-2.0
// Tuning sessions under way: the server's events for all of them, over one connection for all tabs
// of this page. The tab that holds the lock has it and tells the others.
import { signal, type Signal } from "@preact/signals";
import { head, names, served, type Json } from "./data";

interface News { document: string; first: number; evaluations: Json[]; end: Json }
const kept = new Map<string, Signal<Json>>();
const waiting = new Map<string, Json>(); // newer than what is shown
export const connection = signal<"" | "open" | "lost">(""), since = signal(0); // since: of the present state
let source: EventSource | undefined, shown = 0;
const kLeastWaitMs = 1e3, kMostWaitMs = 15e3;

const newest = (name: string) => waiting.get(name) ?? kept.get(name)!.value;
const counts = () => Object.fromEntries([...kept.keys()].map((name) => [name, newest(name).evaluations.length]));

// A view is drawn at most twice a second.
function show() {
  shown = 0;
  for (const [name, doc] of waiting) kept.get(name)!.value = doc;
  waiting.clear();
}
// False where evaluations before these are missing.
function take(news: News): boolean {
  if (!kept.has(news.document)) return true;
  const doc = newest(news.document);
  if (news.first > doc.evaluations.length) return false;
  waiting.set(news.document, { ...doc, evaluations: [...doc.evaluations.slice(0, news.first), ...news.evaluations], end: news.end });
  if (!shown) shown = window.setTimeout(show, 500);
  return true;
}

function read(text: string): News | undefined {
  try { const news = JSON.parse(text); return Array.isArray(news.evaluations) ? news : undefined; } catch { return undefined; }
}

async function start() {
  const tabs = "BroadcastChannel" in window ? new BroadcastChannel("purlin-events") : undefined;
  const set = (state: "open" | "lost") => { if (connection.value !== state) since.value = Date.now(); connection.value = state; };
  const say = (state: "open" | "lost") => { set(state); tabs?.postMessage({ state }); };
  let wait = kLeastWaitMs;
  const connect = () => {
    source = new EventSource("events?" + new URLSearchParams(Object.entries(counts()).map(([name, n]) => [name, String(n)])));
    source.onopen = () => { wait = kLeastWaitMs; say("open"); };
    const later = () => { source!.close(); setTimeout(connect, wait); wait = Math.min(2 * wait, kMostWaitMs); };
    // A browser asks again by itself after a loss, but never after an answer that is no stream. After
    // an event that was cut off, the question says again what is known here.
    source.onerror = () => { say("lost"); if (source!.readyState === EventSource.CLOSED) later(); };
    source.onmessage = (message) => { const news = read(message.data); if (news && take(news)) tabs?.postMessage({ news }); else later(); };
  };
  const open = () => new Promise<never>(connect);
  if (tabs) tabs.onmessage = ({ data }) => {
    if (data.news) take(data.news);
    else if (data.state) set(data.state);
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
  await (started ??= followAll().catch((error) => { started = undefined; throw error; }));
  return kept.get(name) ?? signal(await head(name));
}
async function followAll() {
  for (const each of names("tune")) { const doc = await head(each); if (doc.of_journal) kept.set(each, signal(doc)); }
  if (kept.size && served) await start();
}
