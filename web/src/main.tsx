// SPDX-License-Identifier: Apache-2.0
// The page: head with views and files, and the view that the URL names.
import { useEffect } from "preact/hooks";
import { has, head, index, moreScript } from "./data";
import * as f from "./format";
import { profile } from "./profile";
import { choose, chosen, type Choice as ThemeChoice } from "./theme";
import type { views as moreViews } from "./more";
import { Boundary, Choice, Empty, Loading, start, useLoaded } from "./ui";
import { adjust, link, place } from "./url";
import { Advice } from "./views/advice";
import { KernelTable } from "./views/kernel_table";
import { Overview } from "./views/overview";

const ofProfile = ["overview", "kernels", "roofline", "timeline", "advice"];
const views: [string, string, () => boolean][] = [
  ["overview", "Overview", () => has("report")], ["kernels", "Kernels", () => has("report")], ["roofline", "Roofline", () => has("report")],
  ["timeline", "Timeline", () => has("timeline")], ["advice", "Advice", () => has("advice")], ["compare", "Compare", () => has("diff")],
  ["tuning", "Tuning", () => has("tune")], ["guard", "Guard", () => ["guard", "history", "matrix", "bisect", "pairs"].some(has)],
  ["cache", "Cache", () => has("cache") && !has("report")],
];

// One of the views of more.js, which is run when the first of them is opened.
type More = typeof moreViews;
function Later<Name extends keyof More>(props: { name: Name; of?: Parameters<More[Name]>[0] }) {
  const views = useLoaded(async (): Promise<More> => { await moreScript(); return (globalThis as any).purlinViews; }, []);
  if (!views) return <Loading />;
  const View = views[props.name] as any;
  return <View {...props.of} />;
}

function OfProfile(props: { view: string; file: number }) {
  const data = useLoaded(() => profile(props.file), [props.file]);
  if (props.view === "advice" && !has("report")) return <AdviceAlone />;
  if (data === undefined) return has("report") ? <Loading /> : <Empty title="No profile">This page holds no profile.</Empty>;
  switch (props.view) {
    case "kernels": return place.value.arg ? <Later name="Kernel" of={{ data, id: place.value.arg }} /> : <div class="view"><KernelTable data={data} /></div>;
    case "roofline": return <Later name="Roofline" of={{ data }} />;
    case "timeline": return <Later name="Timeline" of={{ data }} key={props.file} />;
    case "advice": return <Advice data={data} open={place.value.arg} />;
    default: return <Overview data={data} />;
  }
}
function AdviceAlone() {
  const advice = useLoaded(() => head("advice"), []);
  return advice ? <Advice data={{ file: 0, report: {}, advice, diff: undefined, rows: [], unread: [] }} open={place.value.arg} /> : <Loading />;
}

function App() {
  const here = views.filter(([, , present]) => present());
  const wanted = place.value.view || index.view, view = views.some(([v]) => v === wanted) ? wanted : here[0]?.[0] ?? "overview";
  const file = Math.min(Math.max(0, Number(place.value.query.file ?? (index.files.length > 1 ? index.files.length - 1 : 0)) || 0), Math.max(0, index.files.length - 1));
  const title = here.find(([v]) => v === view)?.[1] ?? "Purlin";
  useEffect(() => { document.title = `${title} · ${f.base(index.title) || "Purlin"}`; scrollTo(0, 0); }, [view, place.value.arg]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")!.focus(); }}>To the content</a>
      <header class="top">
        <a class="brand" href={link(here[0]?.[0] ?? "overview")} aria-label="Purlin, first view"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M2 20 12 4l10 16" /><path d="M6.5 13h11M4 17h16" /></svg>purlin</a>
        <nav aria-label="Views">{here.map(([v, name]) => <a href={link(v)} aria-current={v === view ? "page" : undefined}>{name}</a>)}</nav>
        <span class="title" title={index.title}>{f.base(index.title)}</span>
        {index.files.length > 1 && ofProfile.includes(view) && <label class="files">file<select value={String(file)} onChange={(e) => adjust({ file: e.currentTarget.value })}>{index.files.map((x, i) => <option value={String(i)}>{f.base(x.path)}</option>)}</select></label>}
        <Choice<ThemeChoice> label="Colours" value={chosen.value} options={[["auto", "auto"], ["light", "light"], ["dark", "dark"]]} onChange={choose} />
      </header>
      <main id="main" tabIndex={-1} class={"of-" + view}>
        <Boundary place={view + place.value.arg + file}>
          {here.length === 0 ? <Empty title="An empty page">It holds no document that this version of the page can show.</Empty>
            : ofProfile.includes(view) ? <OfProfile view={view} file={file} /> : <Later key={view} name={({ compare: "Compare", tuning: "Tuning", cache: "Cache" } as const)[view as "compare"] ?? "Guard"}/>}
        </Boundary>
      </main>
    </>
  );
}

start(<App />);
