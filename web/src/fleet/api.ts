// SPDX-License-Identifier: Apache-2.0
// Questions to the server that gave the page, with the token that the user gave.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

const kept = "purlin-token";
function stored(): string { try { return sessionStorage.getItem(kept) ?? ""; } catch { return ""; } }
export const token = signal(stored());
export function setToken(value: string) {
  try { sessionStorage.setItem(kept, value); } catch { /* for this page only */ }
  token.value = value;
}

export async function get(path: string, query: Record<string, string>, cancel?: AbortSignal): Promise<any> {
  const search = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== ""));
  const response = await fetch(`v1/${path}?${search}`, { signal: cancel ?? null, headers: token.value ? { Authorization: `Bearer ${token.value}` } : {} });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, body.error?.message ?? `${response.status} ${response.statusText}`);
  return body;
}

// The newest answer; an older question is cancelled. "": no question.
export function useAnswer(path: string, query: Record<string, string>): { data?: any; error?: unknown } {
  const key = path + JSON.stringify(query) + token.value;
  const [state, setState] = useState<{ key: string; data?: any; error?: unknown }>({ key: "" });
  useEffect(() => {
    if (!path) return;
    const cancel = new AbortController();
    get(path, query, cancel.signal).then((data) => setState({ key, data }), (error) => cancel.signal.aborted || setState({ key, error }));
    return () => cancel.abort();
  }, [key]);
  return path && state.key === key ? state : state.data && path ? { data: state.data } : {};
}
