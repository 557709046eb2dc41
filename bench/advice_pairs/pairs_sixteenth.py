# SPDX-License-Identifier: Apache-2.0
"""A sixteenth set, spread evenly over what an expert changes at all levels: 48 pairs and 8 null pairs.

Written on 27 November 2026 by a hand that had not read the rules, before any of the programs was measured. As in
pairs_fifteenth.py; half of it is set aside by the hash of its names. What is right for each pair was written down before any
measurement. Each step takes the next of four batches, and what is constant in the real program is made once. A step returns
what its caller would read, and nothing else. `alike` runs both programs of a pair twice before they are timed, on the same
batches, and compares their results. pairs_sixteenth_steps.py has the waits, the copies, the small kernels and the parts of a
training step. pairs_sixteenth_data.py has the work that another form, order, layout or number format would do better. This
file has the kernels of one's own and the null pairs. `pairs_listing.py` prints the set without PyTorch.
"""

from pairs_sixteenth_data import PAIRS  # noqa: F401  run.py reads the pairs

SYNCED = ["atoms_checked_for_nan_after_each_layer", "waves_of_few_examples_learnt_task_by_task"]
