// SPDX-License-Identifier: Apache-2.0
// The page of `purlin serve`: the fleet's kernels, what got slower, nodes and the backlog, from the
// server's API (docs/formats/server.md). A separate script: it needs no charts and no timeline.
import { useEffect } from "preact/hooks";
import { choose, chosen, type Choice as ThemeChoice } from "../theme";
import { Boundary, Choice, start } from "../ui";
import { link, place } from "../url";
import { asking, token } from "./api";
import { Backlog } from "./backlog";
import { Compare } from "./compare";
import { Kernel } from "./kernel";
import { Kernels } from "./kernels";
import { Nodes } from "./nodes";
import { kept } from "./parts";

const views: [string, string, () => any][] = [["kernels", "Kernels", () => (place.value.arg ? <Kernel kernel={place.value.arg} key={place.value.arg} /> : <Kernels />)], ["compare", "Compare", Compare], ["nodes", "Nodes", Nodes], ["backlog", "Backlog", Backlog]];

function App() {
  // "kernels?kernel=NAME" was the place of a kernel before it had a view.
  const { view, arg, query } = place.value, named = view === "kernels" && !arg && query.kernel;
  useEffect(() => { if (named) { const { kernel, ...rest } = query; location.replace(link("kernels", kernel, rest)); } }, [named]);
  const [id, name, View] = views.find(([v]) => v === view) ?? views[0];
  void token.value;
  useEffect(() => { document.title = `${arg || name} · Purlin fleet`; scrollTo(0, 0); }, [name, arg]);
  return <>
    <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")!.focus(); }}>To the content</a>
    <header class="top"><a class="brand" href={link("kernels")} aria-label="Purlin, first view"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M2 20 12 4l10 16" /><path d="M6.5 13h11M4 17h16" /></svg>purlin</a><nav aria-label="Views">{views.map(([v, text]) => <a href={link(v, "", v === "backlog" ? {} : kept())} aria-current={v === id ? "page" : undefined}>{text}</a>)}</nav><span class="title">{asking.value > 0 && <span class="asking">asking…</span>}fleet at {location.host}</span><Choice<ThemeChoice> label="Colours" value={chosen.value} options={[["auto", "auto"], ["light", "light"], ["dark", "dark"]]} onChange={choose} /></header>
    <main id="main" tabIndex={-1} aria-busy={asking.value > 0}><Boundary place={id + arg}><View key={id} /></Boundary></main>
  </>;
}
start(<App />);
