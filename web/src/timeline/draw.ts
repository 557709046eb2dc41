// SPDX-License-Identifier: Apache-2.0
// Draws the rows of the timeline on a 2D canvas. What is narrower than a pixel is merged with its
// neighbours: the colour is that of the longest, the strength that of their busy share.
import * as f from "../format";
import { color } from "../chart";
import type { Item, Slices, Track } from "./model";

export const kHead = 26, kRow = 18, kThin = 14, kGap = 4;
const classNames = ["gemm", "conv", "attention", "norm", "softmax", "elementwise", "reduction", "copy", "layout", "optimizer", "embedding", "communication", "other",
  "launch", "graph launch", "copy call", "wait", "allocation", "call", "op", "range", "step", "data loader", "profiler", "phase"];
const idleNames = ["host_launch", "data_starvation", "synchronization", "kernel_to_kernel", "profiler", "other"];

export interface View { from: number; to: number; width: number; height: number; top: number }
export interface Band { track: Track; y: number; height: number; rowHeight: number; rows: number }

// The colours of items, by index.
export class Palette {
  private styles: string[] = [];
  private of = new Map<Slices, Uint8Array>();
  readonly ink = color("--ink"); readonly faint = color("--ink-3"); readonly line = color("--line"); readonly paper = color("--surface");
  readonly accent = color("--accent"); readonly onSlice = color("--on-slice"); readonly mark = color("--mark");
  private number = new Map<string, number>();
  constructor() {
    for (const name of classNames) this.add(name, color("--c-" + name.replace(" ", "-")));
    for (const name of idleNames) this.add("idle " + name, color("--idle-" + name));
    this.add("dim", color("--dim"));
  }
  private add(name: string, style: string) { this.number.set(name, this.styles.length); this.styles.push(style); }
  get dim() { return this.number.get("dim")!; }
  style(index: number) { return this.styles[index]; }
  // As a pixel of ImageData: its colour, and how strongly.
  pixel(index: number, level: number): number {
    const hex = this.styles[index], at = (i: number) => parseInt(hex.slice(i, i + 2), 16) || 128;
    return (Math.round(255 * alphas[level]) << 24 | at(5) << 16 | at(3) << 8 | at(1)) >>> 0;
  }
  get size() { return this.styles.length; }
  indices(all: Slices): Uint8Array {
    let found = this.of.get(all);
    if (!found) {
      found = Uint8Array.from(all.items, (item) => this.number.get(item.class === "idle" ? "idle " + item.name : item.class) ?? this.number.get("other")!);
      this.of.set(all, found);
    }
    return found;
  }
}

const kMostGrown = 1.7;
// The bands of the tracks that are shown, from top to bottom. Few of them are higher, as far as
// `room` goes.
export function layOut(tracks: Track[], collapsed: Set<Track>, room: number): { bands: Band[]; height: number } {
  const plain = stack(tracks, collapsed, 1), grown = Math.min(kMostGrown, 0.85 * room / (plain.height || 1));
  return grown > 1.1 ? stack(tracks, collapsed, grown) : plain;
}
function stack(tracks: Track[], collapsed: Set<Track>, grown: number): { bands: Band[]; height: number } {
  const bands: Band[] = [];
  let y = 0;
  for (const track of tracks) {
    const thin = track.kind === "phases" || track.kind === "steps" || track.kind === "idle";
    const rowHeight = thin ? kThin : Math.round(kRow * grown);
    const rows = collapsed.has(track) ? Math.min(1, track.rows.length) : track.rows.length;
    const height = rows * rowHeight + kGap;
    bands.push({ track, y, height, rowHeight, rows });
    y += height;
  }
  return { bands, height: y };
}

interface Label { x: number; y: number; width: number; text: string }
export interface DrawState { selected: { all: Slices; slice: number } | null; matches: Map<Slices, Uint8Array> | null; links: { all: Slices; slices: Set<number> } | null }

const textOf = (item: Item) => (item.class === "idle" ? f.words(item.name) : item.name);
const rects: number[][] = [];
const alphas = [0.35, 0.55, 0.8, 1], kLevels = alphas.length;

// What is narrower than a pixel is one line of pixels for each row, stretched to the row's height:
// thousands of rectangles would take several times as long.
const scratch = document.createElement("canvas");
let strips: { image: ImageData; pixels: Uint32Array; width: number; rows: number } | null = null;
function clearStrips(width: number, rows: number) {
  if (!strips || strips.width !== width || strips.rows < rows) {
    scratch.width = width; scratch.height = rows;
    const image = new ImageData(width, rows);
    strips = { image, pixels: new Uint32Array(image.data.buffer), width, rows };
  } else strips.pixels.fill(0);
  return strips;
}

export function drawRows(ctx: CanvasRenderingContext2D, view: View, bands: Band[], palette: Palette, state: DrawState): number {
  const scale = view.width / (view.to - view.from), wide = Math.max(1, Math.ceil(view.width));
  const visible = bands.filter((b) => b.y - view.top + b.height >= 0 && b.y - view.top <= view.height);
  const { pixels, image } = clearStrips(wide, visible.reduce((n, b) => n + b.rows, 0) || 1), merged: [number, number, number][] = [];
  const tones: number[] = [];
  for (let hue = 0; hue < palette.size; ++hue) for (let level = 0; level < kLevels; ++level) tones.push(palette.pixel(hue, level));
  let strip = 0;
  while (rects.length < palette.size * kLevels) rects.push([]);
  for (const list of rects) list.length = 0;
  const labels: Label[] = [];
  let drawn = 0;
  for (const band of visible) {
    const y0 = band.y - view.top;
    const all = band.track.all, { begin, duration, item } = all, colors = palette.indices(all), matches = state.matches?.get(all);
    for (let r = 0; r < band.rows; ++r) {
      const y = y0 + r * band.rowHeight;
      if (y + band.rowHeight < 0 || y > view.height) continue;
      const row = band.track.rows[r], end = row.first + row.count, h = band.rowHeight - 2, base = strip++ * wide;
      let narrow = false;
      for (let i = row.firstEndingAfter(view.from); i < end && begin[i] < view.to;) {
        const x = (begin[i] - view.from) * scale, width = duration[i] * scale;
        let from = i, to = i + 1, tone = kLevels - 1, x0 = x, w = width;
        if (width < 1) {
          // Everything that begins in this pixel.
          const pixel = Math.floor(x);
          to = row.lowerBound(view.from + (pixel + 1) / scale, i + 1);
          if (to <= i) to = i + 1;
          if (to > i + 1) {
            const share = row.sum(i, to) * scale;
            from = row.longestIn(i, to);
            tone = share > 0.75 ? 3 : share > 0.4 ? 2 : share > 0.12 ? 1 : 0;
          } else tone = width > 0.4 ? 2 : 1;
        } else {
          if (band.track.shareAt !== undefined) { const clear = all.share[band.track.shareAt + i - band.track.first]; tone = clear >= 80 ? 3 : clear >= 50 ? 2 : 1; }
          x0 = Math.max(x, -2); w = Math.min(x + width, view.width + 2) - x0;
          w -= 0.5;
        }
        const hue = matches && !matches[item[from]] ? palette.dim : colors[item[from]];
        ++drawn;
        if (width < 3) {
          const last = Math.min(wide, Math.floor(x) + Math.max(1, Math.round(width)));
          for (let pixel = Math.max(0, Math.floor(x)); pixel < last; ++pixel) pixels[base + pixel] = tones[hue * kLevels + tone];
          narrow = true;
          i = to;
          continue;
        }
        const list = rects[hue * kLevels + tone];
        list.push(x0, y, w, h);
        if (w > 34) labels.push({ x: Math.max(x0, 0), y: y + h / 2, width: w - (x0 < 0 ? -x0 : 0), text: textOf(all.items[item[i]]) });
        i = to;
      }
      if (narrow) merged.push([base / wide, y, h]);
    }
  }
  if (merged.length) {
    scratch.getContext("2d")!.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    for (const [line, y, h] of merged) ctx.drawImage(scratch, 0, line, wide, 1, 0, y, wide, h);
  }
  for (let hue = 0; hue < palette.size; ++hue) for (let level = 0; level < kLevels; ++level) {
    const list = rects[hue * kLevels + level];
    if (!list.length) continue;
    ctx.fillStyle = palette.style(hue);
    ctx.globalAlpha = alphas[level];
    for (let k = 0; k < list.length; k += 4) ctx.fillRect(list[k], list[k + 1], list[k + 2], list[k + 3]);
  }
  ctx.globalAlpha = 1;
  ctx.font = "11px system-ui, sans-serif"; ctx.textBaseline = "middle"; ctx.textAlign = "left"; ctx.fillStyle = palette.onSlice;
  for (const label of labels.length > 1500 ? labels.slice(0, 1500) : labels) {
    const fits = Math.floor((label.width - 8) / 6);
    const text = label.text.length <= fits ? label.text : fits > 3 ? label.text.slice(0, fits - 1) + "…" : "";
    if (text) ctx.fillText(text, label.x + 4, label.y + 0.5);
  }
  return drawn;
}

export function outline(ctx: CanvasRenderingContext2D, view: View, bands: Band[], all: Slices, slice: number, style: string) {
  const place = placeOf(view, bands, all, slice);
  if (!place) return;
  ctx.strokeStyle = style; ctx.lineWidth = 2;
  ctx.strokeRect(place.x - 0.5, place.y - 0.5, Math.max(place.width, 3) + 1, place.height + 1);
}
export function placeOf(view: View, bands: Band[], all: Slices, slice: number) {
  const scale = view.width / (view.to - view.from);
  for (const band of bands) {
    if (band.track.all !== all || slice < band.track.first || slice >= band.track.first + band.track.count) continue;
    const row = Math.min(all.rowOf(band.track, slice), band.rows - 1);
    return { x: (all.begin[slice] - view.from) * scale, y: band.y - view.top + row * band.rowHeight, width: all.duration[slice] * scale, height: band.rowHeight - 2 };
  }
  return null;
}

// Lines from a call to its work.
export function drawLinks(ctx: CanvasRenderingContext2D, view: View, bands: Band[], all: Slices, pairs: [number, number][], style: string) {
  ctx.strokeStyle = style; ctx.lineWidth = 1.25;
  for (const [call, work] of pairs.slice(0, 200)) {
    const a = placeOf(view, bands, all, call), b = placeOf(view, bands, all, work);
    if (!a || !b) continue;
    const x0 = a.x + Math.min(a.width, 4), y0 = a.y + (a.y > b.y ? 0 : a.height), x1 = b.x, y1 = b.y + (a.y > b.y ? b.height : 0), bend = Math.min(60, Math.abs(y1 - y0) / 2);
    ctx.beginPath(); ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0, y0 + (y1 > y0 ? bend : -bend), x1, y1 - (y1 > y0 ? bend : -bend), x1, y1);
    ctx.stroke();
  }
}

// Times with a step of 1, 2 or 5, relative to the begin of the recording.
export function ticksOf(view: View): { step: number; list: number[] } {
  const span = view.to - view.from, rough = span / Math.max(2, view.width / 130), ten = 10 ** Math.floor(Math.log10(rough));
  const step = rough > 5 * ten ? 10 * ten : rough > 2 * ten ? 5 * ten : rough > ten ? 2 * ten : ten;
  const list: number[] = [];
  for (let t = Math.ceil(view.from / step) * step; t < view.to && list.length < 100; t += step) list.push(t);
  return { step, list };
}
const fixed = (value: number, step: number, unit: number) => (value / unit).toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / unit) - 1e-9))));
export function tickText(time: number, step: number, most: number): string {
  const unit = most >= 1e9 && step >= 1e6 ? 1e9 : step >= 1e4 || most >= 1e9 ? 1e6 : 1e3;
  return `${fixed(time, step, unit)} ${unit === 1e9 ? "s" : unit === 1e6 ? "ms" : "µs"}`;
}
export const tooltip = (all: Slices, slice: number, merged: number) =>
  `${textOf(all.items[all.item[slice]])}, ${f.ns(all.duration[slice])}${merged > 1 ? ` (longest of ${f.count(merged)} here)` : ""}`;
