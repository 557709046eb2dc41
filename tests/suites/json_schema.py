#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""json_schema.py [--closed] SCHEMA DOCUMENT…: checks documents against a JSON Schema.

Knows the keywords that the schemas of docs/formats use and refuses a schema with others, so that
no rule goes unchecked. --closed also refuses members that a schema with `properties` does not
name: the documentation is to be complete, although readers must ignore what they do not know.
"""
import json
import re
import sys

ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "examples"}
KEYWORDS = {"$ref", "type", "properties", "required", "items", "enum", "const", "minimum", "maximum",
            "minItems", "maxItems", "additionalProperties", "pattern", "anyOf"}
TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


class Checker:
    def __init__(self, root, closed):
        self.root, self.closed, self.errors = root, closed, []

    def fail(self, where, text):
        if len(self.errors) < 20:
            self.errors.append(f"{where or '/'}: {text}")

    def resolve(self, reference):
        node = self.root
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return node

    def check(self, value, schema, where):
        unknown = set(schema) - ANNOTATIONS - KEYWORDS
        if unknown:
            raise SystemExit(f"the schema uses keywords that are not checked: {sorted(unknown)}")
        if "$ref" in schema:
            self.check(value, self.resolve(schema["$ref"]), where)
        if "anyOf" in schema:
            for option in schema["anyOf"]:
                attempt = Checker(self.root, self.closed)
                attempt.check(value, option, where)
                if not attempt.errors:
                    break
            else:
                self.fail(where, f"fits none of the alternatives: {json.dumps(value)[:80]}")
        if "type" in schema:
            kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(TYPES[kind](value) for kind in kinds):
                self.fail(where, f"{json.dumps(value)[:60]} is not of type {' or '.join(kinds)}")
                return
        if "const" in schema and value != schema["const"]:
            self.fail(where, f"{value!r} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            self.fail(where, f"{value!r} is none of {schema['enum']}")
        if TYPES["number"](value):
            if value < schema.get("minimum", value):
                self.fail(where, f"{value} is below {schema['minimum']}")
            if value > schema.get("maximum", value):
                self.fail(where, f"{value} is above {schema['maximum']}")
        if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
            self.fail(where, f"{value!r} does not match {schema['pattern']}")
        if isinstance(value, list):
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                self.fail(where, f"{len(value)} items")
            for i, item in enumerate(value):
                if "items" in schema:
                    self.check(item, schema["items"], f"{where}/{i}")
        if isinstance(value, dict):
            self.check_members(value, schema, where)

    def check_members(self, value, schema, where):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                self.fail(where, f"'{name}' is missing")
        for name, member in value.items():
            if name in properties:
                self.check(member, properties[name], f"{where}/{name}")
            elif isinstance(schema.get("additionalProperties"), dict):
                self.check(member, schema["additionalProperties"], f"{where}/{name}")
            elif schema.get("additionalProperties") is False or (self.closed and properties):
                self.fail(where, f"'{name}' is not described by the schema")


def main(arguments):
    closed = "--closed" in arguments
    schema_path, *documents = [a for a in arguments if a != "--closed"]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    bad = False
    for path in documents:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        checker = Checker(schema, closed)
        checker.check(document, schema, "")
        for error in checker.errors:
            print(f"{path}{error}", file=sys.stderr)
        bad |= bool(checker.errors)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
