# SPDX-License-Identifier: Apache-2.0
"""Renders a Helm chart with the part of its template language that deploy/helm uses: fields, pipes,
if, with, range, define, include and a few functions. What it does not know is an error.

helm_template.go does the same with Go's own templates; deploy.sh compares the two where Go is there.
"""
import json
import re
from pathlib import Path

import yaml

TOKEN = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.S)
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\(|\)|\||[^\s()|]+')


class Chart:
    def __init__(self, folder, values=None, release="purlin", namespace="purlin"):
        self.folder = Path(folder)
        facts = yaml.safe_load((self.folder / "Chart.yaml").read_text())
        defaults = yaml.safe_load((self.folder / "values.yaml").read_text())
        self.root = {
            "Values": merged(defaults, values or {}),
            "Chart": {"Name": facts["name"], "Version": facts["version"], "AppVersion": facts["appVersion"]},
            "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
        }
        self.defined = {}
        self.trees = {}
        for file in sorted((self.folder / "templates").iterdir()):
            self.trees[file.name] = self.parse(file.read_text(), file.name)

    def render(self):
        """The text of each file of templates/ by its name."""
        return {name: self.run(tree, self.root) for name, tree in self.trees.items() if not name.startswith("_")}

    def parse(self, text, name):
        pieces, at, trim = [], 0, False
        for match in TOKEN.finditer(text):
            before = text[at:match.start()]
            before = before.lstrip() if trim else before
            pieces.append(before.rstrip() if match.group(1) else before)
            pieces.append((match.group(2),))
            at, trim = match.end(), bool(match.group(3))
        pieces.append(text[at:].lstrip() if trim else text[at:])
        tree, rest = self.block(pieces, name)
        if rest:
            raise ValueError(f"{name}: an end without its begin")
        return tree

    def block(self, pieces, name):
        """The nodes up to the end that belongs to it, and what follows from that end on."""
        nodes = []
        while pieces:
            piece, pieces = pieces[0], pieces[1:]
            if isinstance(piece, str):
                nodes.append(piece)
                continue
            action = piece[0]
            word, _, rest = action.partition(" ")
            if action.startswith("/*"):
                continue
            if action in ("end", "else"):
                return nodes, [piece] + pieces
            if word not in ("if", "with", "range", "define"):
                nodes.append(("print", WORD.findall(action)))
                continue
            body, pieces = self.block(pieces, name)
            otherwise = []
            if pieces and pieces[0][0] == "else":
                otherwise, pieces = self.block(pieces[1:], name)
            if not pieces:
                raise ValueError(f"{name}: {{{{ {action} }}}} has no end")
            pieces = pieces[1:]
            if word == "define":
                self.defined[json.loads(rest)] = body
            else:
                nodes.append((word, WORD.findall(rest), body, otherwise))
        return nodes, []

    def run(self, tree, dot):
        out = []
        for node in tree:
            if isinstance(node, str):
                out.append(node)
            elif node[0] == "print":
                value = self.pipe(node[1], dot)
                out.append(str(value).lower() if isinstance(value, bool) else str(value))
            elif node[0] == "range":
                for item in self.pipe(node[1], dot):
                    out.append(self.run(node[2], item))
            else:
                value = self.pipe(node[1], dot)
                out.append(self.run(node[2], value if node[0] == "with" else dot) if value else self.run(node[3], dot))
        return "".join(out)

    def pipe(self, words, dot):
        value, given, words = None, False, list(words)
        while words:
            end = top_level(words, "|")
            value = self.call(words[:end], dot, [value] if given else [])
            given, words = True, words[end + 1:]
        return value

    def call(self, words, dot, last):
        arguments = []
        while words:
            if words[0] == "(":
                end = top_level(words[1:], ")") + 1
                arguments.append(self.pipe(words[1:end], dot))
                words = words[end + 1:]
                continue
            arguments.append(self.value(words[0], dot) if arguments or words[0][0] in '."' else ("function", words[0]))
            words = words[1:]
        if isinstance(arguments[0], tuple):
            return self.function(arguments[0][1], arguments[1:] + last)
        if len(arguments) + len(last) != 1:
            raise ValueError(f"{arguments} is no function")
        return arguments[0]

    def value(self, word, dot):
        if word[0] == '"':
            return json.loads(word)
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        if word == ".":
            return dot
        if not re.fullmatch(r"(\.\w+)+", word):
            raise ValueError(f"'{word}' is not understood")
        for part in word[1:].split("."):
            if part not in dot:
                raise ValueError(f"no value {word}")
            dot = dot[part]
        return dot

    def function(self, name, given):
        if name == "include":
            return self.run(self.defined[given[0]], given[1])
        if name == "default":
            return given[1] or given[0]
        if name == "quote":
            return json.dumps(str(given[0]))
        if name == "upper":
            return given[0].upper()
        if name == "printf":
            return given[0] % tuple(given[1:])
        if name == "toYaml":
            return yaml.safe_dump(given[0], default_flow_style=False).rstrip("\n")
        if name == "nindent":
            return "\n" + "\n".join(" " * given[0] + line for line in given[1].split("\n"))
        raise ValueError(f"no function {name}")


def top_level(words, wanted):
    depth = 0
    for index, word in enumerate(words):
        if depth == 0 and word == wanted:
            return index
        depth += (word == "(") - (word == ")")
    return len(words)


def merged(defaults, values):
    out = dict(defaults)
    for key, value in values.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out
