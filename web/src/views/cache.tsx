// SPDX-License-Identifier: Apache-2.0
// The config cache alone, as `purlin cache ls --json` prints it.
import { head } from "../data";
import * as f from "../format";
import { Empty, Loading, Section, useLoaded } from "../ui";
import { Entries } from "./entries";

export function Cache() {
  const doc = useLoaded(() => head("cache"), []);
  if (!doc) return <Loading />;
  if (!doc.entries?.length) return <Empty title="No winner is stored">{doc.directory}: <code>purlin tune SPEC</code> fills it.</Empty>;
  return <div class="view"><Section title="Config cache" class="wide" note={`${f.plural(doc.entries.length, "winner")} in ${doc.directory}`}><Entries entries={doc.entries} /></Section></div>;
}
