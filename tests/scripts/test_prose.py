"""Tests of scripts/check_prose and its modules."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from prose import glossary, helptext, markdown, source, text  # noqa: E402


def split(words):
    return [sentence for _, sentence in text.sentences(text.plain(words))]


class Sentences(unittest.TestCase):
    def test_abbreviations_and_versions_do_not_end_a_sentence(self):
        self.assertEqual(len(split("Use 3.2 or CUDA 13.0, e.g. Debian's, i.e. ours vs. Theirs. It works.")), 2)

    def test_code_and_links_are_one_word_or_their_text(self):
        self.assertEqual(split("Run `a b. C d` and [read this](x.md). `y` ends."),
                         ["Run CODE and read this.", "CODE ends."])

    def test_quotes_close_with_their_sentence(self):
        self.assertEqual(len(split('It says "no." Then it stops (at once.) Done!')), 3)

    def test_identifiers_are_not_prose(self):
        self.assertEqual(text.plain("see kMost, a_told::x, src/told/x.h and --told"),
                         "see CODE, CODE, CODE and CODE")

    def test_emphasis_goes(self):
        self.assertEqual(text.plain("**a** and *b* and _c_ but snake 2 * 3 * 4"), "a and b and c but snake 2 * 3 * 4")

    def test_words(self):
        self.assertEqual(text.word_count("one — two → 3 µs, four-five"), 5)


class Markdown(unittest.TestCase):
    SAMPLE = ("# Head told\n\nOne line\nand two.\n\n```\ncode told\n```\n- item one\n  goes on\n- item two\n\n"
              "| a | `b|c` |\n|---|---|\n| x | y |\n\n    indented code\n")

    def test_units(self):
        found = [(u.line, u.kind, u.text) for u in markdown.units(self.SAMPLE)]
        self.assertEqual(found[:3], [(3, "paragraph", "One line\nand two."), (9, "item", "item one\ngoes on"),
                                     (11, "item", "item two")])
        self.assertEqual([t for _, k, t in found if k == "cell"], ["a", "`b|c`", "x", "y"])

    def test_widths_leave_out_rows_code_and_single_tokens(self):
        long = "x" * 120
        body = f"{long}\n- {long}\n| {long} y |\n```\n{long} y\n```\n{long} y\n"
        self.assertEqual(markdown.wide_lines(body, 100), ([(7, 122)], 122))


class Source(unittest.TestCase):
    def test_comments_in_one_column_are_one_block(self):
        found = source.c_units("// One\n// two.\n//\n// Three.\nint a;  // four\n        // five\n", False)
        self.assertEqual([(u.line, u.text) for u in found], [(1, "One\ntwo."), (4, "Three."), (5, "four\nfive")])

    def test_strings_and_digit_separators_hide_no_comment(self):
        found = source.c_units('auto u = "http://x"; auto n = 1\'000; // it\'s here\n', False)
        self.assertEqual([u.text for u in found], ["it's here"])

    def test_adjacent_literals_are_one_text(self):
        body = 'f("the file is not "\n  "readable by the user");\ng("SELECT a FROM b WHERE c");\nh("a", "b");\n'
        self.assertEqual([(u.line, u.kind) for u in source.c_units(body, True)], [(1, "string")])

    def test_python_docstrings_and_comments(self):
        found = source.python_units('"""Top."""\n\ndef f():\n    """Doc."""\n    return "no"  # why\n')
        self.assertEqual(sorted(u.text for u in found), ["Doc.", "Top.", "why"])


class Glossary(unittest.TestCase):
    TERMS = glossary.parse("| wrong | right | except |\n|---|---|---|\n| `told`, `so is` | reported | `told apart` |\n"
                           "| `sync*` | wait | |\n")

    def found(self, words):
        return [m.group(0) for term in self.TERMS for m in term.matches(words)]

    def test_whole_words_in_any_case_across_lines(self):
        self.assertEqual(self.found("Told. So\nis it? untold, toldx"), ["Told", "So\nis"])

    def test_exceptions_and_endings(self):
        self.assertEqual(self.found("told apart, told of, syncs"), ["told", "syncs"])

    def test_the_projects_glossary_has_terms(self):
        self.assertGreater(len(glossary.parse((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))), 30)


class HelpText(unittest.TestCase):
    def test_right_columns_and_paragraphs(self):
        page = "Do it\n\nOptions:\n  -h,--help      Show this\n  --long-option VALUE\n                 its text\n\nThe end.\n"
        self.assertEqual([u.text for u in helptext.units(page)], ["Do it", "Show this", "its text", "The end."])


    def test_pages_of_every_verb(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "tool"
            program.write_text("#!/bin/sh\nif [ \"$1\" = help ]; then printf 'Verbs:\\n  run        Runs it\\n"
                               "  cache list  Lists\\n'; else echo \"It is told: $*\"; printf '%0120d\\n' 0; fi\n")
            program.chmod(0o755)
            done = subprocess.run([ROOT / "scripts/check_prose", "--help-of", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        for verb in ("run", "cache list"):
            self.assertIn(f'{verb} --help:1: term: "told"', done.stdout)
            self.assertIn(f"{verb} --help:2: columns: 120", done.stdout)


class Program(unittest.TestCase):
    def run_on(self, body, *options):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "x.md"
            file.write_text(body, encoding="utf-8")
            return subprocess.run([ROOT / "scripts/check_prose", *options, file], capture_output=True, text=True)

    def test_clean(self):
        done = self.run_on("# T\n\nThis is short.\n")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_findings_have_file_line_rule_and_right_word(self):
        done = self.run_on("# T\n\nFine.\nIt is told.\n\n" + "word " * 19 + "\n" + "word " * 17 + "end.\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r'x\.md:4: term: "told" \(right: ')
        self.assertRegex(done.stdout, r"x\.md:6: sentence: 37 words")

    def test_json_and_summary(self):
        done = json.loads(self.run_on("It is told.\n", "--json").stdout)
        self.assertEqual([f["rule"] for f in done["findings"]], ["term"])
        self.assertEqual(done["summary"]["total"]["words"], 3)
        self.assertIn("[Markdown]", self.run_on("Fine.\n", "--summary").stdout)

    def test_usage(self):
        self.assertEqual(self.run_on("x\n", "--no-such").returncode, 2)
        self.assertEqual(self.run_on("x\n", "/no/such/file.md").returncode, 2)


if __name__ == "__main__":
    unittest.main()
