// SPDX-License-Identifier: Apache-2.0
// Timeline: streams, copies, host calls with links to their work, idle time by cause, steps, phases.
// The canvas is for eyes and pointers; grid.tsx says the same to keyboards and screen readers.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { has, head, index, numbered, once } from "../data";
import * as f from "../format";
import type { ProfileData } from "../profile";
import { theme } from "../theme";
import { Again, Empty, Loading, Notice, useLoaded, useTried } from "../ui";
import { adjust, place } from "../url";
import { drawLinks, drawRows, kHead, layOut, outline, Palette, placeOf, ticksOf, tickText, tooltip, type Band, type View } from "./draw";
import { Details } from "./details";
import { SliceGrid } from "./grid";
import { Help, Palette as Commands, type Command } from "./palette";
import { kNone, load, type Slices, type Track } from "./model";
import { chromeTrace, kMostHanded, openInPerfetto, save } from "./perfetto";

const kGutter = 184, kMini = 40, kLeastSpan = 20;
const order: Record<string, number> = { phases: 0, steps: 1, idle: 2, stream: 3, thread: 4 };

export interface Selection { all: Slices; slice: number }

const loaded = new Map<string, Promise<Slices>>();
const slicesOf = (name: string, base?: Slices) => once(loaded, name, () => load(name, base));

function arrange(base: Slices, after: Slices | undefined, filter: string): Track[] {
  const words = filter.toLowerCase();
  const wanted = (t: Track) => !words || `${t.title} ${t.owner}`.toLowerCase().includes(words);
  const devices = [...new Set(base.tracks.filter((t) => t.kind !== "thread").map((t) => t.device ?? 0))].sort((a, b) => a - b);
  const out: Track[] = [];
  for (const device of devices) {
    const own = base.tracks.filter((t) => t.kind !== "thread" && (t.device ?? 0) === device).sort((a, b) => order[a.kind] - order[b.kind]);
    out.push(...own);
    if (after) out.push(...after.tracks.filter((t) => (t.kind === "stream" || t.kind === "idle") && (t.device ?? 0) === device).sort((a, b) => order[a.kind] - order[b.kind]).map((t) => ({ ...t, after: true, title: "after: " + t.title })));
  }
  out.push(...base.tracks.filter((t) => t.kind === "thread"));
  if (after) out.push(...after.tracks.filter((t) => t.kind === "thread").map((t) => ({ ...t, after: true, title: "after: " + t.title })));
  return out.filter(wanted);
}

export function Timeline(props: { data: ProfileData }) {
  const name = numbered("timeline", props.data.file);
  if (!index.documents.some((d) => d.name === name))
    return <Empty title="No timeline">This profile holds sums and histograms only. <code>purlin profile --full</code> keeps every launch; traces of PyTorch, Nsight Systems and rocprof have a timeline too.</Empty>;
  return <Loaded data={props.data} name={name} />;
}

function Loaded(props: { data: ProfileData; name: string }) {
  const after = place.value.query.after ?? "";
  const base = useLoaded(() => slicesOf(props.name), [props.name]);
  const changed = useTried(async () => (base && after && index.documents.some((d) => d.name === after) ? slicesOf(after, base) : undefined), [base, after]);
  if (!base) return <Loading />;
  return <Stage data={props.data} base={base} after={changed.value} lacks={changed.error ? <Notice tone="warn">The timeline after the change cannot be shown: {f.reason(changed.error)}. <Again of={changed.again} /></Notice> : null} />;
}

function Stage(props: { data: ProfileData; base: Slices; after?: Slices; lacks: ComponentChildren }) {
  const { base, after } = props;
  const query = place.value.query;
  const canvas = useRef<HTMLCanvasElement>(null), mini = useRef<HTMLCanvasElement>(null), scroll = useRef<HTMLDivElement>(null), search = useRef<HTMLInputElement>(null);
  const [filter, setFilter] = useState(""), [collapsed, setCollapsed] = useState<Set<Track>>(new Set()), [selected, select] = useState<Selection | null>(null);
  const [area, setArea] = useState<{ from: number; to: number } | null>(null), [hover, setHover] = useState<{ x: number; y: number; text: string } | null>(null);
  const [help, setHelp] = useState(false), [palette, setPalette] = useState(false), [said, say] = useState(""), [width, setWidth] = useState(800), [size, setSize] = useState(480);
  const [nth, setNth] = useState(0);
  const text = query.q ?? "";
  const tracks = useMemo(() => arrange(base, after, filter), [base, after, filter]);
  const { bands, height } = useMemo(() => layOut(tracks, collapsed, size - kHead), [tracks, collapsed, size]);
  const colors = useMemo(() => new Palette(), [theme.value]);
  const span = Math.max(base.span, after?.span ?? 0);

  const view = useRef<View>({ from: Number(query.from ?? 0), to: Number(query.to ?? span), width: 800, height: 400, top: 0 });
  if (!(view.current.to > view.current.from)) view.current = { ...view.current, from: 0, to: span };
  view.current.width = width; view.current.height = size;

  // Which items match the search, and the slices of these in order.
  const matches = useMemo(() => {
    if (!text) return null;
    let test: (name: string) => boolean = (n) => n.toLowerCase().includes(text.toLowerCase());
    if (text.startsWith("/")) try { const re = new RegExp(text.slice(1).replace(/\/$/, ""), "i"); test = (n) => re.test(n); } catch { /* as text */ }
    const found = new Map<Slices, Uint8Array>();
    for (const all of after ? [base, after] : [base]) found.set(all, Uint8Array.from(all.items, (i) => (test(i.name) || (i.op !== undefined && test(i.op)) ? 1 : 0)));
    return found;
  }, [base, after, text]);
  const hits = useMemo(() => {
    if (!matches) return [];
    const own = matches.get(base)!, out: number[] = [];
    for (let i = 0; i < base.size && out.length < 200_000; ++i) if (own[base.item[i]]) out.push(i);
    return out.sort((a, b) => base.begin[a] - base.begin[b]);
  }, [matches]);
  const pairs = useMemo<[number, number][]>(() => {
    if (!selected) return [];
    const call = selected.all.callOf(selected.slice);
    if (call !== kNone) return [[call, selected.slice]];
    return selected.all.workOf(selected.slice, 200).map((work) => [selected.slice, work]);
  }, [selected]);

  const frame = useRef(0), state = useRef({ matches, selected, area, pairs, bands, colors });
  state.current = { matches, selected, area, pairs, bands, colors };
  const draw = () => {
    frame.current = 0;
    const node = canvas.current, s = state.current;
    if (!node) return;
    const t0 = performance.now(), v = view.current, ratio = Math.min(devicePixelRatio || 1, 2), w = v.width, h = v.height;
    if (node.width !== Math.round(w * ratio) || node.height !== Math.round(h * ratio)) { node.width = Math.round(w * ratio); node.height = Math.round(h * ratio); }
    const ctx = node.getContext("2d", { alpha: false })!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = s.colors.paper; ctx.fillRect(0, 0, w, h);
    const { step, list } = ticksOf(v), scale = w / (v.to - v.from);
    ctx.strokeStyle = s.colors.line; ctx.lineWidth = 1; ctx.beginPath();
    for (const t of list) { const x = Math.round((t - v.from) * scale) + 0.5; ctx.moveTo(x, kHead); ctx.lineTo(x, h); }
    ctx.stroke();
    ctx.save();
    ctx.beginPath(); ctx.rect(0, kHead, w, h - kHead); ctx.clip();
    ctx.translate(0, kHead);
    const inner = { ...v, height: h - kHead };
    const drawn = drawRows(ctx, inner, s.bands, s.colors, { selected: s.selected, matches: s.matches, links: null });
    ctx.fillStyle = s.colors.line;
    for (let i = 1; i < s.bands.length; ++i) { const y = s.bands[i].y - v.top - 3; if (y > 0 && y < h && s.bands[i].track.owner !== s.bands[i - 1].track.owner) ctx.fillRect(0, Math.round(y), w, 1); }
    if (s.selected) { drawLinks(ctx, inner, s.bands, s.selected.all, s.pairs, s.colors.mark); outline(ctx, inner, s.bands, s.selected.all, s.selected.slice, s.colors.mark); }
    ctx.restore();
    if (s.area) {
      const x0 = (s.area.from - v.from) * scale, x1 = (s.area.to - v.from) * scale;
      ctx.fillStyle = s.colors.accent; ctx.globalAlpha = 0.12; ctx.fillRect(x0, kHead, x1 - x0, h); ctx.globalAlpha = 1;
      ctx.fillRect(x0, 0, 1.5, h); ctx.fillRect(x1, 0, 1.5, h);
    }
    ctx.fillStyle = s.colors.faint; ctx.font = "11px system-ui, sans-serif"; ctx.textBaseline = "middle"; ctx.textAlign = "left";
    for (const t of list) { const x = (t - v.from) * scale; if (x < w - 60) ctx.fillText(tickText(t, step, v.to), x + 4, kHead / 2); }
    ctx.fillStyle = s.colors.line; ctx.fillRect(0, kHead - 1, w, 1);
    drawMiniWindow();
    // For tests and measurements: what the last frame cost and drew.
    (window as any).purlinFrame = { ms: performance.now() - t0, drawn };
  };
  const redraw = () => { if (!frame.current) frame.current = requestAnimationFrame(draw); };

  // A link to another place of this view that is opened in the page; not what it wrote itself.
  const placeText = (q: Record<string, string>) => `${q.from ?? ""}-${q.to ?? ""}`, written = useRef(placeText(query));
  const write = (q: Record<string, string>) => { written.current = placeText(q); adjust(q); };
  useEffect(() => {
    if (placeText(query) === written.current) return;
    written.current = placeText(query);
    const from = Number(query.from ?? 0), to = Number(query.to ?? span);
    if (to > from) { Object.assign(view.current, { from, to }); redraw(); }
  }, [query.from, query.to]);
  const urlTimer = useRef(0);
  const move = (from: number, to: number) => {
    const length = Math.min(Math.max(to - from, kLeastSpan), span * 1.1);
    const middle = (from + to) / 2;
    let a = middle - length / 2;
    a = Math.max(-0.05 * span, Math.min(a, 1.05 * span - length));
    view.current.from = a; view.current.to = a + length;
    redraw();
    clearTimeout(urlTimer.current);
    urlTimer.current = window.setTimeout(() => write(length >= span ? { from: "", to: "" } : { from: Math.round(a).toString(), to: Math.round(a + length).toString() }), 400);
  };
  const zoom = (factor: number, at: number) => { const v = view.current; move(at - (at - v.from) * factor, at + (v.to - at) * factor); };
  const fit = (from: number, to: number) => { const pad = Math.max((to - from) * 0.1, 5); move(from - pad, to + pad); };
  const focus = () => { if (selected) fit(selected.all.begin[selected.slice], selected.all.end(selected.slice)); else if (area) fit(area.from, area.to); else move(0, span); };

  // The overview above: busy share of the streams.
  const miniBack = useRef<HTMLCanvasElement | null>(null);
  const drawMini = () => {
    const node = mini.current;
    if (!node) return;
    const ratio = Math.min(devicePixelRatio || 1, 2), back = document.createElement("canvas"), ctx = back.getContext("2d")!;
    node.width = back.width = Math.round(width * ratio); node.height = back.height = Math.round(kMini * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colors.paper; ctx.fillRect(0, 0, width, kMini);
    const streams = base.tracks.filter((t) => t.kind === "stream"), shown = streams.length ? streams : base.tracks.filter((t) => t.kind === "thread");
    const each = (kMini - 6) / Math.max(1, Math.min(shown.length, 8));
    shown.slice(0, 8).forEach((track, n) => drawRows(ctx, { from: 0, to: span, width, height: 1e9, top: 0 }, [{ track, y: 3 + n * each, height: each, rowHeight: Math.max(3, each), rows: 1 } as Band], colors, { selected: null, matches: null, links: null }));
    miniBack.current = back;
  };
  const drawMiniWindow = () => {
    const node = mini.current;
    if (!node || !miniBack.current) return;
    const ctx = node.getContext("2d")!, v = view.current, s = state.current;
    ctx.setTransform(1, 0, 0, 1, 0, 0); ctx.drawImage(miniBack.current, 0, 0);
    const ratio = node.width / width;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const x0 = Math.max(0, v.from / span * width), x1 = Math.min(width, v.to / span * width);
    ctx.fillStyle = s.colors.paper; ctx.globalAlpha = 0.65; ctx.fillRect(0, 0, x0, kMini); ctx.fillRect(x1, 0, width - x1, kMini); ctx.globalAlpha = 1;
    ctx.strokeStyle = s.colors.accent; ctx.lineWidth = 1.5; ctx.strokeRect(x0 + 0.75, 0.75, Math.max(3, x1 - x0) - 1.5, kMini - 1.5);
  };

  const hit = (x: number, y: number): { all: Slices; slice: number; merged: number; track: Track } | null => {
    const v = view.current, at = v.from + x * (v.to - v.from) / v.width, pixel = (v.to - v.from) / v.width, inside = y - kHead + v.top;
    if (y < kHead) return null;
    const band = bands.find((b) => inside >= b.y && inside < b.y + b.height);
    const row = band && band.track.rows[Math.floor((inside - band.y) / band.rowHeight)];
    if (!band || !row) return null;
    const all = band.track.all, i = row.firstEndingAfter(at - pixel);
    if (i >= row.first + row.count || all.begin[i] > at + pixel) return null;
    if (all.duration[i] >= pixel && all.begin[i] <= at) return { all, slice: i, merged: 1, track: band.track };
    const to = Math.max(i + 1, row.lowerBound(at + pixel, i));
    return { all, slice: row.longestIn(i, to), merged: to - i, track: band.track };
  };

  // Shows a slice: scrolls and moves only as far as needed.
  const show = (s: Selection | null, center = false) => {
    select(s);
    if (!s) return;
    const v = view.current, from = s.all.begin[s.slice], to = s.all.end(s.slice), length = v.to - v.from;
    if (center && to - from < length / 400) { const half = Math.max((to - from) * 40, 50); move((from + to) / 2 - half, (from + to) / 2 + half); }
    else if (to < v.from || from > v.to) move((from + to - length) / 2, (from + to + length) / 2);
    const p = placeOf({ ...v, top: 0 }, bands, s.all, s.slice), box = scroll.current;
    if (p && box && (p.y < box.scrollTop || p.y + p.height > box.scrollTop + box.clientHeight - kHead)) box.scrollTop = p.y - box.clientHeight / 2;
  };
  const neighbour = (by: number) => {
    if (!selected) return;
    const track = selected.all.trackOf(selected.slice), row = track && track.rows[selected.all.rowOf(track, selected.slice)];
    if (row) show({ all: selected.all, slice: Math.max(row.first, Math.min(row.first + row.count - 1, selected.slice + by)) });
  };
  const nextHit = (by: number) => {
    if (!hits.length) return;
    const n = (nth + by + hits.length) % hits.length;
    setNth(n);
    show({ all: base, slice: hits[n] }, true);
  };
  const follow = (forward: boolean) => {
    if (!selected) return;
    const call = selected.all.callOf(selected.slice);
    if (!forward && call !== kNone) show({ all: selected.all, slice: call });
    const work = forward && call === kNone ? selected.all.workOf(selected.slice, 1) : [];
    if (work.length) show({ all: selected.all, slice: work[0] });
  };
  const mark = () => { if (selected) setArea({ from: selected.all.begin[selected.slice], to: selected.all.end(selected.slice) }); };
  const statistics = () => { if (!area) setArea(selected && selected.all.duration[selected.slice] > 0 ? { from: selected.all.begin[selected.slice], to: selected.all.end(selected.slice) } : { from: Math.max(0, view.current.from), to: Math.min(span, view.current.to) }); };
  const copyLink = async () => {
    const v = view.current;
    write({ from: Math.round(v.from).toString(), to: Math.round(v.to).toString(), sel: selected && selected.all === base ? selected.slice.toString() : "" });
    try { await navigator.clipboard.writeText(location.href); say("The link to this view is on the clipboard."); } catch { say("The address bar has the link to this view."); }
  };
  const trace = (): Blob | null => {
    let n = 0;
    const from = base.size > kMostHanded ? view.current.from : -1, to = base.size > kMostHanded ? view.current.to : span + 1;
    for (const t of base.tracks) for (const r of t.rows) n += r.lowerBound(to) - r.firstEndingAfter(from);
    if (n > kMostHanded) { say(`The view holds ${f.count(n)} slices; zoom in until it is fewer than ${f.count(kMostHanded)}.`); return null; }
    return chromeTrace(base, from, to);
  };
  const commands: Command[] = [
    { name: "Fit the selection, or everything", keys: "F", run: focus },
    { name: "Whole recording", keys: "0", run: () => move(0, span) },
    { name: "Statistics of the area or selection", keys: "R", run: statistics },
    { name: "Mark the selection as an area", keys: "M", run: mark },
    { name: "Next slice of the row", keys: ".", run: () => neighbour(1) }, { name: "Previous slice of the row", keys: ",", run: () => neighbour(-1) },
    { name: "From a call to its work", keys: "]", run: () => follow(true) }, { name: "From work to its call", keys: "[", run: () => follow(false) },
    { name: "Search", keys: "/", run: () => search.current?.focus() },
    { name: "Copy a link to this view", keys: "", run: () => void copyLink() },
    { name: "Open in Perfetto", keys: "", run: () => { const b = trace(); if (b) openInPerfetto(b, index.title, say); } },
    { name: "Save as a Chrome trace", keys: "", run: () => { const b = trace(); if (b) save(b, "purlin-trace.json"); } },
    { name: "Collapse or expand all tracks", keys: "", run: () => setCollapsed(collapsed.size ? new Set() : new Set(tracks)) },
    { name: "Show as recorded", keys: "", run: () => adjust({ after: "" }) },
    ...[0, 1, 2].filter((n) => has(`applied${n}`)).map((n) => ({ name: `Show the timeline after change ${n + 1}`, keys: "", run: () => adjust({ after: numbered(`applied${n}`, props.data.file) }) })),
    { name: "Clear selection and area", keys: "Esc", run: () => { select(null); setArea(null); } },
    { name: "Keys", keys: "?", run: () => setHelp(true) },
  ];

  useEffect(() => {
    const node = canvas.current!.parentElement!.parentElement!;
    const sizes = new ResizeObserver(() => { setWidth(Math.max(200, node.clientWidth - kGutter)); setSize(node.clientHeight); });
    sizes.observe(node);
    return () => sizes.disconnect();
  }, []);
  useEffect(() => { drawMini(); redraw(); }, [base, width, colors]);
  useEffect(redraw, [bands, selected, area, matches, size]);
  useEffect(() => { const sel = Number(query.sel ?? NaN); if (sel >= 0 && sel < base.size) show({ all: base, slice: sel }); }, [base, query.sel]);
  useEffect(() => { setNth(0); }, [matches]);

  // Keys by their place on the keyboard, so that WASD is where it is on every layout.
  const keys = useRef({ zoom, move, commands, setPalette });
  keys.current = { zoom, move, commands, setPalette };
  const pointer = useRef<number | null>(null);
  useEffect(() => {
    const held = new Set<string>();
    let running = 0, last = 0;
    const step = (now: number) => {
      running = 0;
      if (!held.size) return;
      const dt = Math.min(now - last, 50); last = now;
      const v = view.current, k = Math.exp(dt * 0.004), by = (v.to - v.from) * dt * 0.0012;
      const at = pointer.current === null ? (v.from + v.to) / 2 : v.from + pointer.current * (v.to - v.from) / v.width;
      if (held.has("KeyW")) keys.current.zoom(1 / k, at);
      if (held.has("KeyS")) keys.current.zoom(k, at);
      if (held.has("KeyA")) keys.current.move(v.from - by, v.to - by);
      if (held.has("KeyD")) keys.current.move(v.from + by, v.to + by);
      running = requestAnimationFrame(step);
    };
    const typing = (e: KeyboardEvent) => e.target instanceof Element && e.target.closest("input, select, textarea, dialog, [role=grid]");
    const run = (name: string) => keys.current.commands.find((c) => c.keys === name)?.run();
    const down = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.shiftKey && e.code === "KeyP") { e.preventDefault(); keys.current.setPalette(true); return; }
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "Escape") { run("Esc"); return; }
      if (typing(e)) return;
      if (["KeyW", "KeyA", "KeyS", "KeyD"].includes(e.code)) { if (!held.has(e.code)) { held.add(e.code); if (!running) { last = performance.now() - 16; running = requestAnimationFrame(step); } } }
      else if (e.code === "KeyF") run("F");
      else if (e.code === "KeyR") run("R");
      else if (e.code === "KeyM") run("M");
      else if (e.code === "Digit0") run("0");
      else if (e.key === "?") run("?");
      else if (e.key === "/") { e.preventDefault(); run("/"); }
      else if (e.key === "." || e.key === "," || e.key === "[" || e.key === "]") run(e.key);
      else return;
      if (e.key !== "Tab") e.preventDefault();
    };
    const up = (e: KeyboardEvent) => held.delete(e.code);
    const blur = () => held.clear();
    addEventListener("keydown", down); addEventListener("keyup", up); addEventListener("blur", blur);
    return () => { removeEventListener("keydown", down); removeEventListener("keyup", up); removeEventListener("blur", blur); cancelAnimationFrame(running); };
  }, []);

  useEffect(() => {
    const node = canvas.current!;
    const wheel = (e: WheelEvent) => {
      const v = view.current, x = e.clientX - node.getBoundingClientRect().left;
      if (e.ctrlKey || e.metaKey) { e.preventDefault(); keys.current.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.004))), v.from + x * (v.to - v.from) / v.width); }
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); const by = (e.deltaX || e.deltaY) * (v.to - v.from) / v.width; keys.current.move(v.from + by, v.to + by); }
    };
    node.addEventListener("wheel", wheel, { passive: false });
    return () => node.removeEventListener("wheel", wheel);
  }, []);

  const drag = useRef<{ x: number; from: number; to: number; pan: boolean; moved: boolean } | null>(null);
  const timeAt = (x: number) => { const v = view.current; return v.from + x * (v.to - v.from) / v.width; };
  const onDown = (e: PointerEvent) => {
    if (e.button !== 0 && e.button !== 1) return;
    const x = e.offsetX, v = view.current;
    drag.current = { x, from: v.from, to: v.to, pan: e.shiftKey || e.button === 1 || e.offsetY < kHead, moved: false };
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
  };
  const onMove = (e: PointerEvent) => {
    pointer.current = e.offsetX;
    const d = drag.current;
    if (d) {
      if (Math.abs(e.offsetX - d.x) > 3) d.moved = true;
      if (!d.moved) return;
      setHover(null);
      if (d.pan) { const by = (d.x - e.offsetX) * (d.to - d.from) / view.current.width; move(d.from + by, d.to + by); }
      else { const a = timeAt(d.x), b = timeAt(e.offsetX); setArea({ from: Math.max(0, Math.min(a, b)), to: Math.min(span, Math.max(a, b)) }); }
      return;
    }
    const found = hit(e.offsetX, e.offsetY);
    setHover(found ? { x: e.offsetX, y: e.offsetY, text: tooltip(found.all, found.slice, found.merged) } : null);
  };
  const onUp = (e: PointerEvent) => {
    const d = drag.current;
    drag.current = null;
    if (!d || d.moved) return;
    const found = hit(e.offsetX, e.offsetY);
    if (found && found.merged > 1) {  // opens what is merged here
      const pixel = (view.current.to - view.current.from) / view.current.width, at = timeAt(e.offsetX);
      if (selected && selected.slice === found.slice && selected.all === found.all) { fit(at - 20 * pixel, at + 20 * pixel); return; }
    }
    select(found ? { all: found.all, slice: found.slice } : null);
    if (!found) setArea(null);
  };
  const onMini = (e: PointerEvent) => { if (e.buttons !== 1) return; const v = view.current, at = e.offsetX / width * span, half = (v.to - v.from) / 2; move(at - half, at + half); };

  const applied = after?.json.applied, kinds = index.documents.filter((d) => /^applied\d+/.test(d.name) && (props.data.file === 0 ? !/-\d+$/.test(d.name) : d.name.endsWith(`-${props.data.file}`)));
  const titles = useLoaded(async () => Promise.all(kinds.map(async (d): Promise<[string, string]> => [d.name, (await head(d.name).catch(() => undefined))?.title ?? d.name])), [props.data.file]);
  return (
    <div class="timeline" onKeyDown={undefined}>
      <div class="tl-tools" role="toolbar" aria-label="Timeline">
        <label class="search"><span class="visually-hidden">search slices</span><input ref={search} type="search" placeholder="Search slices ( / )" value={text} onInput={(e) => adjust({ q: e.currentTarget.value })}
          onKeyDown={(e) => { if (e.key === "Enter") { e.preventDefault(); nextHit(selected ? (e.shiftKey ? -1 : 1) : 0); } if (e.key === "Escape") { adjust({ q: "" }); e.currentTarget.blur(); } }} /></label>
        {text && <span class="hits" role="status">{hits.length ? `${f.count(Math.min(nth + 1, hits.length))} of ${f.plural(hits.length, "slice")}` : "no slice"} <button type="button" onClick={() => nextHit(-1)} aria-label="previous match">‹</button><button type="button" onClick={() => nextHit(1)} aria-label="next match">›</button></span>}
        <label><span class="visually-hidden">tracks</span><input class="tracks-filter" type="search" placeholder="Tracks" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} /></label>
        {kinds.length > 0 && <label>what if<select value={query.after ?? ""} onChange={(e) => adjust({ after: e.currentTarget.value })}><option value="">as recorded</option>{(titles ?? []).map(([value, title]) => <option value={value}>{title}</option>)}</select></label>}
        {applied && <span class="after-note"><b>{f.ns(applied.before.step_ns)}</b> → <b class="good">{f.ns(applied.after.step_ns)}</b> a step, replayed</span>}
        <span class="grow" />
        <button type="button" onClick={focus} title="F">fit</button>
        <button type="button" onClick={statistics} title="R">statistics</button>
        <button type="button" onClick={() => void copyLink()} aria-label="copy link">link</button>
        <button type="button" onClick={() => { const b = trace(); if (b) openInPerfetto(b, index.title, say); }}>Perfetto</button>
        <button type="button" onClick={() => { const b = trace(); if (b) save(b, "purlin-trace.json"); }} aria-label="save trace">save</button>
        <button type="button" onClick={() => setPalette(true)} title="Ctrl+Shift+P">commands</button>
        <button type="button" onClick={() => setHelp(true)} title="?" aria-label="keys">?</button>
      </div>
      {props.lacks}
      {base.json.left_out > 0 && <p class="notice warn">{f.count(base.json.left_out)} launches are beyond the memory bound of the recording: they are in the sums, not here.</p>}
      <canvas ref={mini} class="tl-mini" aria-hidden="true" style={{ width: `${width}px`, height: `${kMini}px`, marginLeft: `${kGutter}px` }} onPointerDown={onMini} onPointerMove={onMini} />
      <div class="tl-scroll" ref={scroll} onScroll={(e) => { view.current.top = e.currentTarget.scrollTop; redraw(); }}>
        <div class="tl-stage" style={{ height: `${height + kHead}px` }}>
          <div class="tl-corner" aria-hidden="true" />
          <div class="tl-labels">
            {bands.map((band, i) => {
              const t = band.track, first = i === 0 || bands[i - 1].track.owner !== t.owner || bands[i - 1].track.kind === "thread" !== (t.kind === "thread");
              return (
                <div class={"tl-label" + (t.after ? " after" : "") + (first ? " first" : "")} style={{ top: `${band.y + kHead}px`, height: `${band.height}px` }} title={`${t.owner}, ${t.title}: ${f.plural(t.count, "slice")}`}>
                  {t.rows.length > 1 && <button type="button" aria-expanded={!collapsed.has(t)} aria-label={`${t.title} of ${t.owner}`} onClick={() => { const next = new Set(collapsed); next.has(t) ? next.delete(t) : next.add(t); setCollapsed(next); }}>{collapsed.has(t) ? "▸" : "▾"}</button>}
                  <span>{first && band.height > 34 ? <b>{f.device(t.owner)}</b> : null}{first && band.height <= 34 ? `${t.title} · ${f.device(t.owner)}` : t.title}</span>
                </div>
              );
            })}
          </div>
          <canvas ref={canvas} class="tl-canvas" aria-hidden="true" style={{ width: `${width}px`, height: `${size}px`, marginLeft: `${kGutter}px` }}
            onPointerDown={onDown} onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={() => { pointer.current = null; setHover(null); }} onDblClick={focus} />
          {hover && <div class="tl-tip" style={{ left: `${Math.min(hover.x + kGutter + 12, width + kGutter - 320)}px`, top: `${hover.y + view.current.top + 16}px` }} aria-hidden="true">{hover.text}</div>}
        </div>
      </div>
      <div class="tl-drawer">
        <Details data={props.data} base={base} selected={selected} area={area} tracks={tracks} show={(s) => show(s, true)} clear={() => setArea(null)} />
        <SliceGrid tracks={tracks} selected={selected} show={show} focus={focus} />
      </div>
      <p class="visually-hidden" role="status" aria-live="polite">{said}</p>
      {said && <div class="toast" aria-hidden="true" onClick={() => say("")}>{said}</div>}
      {help && <Help commands={commands} close={() => setHelp(false)} />}
      {palette && <Commands commands={commands} close={() => setPalette(false)} />}
    </div>
  );
}
