// SPDX-License-Identifier: Apache-2.0
// What a server knows about the headroom of a fleet's kernels: the best times in the shared caches
// that it keeps, and the roof of a problem on a GPU of the table.
//
// KnownTimes: one thread. A cache that cannot be read is logged and left out. known_facts() is
// pure.
#pragma once

#include "base/log.h"
#include "base/time.h"
#include "fleet/analysis/cells.h"
#include "fleet/analysis/rank.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace purlin::fleet {

// A verified winner of a shared cache.
struct MeasuredTime {
  std::string kernel, op, dtype, gpu, driver;  // `kernel`: the spec's name
  std::string problem;                         // "M=4096,N=4096,K=4096"
  double best_ns = 0;
};

class KnownTimes {
 public:
  // `folder`: of caches, one folder each.
  KnownTimes(std::string folder, Clock& clock) : folder_(std::move(folder)), clock_(clock) {}
  // Those there are now. Segments that were read before are not read again.
  std::vector<MeasuredTime> read(Log& log);

 private:
  void read_cache(const std::string& cache, Log& log);
  const std::string folder_;
  Clock& clock_;
  std::set<std::string> records_;              // ids
  std::map<std::string, MeasuredTime> times_;  // by record
  struct Standing {
    std::int64_t at_ns = 0;
    bool served = true;
  };
  std::map<std::string, Standing> standings_;  // the last status of a record
};

// Of the `limit` kernels and shapes with the most GPU time: their best known time, else how near
// they come to their roof. `driver`: that of most of the fleet; a winner of another one is stale.
std::vector<analysis::Known> known_facts(const std::vector<analysis::Cell>& cells,
                                         const std::vector<MeasuredTime>& measured,
                                         const std::string& driver, std::size_t limit);

}  // namespace purlin::fleet
