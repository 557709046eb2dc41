"""Plain text from marked-up text, and its sentences. Line breaks stay, so offsets still give line numbers."""
import re
from dataclasses import dataclass

BREAK = "\u2029"  # ends a sentence wherever it stands
CODE = "CODE"     # one word, for what is not prose


@dataclass
class Unit:
    """A paragraph, list item, table cell, comment paragraph or string literal, starting at `line`."""
    line: int
    kind: str
    text: str


def _as_code(match):
    return CODE + "\n" * match.group(0).count("\n")


def _keep(group):
    return lambda m: m.group(group) + "\n" * (m.group(0).count("\n") - m.group(group).count("\n"))


_IDENTIFIER = re.compile(r"""(?<![\w./])(?!(?:e\.g|i\.e)\b)(?:
      [\w.-]+(?:/[\w.-]+)+\.\w+                        # a/file.ext
    | --?[A-Za-z][\w-]*(?:=[\w,.:]+)?                  # --flag, --flag=value
    | (?:\.{0,2}/)[\w.{}*-]+(?:/[\w.{}*-]+)*\w         # /a/path, ./a/path
    | [A-Za-z]\w*(?:(?:::|->|\.)\w+)+(?:\(\))?         # a::b, a->b, file.ext
    | [A-Za-z]\w*\(\)                                  # call()
    | \w*[A-Za-z0-9]_\w+ | _\w+                        # snake_case
    | k[A-Z]\w* | [a-z]+[A-Z]\w+ | [A-Z][a-z0-9]+[A-Z]\w*   # kName, camelCase, CamelCase
    )(?:/[\w.-]*\w)*""", re.X)

_STEPS = (
    (re.compile(r"<!--.*?-->", re.S), lambda m: "\n" * m.group(0).count("\n")),
    (re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S), _as_code),
    (re.compile(r"!\[([^\]]*)\]\([^)]*\)"), lambda m: "\n" * m.group(0).count("\n")),
    (re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)"), _keep(1)),
    (re.compile(r"\[([^\[\]]+)\]\[[^\]]*\]"), _keep(1)),
    (re.compile(r"<?\bhttps?://[^\s>)]*[^\s>).,;:]>?"), _as_code),
    (re.compile(r"</?[A-Za-z][^<>\n]*>"), lambda m: ""),
    (re.compile(r"\*{1,3}(?=\S)([^*]+?)(?<=\S)\*{1,3}"), _keep(1)),
    (re.compile(r"(?<!\w)_{1,2}(?=\S)([^_]+?)(?<=\S)_{1,2}(?!\w)"), _keep(1)),
)


def plain(text):
    """Without Markdown: code, URLs and identifiers become one word each, links their text."""
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return _IDENTIFIER.sub(_as_code, text)


_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|" + BREAK)
_NEVER_END = re.compile(r"(?:^|[\s(\[\"'“])(?:e\.g|i\.e|vs|cf|viz|approx|fig|eq|sec|incl|resp|dr|mr|ms|st|ca)\.$", re.I)
_STARTS = re.compile(r"[\s]*[\"'“‘(\[]*(?:[A-Z0-9À-Þ{$§]|$)")


def sentences(text):
    """(offset, sentence) of each sentence of plain text."""
    found, start = [], 0
    for end in _END.finditer(text):
        upto = text[:end.end()]
        if end.group(0) != BREAK:
            if _NEVER_END.search(upto[-12:]) or not _STARTS.match(text, end.end()):
                continue
            if re.search(r"\b[Nn]o\.$", upto) and re.match(r"\s*\d", text[end.end():]):
                continue
        found.append((start, text[start:end.end()]))
        start = end.end()
    found.append((start, text[start:]))
    result = []
    for offset, sentence in found:
        bare = sentence.lstrip()
        offset += len(sentence) - len(bare)
        bare = bare.replace(BREAK, " ").rstrip()
        if word_count(bare):
            result.append((offset, bare))
    return result


def word_count(text):
    """Tokens between spaces that hold a letter or a digit; an em dash also separates."""
    return sum(any(c.isalnum() for c in token) for token in re.split(r"[\s—]+", text))
