#!/usr/bin/env bash
# Advice on every recorded before/after pair of bench/advice_pairs: a change of a rule loses none of what they hold now.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

expect_exit 0 python3 "$PURLIN_SOURCE/bench/advice_pairs/score.py" "$PURLIN" \
  "$PURLIN_SOURCE"/bench/advice_pairs/recorded/*.tar.xz --as-seen
# The floors are the figures of the last change of a rule (bench/results/advice_pairs_unseen.md). Raise them with the next.
python3 - "$tmp/out" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
real, named, _, inside, _, width = map(int, re.search(
    r"Of (\d+) with a gain above 3 %: named first or second (\d+) \((\d+) %\), inside (\d+) \((\d+) %; \d+ % of the \d+ with an interval\), mean width (\d+) points", text).groups())
quiet, nulls = map(int, re.search(r"Quiet: (\d+) of (\d+)", text).groups())
wanted = {"pairs with a gain": (real, 787), "named": (named, 720), "inside": (inside, 688), "quiet": (quiet, 161)}
for what, (found, least) in wanted.items():
    assert found >= least, f"{what}: {found}, at least {least} before this change"
assert width <= 50, f"mean width {width} points"
# Most loud ones are kernels of one's own, of which a trace shows no size. Of the eighteenth set two came in: such a kernel, and
# a pair that gained 14 % when it was measured. Both of the nineteenth set gained, too: 17 and 49 %, of 11 and 57 % promised. Of the
# twentieth set three are left: two such kernels, and a pair that gained 4 % of 4 % promised.
loud = set(re.findall(r"^\| (\S+) \| [^|]+ \| -?\d+ \| -?\d+ \| no \|", text[text.index("### Null pairs"):], re.M))
assert len(loud) == nulls - quiet, loud
known = {"null_own_sums_of_even_rows_cut_into_parts", "null_loss_of_a_large_step_printed_each_time",
         "null_classes_counted_by_masks_after_wide_layers", "null_wide_experts_that_choose_by_masks",
         "null_own_growth_of_fish_read_four_at_once",
         "null_own_likeness_of_two_songs_added_by_each_block", "null_head_of_1001_kinds_after_wide_layers"}
assert len(loud - known) <= 5, loud
PY
echo "advice_pairs: ok"
