"""The prose of a Markdown file: paragraphs, list items, table cells. Headings and code are left out."""
import re

from prose.text import Unit

_FENCE = re.compile(r"^\s*(?:>\s*)?(```+|~~~+)")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d+[.)])\s+")
_CELL = re.compile(r"(?<!\\)\|(?=(?:[^`]*`[^`]*`)*[^`]*$)")


def cells(row):
    """The cells of a table row; a bar inside inline code or after a backslash does not separate."""
    parts = _CELL.split(row.strip())
    if parts and not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    return [part.strip() for part in parts]


def is_rule_row(row):
    return bool(re.match(r"^[\s|:-]+$", row)) and "-" in row


def _blocks(text):
    """(line number, line, kind) with kind code, heading, row, blank, reference or prose."""
    fence, in_list, previous, comment = None, False, "blank", False
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if fence:
            kind = "code"
            if mark and mark.group(1).startswith(fence):
                fence = None
        elif comment or line.lstrip().startswith("<!--"):
            kind, comment = "comment", "-->" not in line
        elif mark:
            fence, kind = mark.group(1)[:3], "code"
        elif not line.strip():
            kind = "blank"
        elif re.match(r"^#{1,6}\s", line):
            kind, in_list = "heading", False
        elif re.match(r"^\s*\|", line):
            kind = "row"
        elif re.match(r"^\s*\[[^\]]+\]:\s*\S+", line):
            kind = "reference"
        elif line.startswith(("    ", "\t")) and not in_list and previous in ("blank", "code", "heading"):
            kind = "code"
        else:
            kind = "prose"
            if _ITEM.match(line):
                in_list = True
            elif not line.startswith(" ") and previous == "blank":
                in_list = False
        yield number, line, kind
        previous = kind


def units(text):
    """The units of prose, in order."""
    found, lines, first, kind = [], [], 0, "paragraph"

    def close():
        if lines:
            found.append(Unit(first, kind, "\n".join(lines)))
            lines.clear()

    for number, line, what in _blocks(text):
        if what == "row":
            close()
            if not is_rule_row(line):
                found.extend(Unit(number, "cell", cell) for cell in cells(line))
            continue
        if what != "prose":
            close()
            continue
        item = _ITEM.match(line)
        if item:
            close()
        body = line[item.end():] if item else re.sub(r"^\s*(?:>\s?)*", "", line)
        if not lines:
            first, kind = number, "item" if item else "paragraph"
        lines.append(body)
        if line.endswith(("  ", "\\")):
            close()
    close()
    return found


def wide_lines(text, limit):
    """(line number, width) of lines over the limit that could be broken; and the widest such line."""
    wide, widest = [], 0
    for number, line, what in _blocks(text):
        if what in ("code", "row", "reference", "comment"):
            continue
        body = _ITEM.sub("", line).strip().lstrip("#> ")
        if len(body.split()) <= 1:
            continue
        widest = max(widest, len(line))
        if len(line) > limit:
            wide.append((number, len(line)))
    return wide, widest
