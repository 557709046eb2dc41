#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the command blocks of the documentation, page by page.

  docs_examples.py list  PAGE…        every block, and whether it runs
  docs_examples.py run   SANDBOX PAGE…

A block of commands has the language `sh`. Every other block has another language, such as `text` for
an output. Where a `text` block begins with `$ purlin …`, the rest is what that command prints at 100
columns. A line `…` in it stands for any lines, and `…` at the end of a line for the rest of that line.
A comment in front of a block says what is particular to it:

  <!-- not run: REASON -->            it needs a GPU, a network, another machine
  <!-- exit: 0 3 -->                  the exit codes that are right (default: 0)

SANDBOX is the folder that the suite has filled with the files that the pages name. Each page gets a
copy of it, and its blocks run in order. What differs between a page and the sandbox is in STAND_INS.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"((?:<!--[^\n]*-->\n)*)^```([^\n]*)\n(.*?)^```", re.S | re.M)
# Programs and sizes of the pages, and what runs in their place: the pages are about GPUs.
STAND_INS = [
    (r"python3? (train|serve)\.py", "opencl_loop launches 20"),
    (r"\./my_program --its --options|\./program|\./train\b", "opencl_loop launches 20"),
    (r"M=4096,N=4096,K=(4096|14336)|M=1024,N=1024,K=1024", "M=64,N=64,K=64"),
    (r"M=600,N=1024,K=1024", "M=40,N=64,K=64"),
    (r"--shape large", "--shape M=64,N=64,K=64"),
    (r"R=8192,C=1024", "R=16,C=64"),
    (r"--budget (60s|80)\b", "--budget 3"),
    (r"--bucket-regret 4 --regret-budget 50", "--bucket-regret 2 --regret-budget 2"),
    (r"--device cuda:0", "--device opencl:0"),
    (r"ssh node cat", "cat"),
    (r"purlin export run\.plprof", "purlin export timeline.plprof"),  # of OpenCL, --full records one
]


class Block:
    def __init__(self, page, line, comments, language, text):
        self.page, self.line, self.language, self.text = page, line, language, text
        marks = dict(re.findall(r"<!-- (not run|exit): (.*?) -->", comments))
        self.reason = marks.get("not run", "")
        self.codes = [int(code) for code in marks.get("exit", "0").split()]

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    def script(self):
        text = self.text
        for pattern, stand_in in STAND_INS:
            text = re.sub(pattern, stand_in, text)
        # The default budget is for a GPU.
        return re.sub(r"purlin tune (?![^\n&|]*--budget)", "purlin tune --budget 3 ", text)


def blocks_of(root, page):
    text = (root / page).read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        yield Block(page, line, match[1], match[2].strip(), match[3])


def complaints(blocks):
    for block in blocks:
        if not block.language:
            yield f"{block.place}: a block without a language: write sh for commands, text for output"
        if block.language != "sh" and re.search(r"^(\$ )?purlin \w", block.text, re.M) and block.language != "text":
            yield f"{block.place}: commands in a block of {block.language}: give it the language sh"
        if block.reason and block.language != "sh":
            yield f"{block.place}: 'not run' belongs to a block of sh"


def run_page(blocks, sandbox, folder):
    """The failures of a page's blocks."""
    shutil.copytree(sandbox, folder, symlinks=True)
    failures = []
    for block in blocks:
        done = subprocess.run(["timeout", "300", "bash", "-euo", "pipefail", "-c", block.script()], cwd=folder,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        print(f"  {block.place}: exit code {done.returncode}", flush=True)
        if done.returncode not in block.codes:
            failures.append(f"{block.place}: exit code {done.returncode} where {block.codes} was expected:\n"
                            f"{block.script()}{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return failures


def as_documented(wanted, printed):
    """None, or the first line of the block that the command does not print in its place."""
    at, anywhere = 0, False
    for line in wanted:
        if line == "…":
            anywhere = True
            continue
        begins = line[:-1] if line.endswith("…") else None
        fits = [i for i in range(at, len(printed) if anywhere else min(at + 1, len(printed)))
                if (printed[i].startswith(begins) if begins is not None else printed[i] == line)]
        if not fits:
            return line
        at, anywhere = fits[0] + 1, False
    return None if anywhere or at == len(printed) else "(the end)"


def check_outputs(blocks, sandbox):
    failures = []
    for block in blocks:
        command, _, wanted = block.text.partition("\n")
        done = subprocess.run(["timeout", "60", "bash", "-c", command[2:] + " --color never"], cwd=sandbox, text=True,
                              env={**os.environ, "COLUMNS": "100", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        printed = [line.rstrip() for line in done.stdout.splitlines()]
        missing = as_documented([line.rstrip() for line in wanted.splitlines()], printed)
        print(f"  {block.place}: output {'differs' if missing else 'as documented'}", flush=True)
        if missing:
            failures.append(f"{block.place}: '{missing}' is not what this prints:\n{command}\n{done.stdout}{done.stderr}")
    return failures


def main():
    what, root = sys.argv[1], pathlib.Path(__file__).resolve().parents[2]
    pages = sys.argv[2 if what == "list" else 3:]
    all_blocks = [block for page in pages for block in blocks_of(root, page)]
    failures = list(complaints(all_blocks))
    commands = [block for block in all_blocks if block.language == "sh"]
    left_out = [block for block in commands if block.reason]
    print(f"{len(commands)} blocks of commands, {len(left_out)} not run:")
    for block in left_out:
        print(f"  {block.place}: {block.reason}")
    if what == "run" and not failures:
        sandbox = pathlib.Path(sys.argv[2])
        failures += check_outputs([block for block in all_blocks if block.language == "text"
                                   and block.text.startswith("$ purlin ")], sandbox)
        for number, page in enumerate(pages):
            runs = [block for block in commands if block.page == page and not block.reason]
            if runs:
                failures += run_page(runs, sandbox, sandbox.with_name(f"page{number}"))
    print("\n".join(failures), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
