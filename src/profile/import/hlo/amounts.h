// SPDX-License-Identifier: Apache-2.0
// Amounts: the elements and bytes that a fused computation of an XLA program reads and writes. Pure
// functions; linear in the computation.
#pragma once

#include "profile/import/hlo/module.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::hlo {

inline constexpr double kMostElements = 281474976710656.0;  // 2^48: no shape has more

struct Amount {
  double elements = 0, bytes = 0;
  void add(const Amount& other) {
    elements += other.elements;
    bytes += other.bytes;
  }
};

// Of each instruction's result.
std::vector<Amount> amounts_of(const Computation& computation);
// What a fused computation reads of each of its values. A slice needs a part of its operand, and
// work by element as many elements as its own users do. A buffer that is updated in place is not
// read. `wholes`: amounts_of(fused).
std::vector<Amount> reads_of(const Computation& fused, const std::vector<Amount>& wholes);
// What it writes as its result. REQUIRES: a root.
Amount written_by(const Computation& fused, const std::vector<Amount>& wholes);

}  // namespace purlin::profile::hlo
