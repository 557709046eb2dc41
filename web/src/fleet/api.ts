// SPDX-License-Identifier: Apache-2.0
// Questions to the server that gave the page, with the token that the user gave. At most kAtOnce
// are under way: the server answers six of all users at a time. One that is busy is asked again.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { reason } from "../format";

// Status 0: the server was not reached. kNotWhole: it was, and its answer cannot be used.
export const kNotWhole = 1;
export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

const kept = "purlin-token", kAtOnce = 3, kTries = 6, kMostMs = 60e3;
function stored(): string { try { return sessionStorage.getItem(kept) ?? ""; } catch { return ""; } }
export const token = signal(stored());
export function setToken(value: string) {
  try { sessionStorage.setItem(kept, value); } catch { /* for this page only */ }
  token.value = value;
}

let under = 0;
const queue: (() => void)[] = [];
export const asking = signal(0);
async function place(): Promise<void> {
  ++asking.value;
  if (under >= kAtOnce) await new Promise<void>((go) => queue.push(go));
  ++under;
}
function leave() { --asking.value; --under; queue.shift()?.(); }
const pause = (ms: number) => new Promise((go) => setTimeout(go, ms));

// The list that a view draws. An answer without it, and without a reason, is of another version.
const lists: Record<string, string> = { "query/top": "kernels", "query/roofs": "roofs", windows: "windows", access: "scopes", "query/history": "points", "query/slower": "kernels", "query/compare": "kernels", "query/stragglers": "stragglers", "query/coverage": "cells", "query/values": "values", backlog: "tasks", nodes: "nodes", raws: "raws", "raws/kernel": "unread", guard: "runs", caches: "caches" };
function checked(path: string, body: any): any {
  const list = lists[path];
  if (list && !body?.refused && !Array.isArray(body?.[list])) throw new Refused(kNotWhole, `The answer to ${path} has no list "${list}": the server is of another version than this page. Load the page again`);
  return body;
}

interface Reply { response: Response; body: any; cut?: string }
export const authorised = (): Record<string, string> => (token.value ? { Authorization: `Bearer ${token.value}` } : {});
async function reply(path: string, search: URLSearchParams, cancel: AbortSignal): Promise<Reply> {
  const own = new AbortController(), stop = () => own.abort();
  let late = false;
  const timer = setTimeout(() => { late = true; stop(); }, kMostMs);
  cancel.addEventListener("abort", stop);
  try {
    cancel.throwIfAborted();
    const response = await fetch(`v1/${path}?${search}`, { signal: own.signal, headers: authorised() }).catch((error) => { throw late ? error : new Refused(0, `The server cannot be reached (${reason(error)})`); });
    try { return { response, body: await response.json() }; } catch (error) { if (late) throw error; return { response, body: {}, cut: reason(error) }; }
  } catch (error) {
    throw late ? new Refused(kNotWhole, `No answer to ${path} within ${kMostMs / 1e3} s: ask for less time, or again later`) : error;
  } finally { clearTimeout(timer); cancel.removeEventListener("abort", stop); }
}

export async function get(path: string, query: Record<string, string>, cancel: AbortSignal): Promise<any> {
  const search = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== ""));
  for (let tried = 1; ; ++tried) {
    await place();
    const { response, body, cut } = await reply(path, search, cancel).finally(leave);
    if (response.ok && cut) throw new Refused(kNotWhole, `The answer to ${path} is not whole (${cut})`);
    if (response.ok) return checked(path, body);
    const why = String(body.error?.message ?? `${response.status} ${response.statusText}`.trim());
    if ([404, 405, 501].includes(response.status)) throw new Refused(response.status, `${why}. A server of another version may lack ${path}`);
    if (![429, 503].includes(response.status) || tried === kTries) throw new Refused(response.status, why);
    await pause(Math.min(2000, 1000 * (Number(response.headers.get("Retry-After")) || 1)) * (0.5 + Math.random()));
  }
}

// A request that changes something: it is sent once.
export async function post(path: string, query: Record<string, string>): Promise<any> {
  const response = await fetch(`v1/${path}?${new URLSearchParams(query)}`, { method: "POST", headers: authorised() }).catch((error) => { throw new Refused(0, `The server cannot be reached (${reason(error)})`); });
  const body: any = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, String(body.error?.message ?? `${response.status} ${response.statusText}`.trim()));
  return body;
}

// `at`: when the data came.
export interface Answer { data?: any; error?: unknown; at?: number; again?: () => void }
// The newest answer; an older question is cancelled. "": no question. Meanwhile the answer to the
// question before it stays. If the same one is asked again and fails, its answer stays with the error.
// `turn`: asks again when it changes.
export function useAnswer(path: string, query: Record<string, string>, turn = 0): Answer {
  const [tries, setTries] = useState(0), question = path + JSON.stringify(query) + token.value, key = `${question} ${turn} ${tries}`;
  const [state, setState] = useState<{ key: string; question: string; path: string; data?: any; error?: unknown; at?: number }>({ key: "", question: "", path: "" });
  useEffect(() => {
    if (!path) return;
    const cancel = new AbortController();
    get(path, query, cancel.signal).then((data) => setState({ key, question, path, data, at: Date.now() }),
      (error) => cancel.signal.aborted || setState((before) => ({ ...(before.question === question ? before : {}), key, question, path, error })));
    return () => cancel.abort();
  }, [key]);
  const again = () => setTries((n) => n + 1), { data, error, at } = state;
  if (!path || state.path !== path) return { again };
  return { data, at, again, ...(state.key === key || (data && state.question === question) ? { error } : {}) };
}
