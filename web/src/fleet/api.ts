// SPDX-License-Identifier: Apache-2.0
// Questions to the server that gave the page, with the token that the user gave. At most kAtOnce
// are under way: the server answers six of all users at a time. One that is busy is asked again.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

const kept = "purlin-token", kAtOnce = 3, kTries = 6;
function stored(): string { try { return sessionStorage.getItem(kept) ?? ""; } catch { return ""; } }
export const token = signal(stored());
export function setToken(value: string) {
  try { sessionStorage.setItem(kept, value); } catch { /* for this page only */ }
  token.value = value;
}

let under = 0;
const queue: (() => void)[] = [];
async function place(): Promise<void> {
  if (under >= kAtOnce) await new Promise<void>((go) => queue.push(go));
  ++under;
}
function leave() { --under; queue.shift()?.(); }
const pause = (ms: number) => new Promise((go) => setTimeout(go, ms));

export async function get(path: string, query: Record<string, string>, cancel: AbortSignal): Promise<any> {
  const search = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== ""));
  for (let tried = 1; ; ++tried) {
    await place();
    let response: Response, body: any;
    try {
      cancel.throwIfAborted();
      response = await fetch(`v1/${path}?${search}`, { signal: cancel, headers: token.value ? { Authorization: `Bearer ${token.value}` } : {} });
      body = await response.json().catch(() => ({}));
    } finally { leave(); }
    if (response.ok) return body;
    if (![429, 503].includes(response.status) || tried === kTries) throw new Refused(response.status, body.error?.message ?? `${response.status} ${response.statusText}`);
    await pause(Math.min(2000, 1000 * (Number(response.headers.get("Retry-After")) || 1)) * (0.5 + Math.random()));
  }
}

export interface Answer { data?: any; error?: unknown }
// The newest answer; an older question is cancelled. "": no question. Meanwhile, and after a failure
// of the next one, the answer before it stays with its error.
// `turn`: asks again when it changes.
export function useAnswer(path: string, query: Record<string, string>, turn = 0): Answer {
  const key = path + JSON.stringify(query) + token.value + turn;
  const [state, setState] = useState<Answer & { key: string; path: string }>({ key: "", path: "" });
  useEffect(() => {
    if (!path) return;
    const cancel = new AbortController();
    get(path, query, cancel.signal).then((data) => setState({ key, path, data }), (error) => cancel.signal.aborted || setState({ key, path, error }));
    return () => cancel.abort();
  }, [key]);
  if (!path || state.path !== path) return {};
  return state.key === key ? state : state.data ? { data: state.data } : {};
}
