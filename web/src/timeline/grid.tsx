// SPDX-License-Identifier: Apache-2.0
// The timeline's mirror for keyboards and screen readers: a virtual grid of the slices of one row of
// a track. Up and down move through slices, left and right through tracks; each move is one sentence.
import { useEffect, useRef, useState } from "preact/hooks";
import * as f from "../format";
import { sentence } from "./details";
import type { Row, Track } from "./model";
import type { Selection } from "./timeline";

const kShown = 9;

export function SliceGrid(props: { tracks: Track[]; selected: Selection | null; show: (s: Selection | null) => void; focus: () => void }) {
  const { tracks, selected } = props;
  const [at, setAt] = useState({ track: 0, row: 0 });
  const table = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!selected) return;
    const n = tracks.findIndex((t) => t.all === selected.all && selected.slice >= t.first && selected.slice < t.first + t.count);
    if (n >= 0) setAt({ track: n, row: Math.max(0, selected.all.rowOf(tracks[n], selected.slice)) });
  }, [selected, tracks]);
  const track = tracks[Math.min(at.track, tracks.length - 1)];
  const row: Row | undefined = track?.rows[Math.min(at.row, track.rows.length - 1)];
  if (!track || !row) return <div class="slices"><p class="faint">No track is shown.</p></div>;
  const all = track.all, inside = selected && selected.all === all && selected.slice >= row.first && selected.slice < row.first + row.count;
  const current = inside ? selected!.slice : row.first;
  const first = Math.max(row.first, Math.min(current - Math.floor(kShown / 2), row.first + row.count - kShown)), last = Math.min(row.first + row.count, first + kShown);
  const goTo = (t: number, r: number) => {
    const next = tracks[t]?.rows[r];
    if (!next) return;
    setAt({ track: t, row: r });
    // The slice nearest in time.
    const time = inside ? all.begin[current] : 0, found = Math.min(next.firstEndingAfter(time), next.first + next.count - 1);
    props.show({ all: tracks[t].all, slice: found });
  };
  const onKey = (e: KeyboardEvent) => {
    const to = (slice: number) => props.show({ all, slice: Math.max(row.first, Math.min(row.first + row.count - 1, slice)) });
    switch (e.key) {
      case "ArrowDown": to(inside ? current + 1 : row.first); break;
      case "ArrowUp": to(inside ? current - 1 : row.first); break;
      case "PageDown": to(current + kShown); break;
      case "PageUp": to(current - kShown); break;
      case "Home": to(row.first); break;
      case "End": to(row.first + row.count - 1); break;
      case "ArrowRight": at.row + 1 < track.rows.length ? goTo(at.track, at.row + 1) : goTo(at.track + 1, 0); break;
      case "ArrowLeft": at.row > 0 ? goTo(at.track, at.row - 1) : at.track > 0 && goTo(at.track - 1, tracks[at.track - 1].rows.length - 1); break;
      case "Enter": case "f": props.focus(); break;
      default: return;
    }
    e.preventDefault();
    e.stopPropagation();
  };
  const rows: number[] = [];
  for (let i = first; i < last; ++i) rows.push(i);
  return (
    <div class="slices">
      <label>slices of<select value={`${at.track}.${at.row}`} onChange={(e) => { const [t, r] = e.currentTarget.value.split(".").map(Number); goTo(t, r); }}>
        {tracks.slice(0, 300).flatMap((t, n) => t.rows.slice(0, 20).map((r, k) => <option value={`${n}.${k}`}>{t.owner}, {t.title}{t.rows.length > 1 ? `, row ${k + 1}` : ""} ({f.count(r.count)})</option>))}</select></label>
      <div role="grid" ref={table} tabIndex={0} aria-label={`Slices of ${track.title} of ${track.owner}. Up and down: slices. Left and right: tracks. Enter: zoom`} aria-rowcount={row.count + 1} aria-colcount={3}
        aria-activedescendant={inside ? `slice-${current}` : undefined} onKeyDown={onKey}>
        <div role="row" aria-rowindex={1} class="slice-head"><span role="columnheader">begins</span><span role="columnheader">duration</span><span role="columnheader">name</span></div>
        {rows.map((i) => (
          <div role="row" key={i} id={`slice-${i}`} aria-rowindex={i - row.first + 2} aria-selected={inside === true && i === current} class="slice-row" onClick={() => props.show({ all, slice: i })}>
            <span role="gridcell">{f.moment(all.begin[i])}</span><span role="gridcell">{f.ns(all.duration[i])}</span><span role="gridcell" class="clipped">{f.words(all.items[all.item[i]].name)}</span>
          </div>
        ))}
      </div>
      <p class="visually-hidden" aria-live="polite">{selected ? sentence(selected.all, selected.slice) : ""}</p>
    </div>
  );
}
