// SPDX-License-Identifier: Apache-2.0
// Raw profiles of the made-up week: one of an H100 in training, with counters and stall samples,
// and one of an H200 that serves, with launches alone. Deterministic; pure; cannot fail.
#pragma once

#include "store/batch.h"

#include <string>
#include <vector>

namespace purlin::fleet {

struct MadeRaw {
  std::string sha256, bytes;
};
// Points to them from the last batches of their nodes, h100-02 and h200-03, where the week has
// these.
std::vector<MadeRaw> add_made_raws(std::vector<store::Batch>& week);

}  // namespace purlin::fleet
