// SPDX-License-Identifier: Apache-2.0
// The timeline's slices: tracks of rows whose slices follow one another, with an index that finds
// the longest slice and the busy time of any range in a few steps. Times are ns after the document's
// origin, as doubles: exact below 2^53.
import { arrays, head, type Arrays } from "../data";

export const kNone = 0xffffffff;
const kBlock = 64;

export interface Item { name: string; class: string; kernel?: string; launch?: string; registers?: number; shape?: string; op?: string }

// Longest slice of each block of 64, and the busy time before it.
export class Row {
  private longest: Uint32Array | null = null;
  private before: Float64Array | null = null;
  constructor(private all: Slices, readonly first: number, readonly count: number) {}

  private index() {
    if (this.longest) return;
    const { duration } = this.all, blocks = Math.ceil(this.count / kBlock);
    const longest = new Uint32Array(blocks), before = new Float64Array(blocks + 1);
    for (let b = 0, i = this.first; b < blocks; ++b) {
      const end = Math.min(this.first + this.count, i + kBlock);
      let best = i, sum = 0;
      for (; i < end; ++i) { sum += duration[i]; if (duration[i] > duration[best]) best = i; }
      longest[b] = best;
      before[b + 1] = before[b] + sum;
    }
    this.longest = longest;
    this.before = before;
  }
  // The first slice that begins at or after `time`, from slice `from` on; galloping, for sweeps.
  lowerBound(time: number, from = this.first): number {
    const { begin } = this.all, end = this.first + this.count;
    let low = from, step = 1;
    while (low + step < end && begin[low + step] < time) { low += step; step *= 2; }
    let high = Math.min(end, low + step + 1);
    while (low < high) { const mid = (low + high) >> 1; if (begin[mid] < time) low = mid + 1; else high = mid; }
    return low;
  }
  // The first slice that ends after `time`.
  firstEndingAfter(time: number): number {
    const at = this.lowerBound(time);
    return at > this.first && this.all.begin[at - 1] + this.all.duration[at - 1] > time ? at - 1 : at;
  }
  longestIn(from: number, to: number): number {
    this.index();
    const { duration } = this.all;
    let best = from;
    const a = Math.ceil((from - this.first) / kBlock), b = Math.floor((to - this.first) / kBlock);
    if (a >= b) { for (let i = from; i < to; ++i) if (duration[i] > duration[best]) best = i; return best; }
    for (let i = from, end = this.first + a * kBlock; i < end; ++i) if (duration[i] > duration[best]) best = i;
    for (let k = a; k < b; ++k) if (duration[this.longest![k]] > duration[best]) best = this.longest![k];
    for (let i = this.first + b * kBlock; i < to; ++i) if (duration[i] > duration[best]) best = i;
    return best;
  }
  // Sum of the durations of [from, to).
  sum(from: number, to: number): number {
    this.index();
    const { duration } = this.all;
    const a = Math.ceil((from - this.first) / kBlock), b = Math.floor((to - this.first) / kBlock);
    let sum = 0;
    if (a >= b) { for (let i = from; i < to; ++i) sum += duration[i]; return sum; }
    for (let i = from, end = this.first + a * kBlock; i < end; ++i) sum += duration[i];
    sum += this.before![b] - this.before![a];
    for (let i = this.first + b * kBlock; i < to; ++i) sum += duration[i];
    return sum;
  }
}

export interface Track {
  kind: string; title: string; owner: string; device?: number; process?: number; shareAt?: number; after?: boolean;
  rows: Row[]; first: number; count: number; all: Slices; id: number;
}

export class Slices {
  readonly begin: Float64Array; readonly duration: Float64Array | Uint32Array; readonly item: Uint32Array;
  readonly link: Uint32Array; readonly share: Uint8Array; readonly items: Item[]; readonly tracks: Track[] = [];
  readonly linkedFrom: number; readonly span: number; readonly origin: bigint;
  private bytesAt: Map<number, number> | null = null;

  constructor(readonly json: any, private a: Arrays, shift = 0) {
    this.begin = a.begin as Float64Array;
    if (shift) { for (let i = 0; i < this.begin.length; ++i) this.begin[i] += shift; }
    this.duration = a.duration as Float64Array; this.item = a.item as Uint32Array;
    this.link = a.link as Uint32Array; this.share = a.share as Uint8Array;
    this.items = json.items; this.linkedFrom = json.first_linked; this.span = json.span_ns + shift; this.origin = BigInt(json.origin_ns);
    json.tracks.forEach((t: any, id: number) => {
      const rows: Row[] = [];
      let first = t.first;
      for (const n of t.rows) { rows.push(new Row(this, first, n)); first += n; }
      this.tracks.push({ kind: t.kind, title: t.title, owner: t.owner, device: t.device, process: t.process, shareAt: t.share_at, rows, first: t.first, count: first - t.first, all: this, id });
    });
  }
  get size() { return this.begin.length; }
  end(i: number) { return this.begin[i] + this.duration[i]; }
  trackOf(slice: number): Track | undefined {
    return this.tracks.find((t) => slice >= t.first && slice < t.first + t.count);
  }
  rowOf(track: Track, slice: number): number { return track.rows.findIndex((r) => slice >= r.first && slice < r.first + r.count); }
  // The call that launched this work.
  callOf(slice: number): number { const at = slice - this.linkedFrom; return at >= 0 && at < this.link.length ? this.link[at] : kNone; }
  // The work that this call launched; the first few of a graph.
  workOf(slice: number, most = 1000): number[] {
    const out: number[] = [];
    for (let i = 0; i < this.link.length && out.length < most; ++i) if (this.link[i] === slice) out.push(this.linkedFrom + i);
    return out;
  }
  bytesOf(slice: number): number | undefined {
    if (!this.bytesAt) {
      this.bytesAt = new Map();
      const of = this.a.bytes_of, values = this.a.bytes;
      for (let i = 0; i < of.length; ++i) this.bytesAt.set(of[i], values[i]);
    }
    return this.bytesAt.get(slice);
  }
  // The described gap at this slice of an idle track.
  gapAt(track: Track, slice: number): any { return (this.json.gaps ?? []).find((g: any) => g.device === track.device && g.begin === this.begin[slice]); }
  shareOf(track: Track, slice: number): number | undefined { return track.shareAt === undefined ? undefined : this.share[track.shareAt + slice - track.first]; }
}

export async function load(name: string, relativeTo?: Slices): Promise<Slices> {
  const [json, a] = [await head(name), await arrays(name)];
  const shift = relativeTo ? Number(BigInt(json.origin_ns) - relativeTo.origin) : 0;
  // The arrays of a document are shifted once, when its slices are made.
  return new Slices(json, a, shift);
}

// Statistics of a time range: of each item with time there, over the tracks given.
export interface Total { item: number; all: Slices; count: number; ns: number }
export function totals(tracks: Track[], from: number, to: number): Total[] {
  const found = new Map<string, Total>();
  for (const track of tracks) for (const row of track.rows) {
    const { begin, duration, item } = track.all;
    for (let i = row.firstEndingAfter(from), end = row.first + row.count; i < end && begin[i] < to; ++i) {
      const part = Math.min(begin[i] + duration[i], to) - Math.max(begin[i], from);
      const key = `${track.all === tracks[0].all ? 0 : 1}:${item[i]}`;
      const total = found.get(key);
      if (total) { ++total.count; total.ns += part; } else found.set(key, { item: item[i], all: track.all, count: 1, ns: part });
    }
  }
  return [...found.values()].sort((a, b) => b.ns - a.ns);
}
