// SPDX-License-Identifier: Apache-2.0
// PriorRun: what an earlier session learnt about configs of this space somewhere else: on another
// GPU, under another toolkit, at another problem shape.
//
// Times of different runs do not compare; the order within a run does. What runs tell is a hint: a
// strategy may measure what they praise first and must drop them when they mislead. Thread-safety:
// value types.
#pragma once

#include "tune/model/encoding.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace purlin::tune {

struct PriorRun {
  std::string source;  // for people: "cache key 3fa2…", "gemm-A100.json.gz"
  std::string device;  // model name, "" = not known
  std::string vendor;  // "nvidia", "amd", …; "" = not known
  std::string shape;   // "M=4096,N=4096,K=4096", "" = not known
  bool same_device = false, same_vendor = false, same_shape = false;
  // Index in this space -> time in ms, fastest first; configs the space does not have are left out.
  std::vector<std::pair<std::size_t, double>> times;
  std::vector<std::size_t> failed;  // known not to work there
  bool complete = false;            // the whole space was measured, or a fair sample of it
};

// The knowledge of the runs as features of a model: a place in the order of each run, and the
// mean of these places. A model learns from them even where runs mislead. Runs of few configs have
// none.
std::vector<KnownFeature> features_of(const std::vector<PriorRun>& runs);
}  // namespace purlin::tune
