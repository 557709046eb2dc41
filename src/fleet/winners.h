// SPDX-License-Identifier: Apache-2.0
// Winners: what a shared cache of the server serves for a kernel. A share is made for pulls of all
// of it, so the server keeps a copy as a config cache, next to the folder of the shares, and pulls
// what is new before it answers. The copy can be removed at any time.
//
// [MT]: one question at a time. `clock` outlives it. Failure: kNotFound without such a cache, and
// those of the share and the store.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "base/time.h"

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace purlin::fleet {

class Winners {
 public:
  // `directory`: DIRECTORY/NAME is a shared cache.
  Winners(std::string directory, Clock& clock) : directory_(std::move(directory)), clock_(clock) {}
  // The `entries` of `purlin.cache/1`. `kernel`: "" for all; at most `limit`.
  Result<Json> of(const std::string& cache, const std::string& kernel, std::size_t limit);

 private:
  const std::string directory_;
  Clock& clock_;
  std::mutex mutex_;
};

}  // namespace purlin::fleet
