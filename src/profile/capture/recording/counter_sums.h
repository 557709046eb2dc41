// SPDX-License-Identifier: Apache-2.0
// CounterSums: hardware counters read since the last seal, by row and name, as the chunk DETAILS
// has them. Owned by a Recorder and used under its lock; bounded by its rows.
#pragma once

#include "profile/format/wire.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace purlin::profile::capture {

class CounterSums {
 public:
  // One launch's value; a ratio without its parts is not a number and is ignored.
  void add(std::uint32_t row, std::uint32_t name, double value) {
    if (!std::isfinite(value)) return;
    Sum& counter = rows_[row][name];
    counter.value += value;
    counter.launches += 1;
  }

  // The payload, "" when nothing was read; empties it.
  std::string take() {
    if (rows_.empty()) return "";
    wire::Encoder details;
    details.varint(rows_.size());
    for (const auto& [row, counters] : rows_) {
      details.varint(row);
      details.varint(0);  // dtype: not part of this chunk
      details.varint(0);  // build: the environment's
      details.varint(counters.size());
      for (const auto& [name, counter] : counters) {
        details.varint(name);
        details.real(counter.value / counter.launches);
        details.real(counter.launches);
      }
    }
    rows_.clear();
    return details.bytes();
  }

 private:
  struct Sum {
    double value = 0, launches = 0;
  };
  std::map<std::uint32_t, std::map<std::uint32_t, Sum>> rows_;
};

}  // namespace purlin::profile::capture
