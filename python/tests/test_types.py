# SPDX-License-Identifier: Apache-2.0
"""The type stubs name what the sources have: functions, methods, parameters and their order."""
import ast
import os
import unittest

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "purlin")


def parse(name):
    with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
        return ast.parse(file.read())


def parameters(function):
    arguments = function.args
    named = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    required = len(arguments.posonlyargs + arguments.args) - len(arguments.defaults)
    return named, required, bool(arguments.vararg), bool(arguments.kwarg)


def public(tree, private=False):
    """Functions and classes by name; methods as CLASS.NAME."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found[node.name] = node
            found.update({"%s.%s" % (node.name, method.name): method
                          for method in node.body if isinstance(method, ast.FunctionDef)})
    special = ("__init__", "__enter__", "__exit__", "__getitem__")
    return {name: node for name, node in found.items()
            if private or not any(part.startswith("_") and part not in special for part in name.split("."))}


class StubTest(unittest.TestCase):
    def compare(self, stub, sources):
        declared = public(parse(stub))
        defined = {}
        for source in sources:
            defined.update(public(parse(source)))
        for name, node in declared.items():
            self.assertIn(name, defined, "%s declares %s" % (stub, name))
            if isinstance(node, ast.FunctionDef):
                self.assertEqual(parameters(node), parameters(defined[name]), name)
        return declared, defined

    def test_the_package(self):
        declared, defined = self.compare(
            "__init__.pyi", ["__init__.py", "_cache.py", "_command.py", "_library.py", "_range.py"])
        exported = next(ast.literal_eval(node.value) for node in parse("__init__.py").body
                        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
        self.assertEqual([name for name in exported if name not in declared], [])
        for kind in ("Cache", "Hit", "Op", "Range", "PurlinError"):
            methods = {name for name in defined if name.startswith(kind + ".") and name != kind + ".__init__"}
            self.assertEqual(methods - set(declared), set(), kind)

    def test_torch(self):
        declared, defined = self.compare("torch.pyi", ["torch.py"])
        functions = {name for name, node in defined.items() if isinstance(node, ast.FunctionDef) and "." not in name}
        self.assertEqual(functions - set(declared), set())


if __name__ == "__main__":
    unittest.main()
