"""Tests of scripts/check_names."""
import subprocess
import unittest

from test_links_and_layers import ROOT, Tree

REFERENCE = """# Command line

Options of every verb:

- `-q, --quiet`: Less.

## purlin report

- `FILE...`: Profiles.
- `--top N`: Rows.

## purlin cache get

- `-o, --output FILE`: File.
"""


class Names(Tree):
    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write("docs/reference/cli.md", REFERENCE)
        self.write("docs/reference/environment.md", "| `PURLIN_STATE` | records |\n")
        self.write("src/base/files.cc", 'environment_variable("PURLIN_STATE");\n')

    def found(self):
        done = self.run_script("check_names", "--root", self.root)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout.splitlines()

    def test_clean(self):
        self.write("docs/a.md", "`purlin report --top 3 -q a.plprof` and `--output`, `PURLIN_STATE`; `purlin help report`.\n"
                                "The purlin beam. `purlin cache` has sub-verbs, `purlin cache get -o x | sort --reverse`.\n"
                                "```\nX=1 purlin report $(ls -t) --top 2 -- ./program --its-own\n```\n")
        self.assertEqual(self.found(), [])

    def test_verbs_and_options(self):
        self.write("docs/a.md", "`purlin bench`\n`purlin cache gett`\n`purlin report --tpo 3`\n`--tpo`\n"
                                "```sh\npurlin repot a\n```\n")
        self.write("src/measure/timing.h", "// `purlin bench` times.\n")
        self.assertEqual(self.found(), ["docs/a.md:1: name: no verb 'purlin bench'",
                                        "docs/a.md:2: name: no verb 'purlin cache gett'",
                                        "docs/a.md:3: name: 'purlin report' has no option --tpo",
                                        "docs/a.md:4: name: no verb has --tpo",
                                        "docs/a.md:6: name: no verb 'purlin repot'",
                                        "src/measure/timing.h:1: name: no verb 'purlin bench'"])

    def test_paths_of_sources(self):
        self.write("src/measure/timing.h", "// See measure/clock.h, base/files.cc and src/base/files.cc.\n#include \"measure/gone.h\"\n")
        self.write("docs/a.md", "`src/cli/GROUP/VERB.cc`, `tests/suites/x.sh`, `src/base/files.cc`, `my/measure/x.h`\n")
        self.assertEqual(self.found(), ["docs/a.md:1: name: no file tests/suites/x.sh",
                                        "src/measure/timing.h:1: name: no file measure/clock.h"])

    def test_files_by_the_end_of_their_path(self):
        self.write("src/measure/deep/timing.h", "// See timing.h, deep/timing.h, cuda.h, clock.h and old/timing.h.\n"
                                                "#include \"gone.h\"\n")
        self.write("docs/a.md", "`timing.h` and `gone.cc`; `x.h`, <gone.h>\n")
        self.assertEqual(self.found(), ["docs/a.md:1: name: no file gone.cc",
                                        "src/measure/deep/timing.h:1: name: no file clock.h",
                                        "src/measure/deep/timing.h:1: name: no file old/timing.h"])

    def test_variables_of_the_hook(self):
        self.write("python/purlin_hook/hook.py", 'a = _number("PURLIN_STATE", 1)\nb = _number("PURLIN_MADE", 1)\n')
        self.assertEqual(self.found(), ["python/purlin_hook/hook.py:2: name: docs/reference/environment.md lacks PURLIN_MADE"])

    def test_hidden_verbs(self):
        self.write("src/cli/worker.cc", 'std::string_view name() const override { return "worker"; }\n'
                                        "bool hidden() const override { return true; }\n")
        self.write("docs/a.md", "`purlin worker --any`\n")
        self.assertEqual(self.found(), [])

    def test_variables(self):
        self.write("docs/a.md", "`PURLIN_GONE`\n")
        self.write("src/base/log.cc", 'std::getenv("PURLIN_NEW");\n')
        self.write("src/base/log_test.cc", 'std::getenv("PURLIN_OF_A_TEST");\n')
        self.assertEqual(self.found(), ["docs/a.md:1: name: no source has PURLIN_GONE",
                                        "src/base/log.cc:1: name: docs/reference/environment.md lacks PURLIN_NEW"])

    def test_this_tree(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a git checkout")
        done = self.run_script("check_names")
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
