// SPDX-License-Identifier: Apache-2.0
// The launches of programs with and without a tuned config, from the work lists next to config
// caches, as Prometheus' text: what the fleet's cache hit rate is made of.
//
// Reads files of other users without trust. [MT]. Cannot fail: a list that cannot be read counts 0,
// and is counted itself.
#pragma once

#include <string>
#include <vector>

namespace purlin::fleet {

std::string lookup_metrics(const std::vector<std::string>& cache_directories);

}  // namespace purlin::fleet
