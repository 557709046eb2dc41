# SPDX-License-Identifier: Apache-2.0
"""What an output of the documentation may leave out (tests/suites/docs_examples.py)."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "suites"))
from docs_examples import as_documented  # noqa: E402


class OutputTest(unittest.TestCase):
    def test_an_ellipsis_stands_for_lines_or_the_rest_of_one(self):
        printed = ["alpha", "beta", "gamma"]
        for wanted in (["alpha", "beta", "gamma"], ["alpha", "…", "gamma"], ["alpha", "…"], ["…", "gamma"],
                       ["al…", "beta", "gamma"], ["alpha", "…", "ga…"]):
            self.assertIsNone(as_documented(wanted, printed), wanted)

    def test_everything_else_differs(self):
        printed = ["alpha", "beta", "gamma"]
        for wanted, line in ((["alpha"], "(the end)"), (["alpha", "gamma"], "gamma"), (["…", "delta"], "delta"),
                             (["be…", "gamma"], "be…"), (["alpha", "…", "alpha"], "alpha"),
                             ([*printed, "delta"], "delta")):
            self.assertEqual(as_documented(wanted, printed), line, wanted)


if __name__ == "__main__":
    unittest.main()
