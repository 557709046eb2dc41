"""The help text of a command-line program: pages by verb, units of prose, width."""
import os
import re
import subprocess

from prose.text import Unit


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"})
    return done.stdout or done.stderr


def pages(binary):
    """(name, text) of `BINARY help` and of `BINARY VERB --help` for each verb that it lists."""
    overview = _run([binary, "help"])
    if not overview.strip():
        raise ValueError(f"{binary} help prints nothing")
    yield "--help", overview
    verbs = dict.fromkeys(re.findall(r"^ {2,4}([a-z][a-z-]*(?: [a-z-]+)?)(?: {2,}|$)", overview, re.M))
    for verb in verbs:
        yield f"{verb} --help", _run([binary, *verb.split(), "--help"])


def units(text):
    """Paragraphs, and the right column of option and verb tables with its continuation lines."""
    found, lines, first, indent = [], [], 0, None

    def close():
        if lines:
            found.append(Unit(first, "cell", "\n".join(lines)))
            lines.clear()

    for number, line in enumerate(text.splitlines(), 1):
        depth = len(line) - len(line.lstrip())
        row = re.match(r"^ {1,8}\S.*? {2,}(?=\S)", line)
        option = re.match(r"^\s+-", line)
        if not line.strip() or re.match(r"^\s*[A-Za-z ]+:$", line):
            close()
            continue
        if row or option or (depth != indent and lines and depth < 10):
            close()
        if option and not row:
            indent = None
            continue  # the option alone: its text is on the next lines
        body = line[row.end():] if row else line.strip()
        if re.match(r"^(?:[Uu]sage:|\$ )", body) or re.match(r"^\s*(?:\$ )?purlin ", line):
            close()
            continue
        if not lines:
            first = number
        indent = depth
        lines.append(body)
    close()
    return found


def wide_lines(text, limit):
    """(line number, width) of lines over the limit, and the widest line."""
    widths = [(number, len(line)) for number, line in enumerate(text.splitlines(), 1)]
    return [w for w in widths if w[1] > limit], max((w for _, w in widths), default=0)
