"""Tests of scripts/check_temporaries."""
import subprocess
import unittest

from test_links_and_layers import ROOT, Tree

HEADER = """
class Json {
 public:
  static Result<Json> parse(std::string_view text);
  const Array& items() const;
  const Json& operator[](std::string_view key) const;
  std::vector<std::string> keys() const;
  const T& value() const& { return x; }
  T&& value() && { return x; }
  std::span<const int> part() const;
  Array rows;
};
Json document();
const int* listed();
Result<Array> listed(int at);
Result<Json> read_document(std::string_view path);
const Json& kept();
"""


class Temporaries(Tree):
    def found(self, bodies):
        """The bodies with a finding, each once."""
        self.write("src/base/json.h", HEADER)
        self.write("src/room/a.cc", "\n".join(bodies) + "\n")
        subprocess.run(["git", "init", "-q", self.root], check=True)
        subprocess.run(["git", "-C", self.root, "add", "."], check=True)
        done = self.run_script("check_temporaries", "--root", self.root)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return [bodies[int(line.split(":")[1]) - 1] for line in done.stdout.splitlines()]

    @staticmethod
    def bodies(walked):
        return [form % one for one in walked for form in ("for (const Json& x : %s) g(x);", "const auto& x = %s;")]

    def test_parts_of_temporaries(self):
        wrong = self.bodies((
            'document()["a"].items()', "document().items()", "read_document(path).value()", "*read_document(x)",
            "read_document(path)->items()", "read_document(path).value().items()", "document().part()",
            "Json::parse(text)->items()", '(*Json::parse(text))["a"].items()', "other.document().items()",
            "read_document(g(1, h(2)))->rows", "document().keys().front()", "*other.listed(1)"))
        self.assertEqual(self.found(wrong), wrong)

    def test_what_the_loop_keeps(self):
        right = self.bodies((
            "document()", "document().keys()", "document().rows", "kept().items()", 'kept()["a"].items()', "json.items()",
            '(*json)["a"].items()', "*json", "{1, 2}", "made ? a : b", "std::array{1, 2}", "unknown().items()",
            "*table.load(order)"))
        right += ["for (int i = 0; i < n; ++i) g(i ? a : b);", "// for (x : document().items())",
                  "for (const Json one = document(); const Json& x : one.items()) g(x);"]
        self.assertEqual(self.found(right), [])

    def test_this_tree(self):
        done = self.run_script("check_temporaries", "--root", ROOT)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
