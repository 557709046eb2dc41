"""Tests of scripts/check_unity."""
import subprocess
import unittest

from test_links_and_layers import ROOT, Tree


def source(body):
    return "namespace purlin::room {\nnamespace {\n\n" + body + "\n}  // namespace\n}  // namespace purlin::room\n"


class Unity(Tree):
    def setUp(self):
        super().setUp()
        self.write("src/room/CMakeLists.txt", "")
        self.write("src/other/CMakeLists.txt", "")

    def found(self):
        subprocess.run(["git", "init", "-q", self.root], check=True)
        subprocess.run(["git", "-C", self.root, "add", "."], check=True)
        done = self.run_script("check_unity", "--root", self.root)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout.splitlines()[:-1]

    def check(self, one, two, findings):
        self.write("src/room/a.cc", source(one))
        self.write("src/room/deep/b.cc", source(two))
        self.write("src/other/b.cc", source(two))  # another room: never compiled together
        found = self.found()
        self.assertEqual([line.split(" is also")[0].rpartition("::")[2] for line in found], findings)

    def test_variables(self):
        self.check("constexpr int kFew = 3;\n", "constexpr double\n    kMany = {7, 8},\n    kFew = 2;\n", ["kFew"])
        self.check("const std::map<int, int> kTable = {{1, 2}};\n", "std::mutex kTable;\n", ["kTable"])
        self.check("constexpr int kFew = 3;\n", "constexpr int kOthers = kFew2;\n", [])

    def test_functions_may_be_overloads(self):
        self.check("int f(int a) {\n}\n", "int f(const std::string& a) {\n}\n", [])
        self.check("int f(int a, bool b = true) {\n}\n", "double f(int first, bool second) {\n}\n", ["f(int,bool)"])

    def test_types(self):
        self.check("struct Row {\n};\n", "class Row : public Base {\n};\n", ["Row"])
        self.check("using Row = int;\n", "using Row = int;\n", [])
        self.check("using Row = int;\n", "using Row = double;\n", ["using Row"])

    def test_raw_strings_are_no_code(self):
        self.check("int a;\n", 'const char* kText = R"(\nint a;\n)";\n', [])

    def test_this_tree(self):
        done = self.run_script("check_unity", "--root", ROOT)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
