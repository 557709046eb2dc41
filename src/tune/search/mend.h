// SPDX-License-Identifier: Apache-2.0
// Mend: configs in which a step of another parameter mends a failed step of the best config.
//
// A larger tile often fails: it needs more registers or more shared memory than there are. With
// more warps, or fewer stages, the same tile may be the fastest of all. Either step alone is slower
// or fails, so no climb leads there. A failed step is mended once. Thread-safety: belongs to one
// thread. Never fails.
#pragma once

#include "tune/space/space.h"

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace purlin::tune {

class Mend {
 public:
  explicit Mend(const Space& space) : space_(space) {}

  struct Way {
    std::size_t index = 0;  // of a config that may work
    std::size_t step = 0;   // what failed, one step away from it and from the best
  };

  // Every result, also of configs that others asked for.
  void add(std::size_t index, bool worked);
  std::vector<Way> of(std::size_t best) const;
  // The config was asked for. Unless it fails, too, its step is mended.
  void take(const Way& way);

 private:
  const Space& space_;
  std::unordered_set<std::size_t> to_mend_;               // failed
  std::unordered_map<std::size_t, std::size_t> step_of_;  // of a config that was asked for
};

}  // namespace purlin::tune
