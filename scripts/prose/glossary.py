"""The wrong words of docs/glossary.md: its table `wrong | right | except`.

A cell of `wrong` holds patterns in inline code. A pattern matches whole words in any case; `*` at the end of a
word stands for any ending. A match inside a phrase of `except` is right.
"""
import re
from dataclasses import dataclass

from prose.markdown import cells, is_rule_row

_CODE = re.compile(r"`([^`]+)`")


@dataclass
class Term:
    """One row: what must not stand, what should instead."""
    wrong: re.Pattern
    right: str
    allowed: re.Pattern | None

    def matches(self, text):
        spans = [m.span() for m in self.allowed.finditer(text)] if self.allowed else []
        for match in self.wrong.finditer(text):
            if not any(a <= match.start() and match.end() <= b for a, b in spans):
                yield match


def _pattern(phrases):
    options = []
    for phrase in phrases:
        words = [re.escape(word).replace(r"\*", r"\w*") for word in phrase.split()]
        options.append(r"\s+".join(words).replace("'", "['’]"))
    return re.compile(r"(?<![\w'’])(?:" + "|".join(options) + r")(?!\w)", re.I) if options else None


def parse(text):
    """The terms of the glossary's text."""
    terms, header = [], None
    for line in text.splitlines():
        if not line.lstrip().startswith("|"):
            header = None
            continue
        row = cells(line)
        if header is None:
            header = [cell.lower() for cell in row]
        elif header[:2] == ["wrong", "right"] and not is_rule_row(line):
            allowed = _CODE.findall(row[2]) if len(row) > 2 else []
            terms.append(Term(_pattern(_CODE.findall(row[0])), row[1].replace("`", ""), _pattern(allowed)))
    return [term for term in terms if term.wrong]
