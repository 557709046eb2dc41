"""The prose of source files: comments of C, C++ and Python, and string literals of C++ that read as prose."""
import io
import re
import tokenize

from prose.text import BREAK, Unit

_TOKEN = re.compile(r"""
      (?P<raw>R"(?P<tag>[^(\s"]*)\(.*?\)(?P=tag)")
    | (?P<string>"(?:\\.|[^"\\\n])*")
    | (?P<number>\b\d[\w']*)
    | (?P<char>'(?:\\.|[^'\\\n])+')
    | (?P<line>//[^\n]*)
    | (?P<block>/\*.*?\*/)
    """, re.X | re.S)
_NOT_PROSE = re.compile(r"^\s*(?:namespace\b|NOLINT|clang-format|IWYU|#|extern\b|SPDX|[-=~*/]{4,}|[{}]|TODO\()")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


def _paragraphs(lines, kind):
    """Units of the (number, text) lines of one comment block: blank lines and list markers part them."""
    found, open_lines, first, in_item, after_gap = [], [], 0, False, True

    def close():
        if open_lines:
            found.append(Unit(first, kind, "\n".join(open_lines)))
            open_lines.clear()

    for number, text in lines:
        if not text.strip() or _NOT_PROSE.match(text):
            close()
            in_item, after_gap = False, True
            continue
        item = _ITEM.match(text)
        indent = len(text) - len(text.lstrip())
        ends_in_colon = bool(open_lines) and open_lines[-1].rstrip().endswith(":")
        if not item and not in_item and indent >= 3 and (after_gap or ends_in_colon):
            close()  # a sample: not prose, and the lines below it neither
            after_gap = True
            continue
        if item:
            close()
            in_item = True
        if not open_lines:
            first = number
        open_lines.append(text[item.end():] if item else text.strip())
        after_gap = False
    close()
    return found


def _comment_blocks(pieces, kind):
    """Units of (line, column, text) comment lines: neighbours in one column are one block."""
    found, block, last = [], [], None
    for number, column, text in pieces:
        if block and last != (number - 1, column):
            found += _paragraphs(block, kind)
            block = []
        block.append((number, text))
        last = (number, column)
    return found + _paragraphs(block, kind)


def c_units(text, with_strings):
    """Comments of C or C++ text; with_strings: and its string literals that look like prose."""
    starts = [0] + [m.end() for m in re.finditer("\n", text)]
    pieces, literals, line_no, cursor = [], [], 1, 0
    for token in _TOKEN.finditer(text):
        line_no += text.count("\n", cursor, token.start())
        cursor = token.start()
        column = token.start() - starts[line_no - 1]
        if token.lastgroup == "line":
            pieces.append((line_no, column, re.sub(r"^//[/!]?<?\s?", "", token.group(0))))
        elif token.lastgroup == "block":
            for row, body in enumerate(token.group(0)[2:-2].split("\n")):
                pieces.append((line_no + row, column, re.sub(r"^\s*\*+ ?", "", body) if row else body.lstrip("*! ")))
        elif token.group("string") and with_strings:
            line_start = text[starts[line_no - 1]:token.start()].lstrip()
            if not line_start.startswith("#include"):
                literals.append((line_no, token.start(), token.end(), token.group(0)[1:-1]))
    found = _comment_blocks(pieces, "comment")
    return found + _string_units(text, literals) if with_strings else found


def _string_units(text, literals):
    """Adjacent literals are one text. What does not look like prose is left out."""
    found, end = [], -1
    for number, start, stop, body in literals:
        if found and text[end:start].strip() == "" and end >= 0:
            previous = found[-1]
            gap = number - previous.line - previous.text.count("\n")
            previous.text += "\n" * gap + body
        else:
            found.append(Unit(number, "string", body))
        end = stop
    result = []
    for unit in found:
        unit.text = re.sub(r"\\n|\|(?=\n*[A-Za-z0-9])", BREAK, unit.text)  # lists of texts have | between them
        unit.text = re.sub(r"\\[\"'\\]", "'", unit.text)
        unit.text = re.sub(r"\{[^{}\s]*\}|%[-\d.*]*[a-z]", "X", unit.text)
        if looks_like_prose(unit.text):
            result.append(unit)
    return result


def looks_like_prose(text):
    """At least four words of letters, and no sign of SQL, markup, code or a regular expression."""
    if re.search(r"\b(?:SELECT|INSERT|CREATE TABLE|PRAGMA|UPDATE|DELETE FROM)\b|</?[a-z]+[ >]|\\x|#include|__kernel"
                 r"|;\s*(?:" + BREAK + r"|\})|\{\{|==|\(\?:|\\\\[wsdb]", text):
        return False
    words = re.findall(r"(?<![\w.-])[A-Za-z][a-z']*(?![\w=(])", text)
    return len(words) >= 4 and sum(map(len, words)) * 2 >= len(re.sub(r"\s", "", text))


def python_units(text):
    """Comments and docstrings of Python."""
    pieces, docs, fresh = [], [], True
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                if not token.string.startswith("#!"):
                    pieces.append((*token.start, token.string.lstrip("#").removeprefix(" ")))
                continue
            if token.type == tokenize.STRING and fresh:
                body = re.sub(r"^[rRuUbB]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')$", "", token.string).split("\n")
                margin = min((len(b) - len(b.lstrip()) for b in body[1:] if b.strip()), default=0)
                lines = [body[0]] + [b[margin:] for b in body[1:]]
                docs += _paragraphs([(token.start[0] + i, b) for i, b in enumerate(lines)], "comment")
            if token.type not in (tokenize.NL,):
                fresh = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    except (tokenize.TokenError, IndentationError):
        pass
    return _comment_blocks(pieces, "comment") + docs
