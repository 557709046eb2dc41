"""Tests of scripts/check_includes."""
import subprocess
import unittest

from test_links_and_layers import ROOT, Tree


class Includes(Tree):
    def found(self, source):
        self.write("src/base/text.h", "namespace purlin {\nstd::string format_bytes(double bytes);\nstruct Table {\n  int rows = 0;\n};\n}\n")
        self.write("src/base/all.h", '#include "base/text.h"\n')
        self.write("src/room/a.cc", source)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        subprocess.run(["git", "-C", self.root, "add", "."], check=True)
        done = self.run_script("check_includes", "--root", self.root)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return [line.split(": ")[1].split()[0] for line in done.stdout.splitlines()]

    def test_functions_and_types_out_of_sight(self):
        self.assertEqual(self.found("auto a = format_bytes(1);\n"), ["format_bytes"])
        self.assertEqual(self.found("Table table;\n"), ["Table"])

    def test_a_header_in_sight_is_enough(self):
        self.assertEqual(self.found('#include "base/text.h"\nauto a = format_bytes(1);\nTable t;\n'), [])
        self.assertEqual(self.found('#include "base/all.h"\nauto a = format_bytes(1);\nTable t;\n'), [])
        self.assertEqual(self.found('#include <base/all.h>\nauto a = format_bytes(1);\n'), [])

    def test_names_of_its_own_and_of_others(self):
        self.assertEqual(self.found("std::string format_bytes(int a);\nauto a = format_bytes(1);\n"), [])
        self.assertEqual(self.found("enum class Table { kA };\nTable t;\n"), [])
        self.assertEqual(self.found("template <class... Table>\nvoid f(Table... t);\n"), [])
        self.assertEqual(self.found("auto a = x.format_bytes(1), b = std::format_bytes(1), c = ::format_bytes(1);\n"), [])

    def test_comments_and_strings_are_no_code(self):
        self.assertEqual(self.found('// format_bytes(1)\nconst char* a = "format_bytes(1)";\n/* Table */\n'), [])

    def test_this_tree(self):
        done = self.run_script("check_includes", "--root", ROOT)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
