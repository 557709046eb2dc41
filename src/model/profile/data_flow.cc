// SPDX-License-Identifier: Apache-2.0
#include "model/profile/data_flow.h"

#include "base/hash.h"

namespace purlin {

std::uint64_t OpSequence::hash_of(std::string_view op) { return hash64(op); }

void OpSequence::add(std::uint64_t op_hash) {
  constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15u;
  sums_.push_back(sums_.back() * kBase + op_hash);
  powers_.push_back(powers_.back() * kBase);
}

}  // namespace purlin
