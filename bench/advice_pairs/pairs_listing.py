# SPDX-License-Identifier: Apache-2.0
"""Lists the pairs of a file without PyTorch: `python3 pairs_listing.py pairs_seventh.py` prints name, rule, also and the half."""

import ast
import hashlib
import os
import sys


def pairs_of(path):
    """(name, rule, also, null) of each decorated function, those of the file's own parts first (pairs_seventh_steps.py)."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    folder, name = os.path.split(path)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith(name.removesuffix(".py") + "_"):
            yield from pairs_of(os.path.join(folder, node.module + ".py"))
        for call in getattr(node, "decorator_list", []):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("pair", "null"):
                rule, *also = [word.value for word in call.args]
                yield node.name, rule, also, call.func.id == "null"


def main():
    pairs = list(pairs_of(sys.argv[1]))
    for name, rule, also, is_null in pairs:
        half = "set aside" if hashlib.sha256(name.encode()).digest()[0] % 2 else "open"
        print(f"{'null' if is_null else 'pair'}  {half:9}  {name}: {rule}{''.join(', ' + word for word in also)}")
    nulls = sum(is_null for *_, is_null in pairs)
    print(f"{len(pairs) - nulls} pairs, {nulls} null pairs, {len({rule for _, rule, _, is_null in pairs if not is_null})} rules")


if __name__ == "__main__":
    main()
