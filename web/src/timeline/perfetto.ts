// SPDX-License-Identifier: Apache-2.0
// The slices of a time range as a Chrome trace, to save or to hand to Perfetto's page.
import type { Slices } from "./model";

export const kMostHanded = 2_000_000;

export function chromeTrace(all: Slices, from: number, to: number): Blob {
  const parts: string[] = ['{"displayTimeUnit":"ns","traceEvents":['];
  let piece: string[] = [], comma = "";
  const put = (event: object) => { piece.push(comma + JSON.stringify(event)); comma = ",\n"; if (piece.length > 20000) { parts.push(piece.join("")); piece = []; } };
  const pids = new Map<string, number>();
  all.tracks.forEach((track, tid) => {
    const key = `${track.kind === "thread" ? "host " : "GPU "}${track.owner}`;
    if (!pids.has(key)) { pids.set(key, pids.size + 1); put({ ph: "M", name: "process_name", pid: pids.get(key), args: { name: key } }); }
    track.rows.forEach((row, r) => {
      const pid = pids.get(key)!, lane = tid * 200 + r;
      put({ ph: "M", name: "thread_name", pid, tid: lane, args: { name: track.title + (r && track.kind !== "thread" ? ` (${r + 1})` : "") } });
      // Nested slices of a thread share its first lane, as viewers expect.
      const where = track.kind === "thread" ? tid * 200 : lane;
      for (let i = row.firstEndingAfter(from); i < row.first + row.count && all.begin[i] < to; ++i) {
        const item = all.items[all.item[i]], args: Record<string, unknown> = {};
        if (item.launch) args.launch = item.launch;
        if (item.shape) args.shape = item.shape;
        put({ ph: "X", name: item.name, cat: item.class, pid, tid: where, ts: all.begin[i] / 1000, dur: all.duration[i] / 1000, args });
      }
    });
  });
  parts.push(piece.join(""), "]}");
  return new Blob(parts, { type: "application/json" });
}

export function save(blob: Blob, name: string) {
  const url = URL.createObjectURL(blob), anchor = document.createElement("a");
  anchor.href = url; anchor.download = name; anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Opens Perfetto's page, waits until it answers PING, and gives it the trace. Nothing is uploaded:
// that page works in the browser.
export function openInPerfetto(blob: Blob, title: string, say: (text: string) => void, origin = "https://ui.perfetto.dev") {
  const other = open(origin, "purlin-perfetto");
  if (!other) { say("The browser kept the new window from opening: allow it, or save the trace."); return; }
  let tries = 0;
  const timer = setInterval(() => {
    if (++tries > 200) { done(); say("Perfetto's page did not answer."); return; }
    other.postMessage("PING", origin);
  }, 100);
  const heard = async (event: MessageEvent) => {
    if (event.source !== other || event.data !== "PONG") return;
    done();
    const url = location.protocol === "file:" ? undefined : location.href;
    other.postMessage({ perfetto: { buffer: await blob.arrayBuffer(), title, url, fileName: "purlin.json" } }, origin);
    say("The trace is in Perfetto's page.");
  };
  const done = () => { clearInterval(timer); removeEventListener("message", heard); };
  addEventListener("message", heard);
}
