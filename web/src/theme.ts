// SPDX-License-Identifier: Apache-2.0
// Light or dark: the system's, unless the user chose. Canvases redraw when `theme` changes.
import { signal } from "@preact/signals";

export type Choice = "auto" | "light" | "dark";
const key = "purlin-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored(): Choice {
  try { return (localStorage.getItem(key) as Choice) || "auto"; } catch { return "auto"; }
}
export const chosen = signal<Choice>(stored());
export const theme = signal<"light" | "dark">("light");

function apply() {
  theme.value = chosen.value === "auto" ? (dark.matches ? "dark" : "light") : chosen.value;
  document.documentElement.dataset.theme = theme.value;
}
export function choose(value: Choice) {
  chosen.value = value;
  try { localStorage.setItem(key, value); } catch { /* a page of file:// may have no storage */ }
  apply();
}
dark.addEventListener("change", apply);
apply();
