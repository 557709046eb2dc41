// SPDX-License-Identifier: Apache-2.0
// The command palette and the list of keys.
import { useEffect, useRef, useState } from "preact/hooks";

export interface Command { name: string; keys: string; run: () => void }

function Dialog(props: { label: string; close: () => void; children: any }) {
  const node = useRef<HTMLDialogElement>(null);
  useEffect(() => { node.current!.showModal(); }, []);
  return <dialog ref={node} aria-label={props.label} onClose={props.close} onClick={(e) => { if (e.target === node.current) node.current!.close(); }}>{props.children}</dialog>;
}

export function Help(props: { commands: Command[]; close: () => void }) {
  const keys: [string, string][] = [["W S", "zoom at the pointer"], ["A D", "move in time"], ["Ctrl wheel", "zoom"], ["Shift wheel, Shift drag", "move in time"], ["drag", "select an area"], ["click", "select a slice"], ["Ctrl Shift P", "commands"],
    ...props.commands.filter((c) => c.keys).map((c): [string, string] => [c.keys, c.name])];
  return (
    <Dialog label="Keys" close={props.close}>
      <h2>Keys</h2>
      <dl class="keys">{keys.map(([key, name]) => <div><dt>{key.split(" ").map((k) => <kbd>{k}</kbd>)}</dt><dd>{name}</dd></div>)}</dl>
      <p class="faint">Letters are those of the place on the keyboard, on every layout.</p>
      <form method="dialog"><button>Close</button></form>
    </Dialog>
  );
}

export function Palette(props: { commands: Command[]; close: () => void }) {
  const [text, setText] = useState(""), [at, setAt] = useState(0);
  const letters = text.toLowerCase().replace(/\s/g, "");
  const fuzzy = (name: string) => { let i = 0; for (const c of name.toLowerCase()) if (c === letters[i]) ++i; return i >= letters.length; };
  const shown = props.commands.filter((c) => fuzzy(c.name)), chosen = shown[Math.min(at, shown.length - 1)];
  const run = (c?: Command) => { props.close(); c?.run(); };
  return (
    <Dialog label="Commands" close={props.close}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="commands" aria-activedescendant={chosen ? `command-${shown.indexOf(chosen)}` : undefined} aria-label="Command" placeholder="Command" value={text} autofocus
        onInput={(e) => { setText(e.currentTarget.value); setAt(0); }}
        onKeyDown={(e) => { if (e.key === "ArrowDown") setAt(Math.min(at + 1, shown.length - 1)); else if (e.key === "ArrowUp") setAt(Math.max(0, at - 1)); else if (e.key === "Enter") run(chosen); else return; e.preventDefault(); }} />
      <ul id="commands" role="listbox" class="commands" aria-label="Commands">{shown.map((c, i) => <li role="option" id={`command-${i}`} aria-selected={c === chosen} onClick={() => run(c)}>{c.name}{c.keys && <kbd>{c.keys}</kbd>}</li>)}</ul>
    </Dialog>
  );
}
