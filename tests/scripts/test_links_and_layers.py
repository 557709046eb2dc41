"""Tests of scripts/check_links and scripts/check_layers."""
import importlib.util
import subprocess
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    loader = SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Tree(unittest.TestCase):
    """A folder of files that is gone after the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, body):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
        return path

    def run_script(self, name, *options):
        return subprocess.run([ROOT / "scripts" / name, *options], capture_output=True, text=True)


class Links(Tree):
    def test_slugs(self):
        slug = load("check_links").slug
        self.assertEqual(slug("What `a_b` is: *one*, [two](x) & 3"), "what-a_b-is-one-two--3")

    def test_files_and_anchors(self):
        self.write("b.md", "# One\n\n## One\n\n```\n# not one\n```\n")
        page = self.write("a.md", "[x](b.md) [y](b.md#one-1) [`b`](b.md#one) [u](https://x.y/z)\n`[s](gone.md)`\n"
                                  "[bad](b.md#not-one)\n[worse](gone.md)\n\n[r]: gone2.md\n")
        done = self.run_script("check_links", page)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.split("a.md:")[1] for line in done.stdout.splitlines()],
                         ["3: link: no such heading: b.md#not-one", "4: link: no such file: gone.md",
                          "6: link: no such file: gone2.md"])

    def test_clean_and_usage(self):
        self.assertEqual(self.run_script("check_links", self.write("a.md", "# A\n[a](#a)\n")).returncode, 0)
        self.assertEqual(self.run_script("check_links", self.root / "none.md").returncode, 2)

    def test_this_tree(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a git checkout")
        done = self.run_script("check_links")
        self.assertEqual((done.returncode, done.stdout), (0, ""))


class Layers(Tree):
    def setUp(self):
        super().setUp()
        for room, deps in (("base", ""), ("model", "DEPS base"), ("cache", "DEPS model base\n  LIBS x")):
            self.write(f"src/{room}/CMakeLists.txt", f"purlin_room({room} {deps})\n")

    def check(self, *options):
        done = self.run_script("check_layers", "--root", self.root, *options)
        return done.returncode, done.stdout, done.stderr

    def test_clean(self):
        self.write("src/cache/a.cc", '#include "model/x.h"\n#include "cache/in/b.h"\n#include "purlin/c.h"\n')
        self.assertEqual(self.check(), (0, "", ""))

    def test_upward_include(self):
        self.write("src/model/a.cc", '\n#include "cache/x.h"\n')
        code, out, _ = self.check()
        self.assertEqual(code, 1)
        self.assertIn("src/model/a.cc:2: layer: model includes cache/x.h", out)

    def test_upward_declaration(self):
        self.write("src/base/CMakeLists.txt", "purlin_room(base DEPS model)\n")
        code, out, _ = self.check()
        self.assertEqual(code, 1)
        self.assertIn("base declares model, which is above it", out)
        self.assertIn("cycle: rooms base -> model -> base", out)

    def test_cycle_of_sub_folders(self):
        self.write("src/cache/p/a.h", '#include "cache/q/b.h"\n')
        self.write("src/cache/q/b.h", '#include "cache/p/c.h"\n')
        code, out, _ = self.check()
        self.assertEqual(code, 1)
        self.assertIn("cache/p -> cache/q (src/cache/p/a.h:1), cache/q -> cache/p (src/cache/q/b.h:1)", out)

    def test_folders_and_what_contains_them_and_crowds(self):
        self.write("src/cache/a.h", '#include "cache/q/b.h"\n')
        self.write("src/cache/q/b.h", '#include "cache/c.h"\n')
        for number in range(21):
            self.write(f"src/model/n{number}.h", "")
            self.write(f"src/model/n{number}_test.cc", "")
        code, out, err = self.check()
        self.assertEqual((code, out), (0, ""))
        self.assertIn("src/model:1: ideas: 21", err)
        self.assertNotIn("cycle", err)
        code, out, err = self.check("--strict")
        self.assertEqual((code, err), (1, ""))
        self.assertEqual(len(out.splitlines()), 1)

    def test_usage(self):
        self.assertEqual(self.run_script("check_layers", "--root", self.root / "none").returncode, 2)


if __name__ == "__main__":
    unittest.main()
