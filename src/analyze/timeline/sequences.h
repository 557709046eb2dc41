// SPDX-License-Identifier: Apache-2.0
// Repeated launch sequences: stretches of a stream in which the same kernels come round in the same
// order. Candidates for a CUDA graph.
//
// Periods are guessed from the distances at which hashed runs of names recur, for runs of several
// lengths, then checked against the names themselves; the work is linear in the stream's length.
// Pure functions.
#pragma once

#include "analyze/timeline/streams.h"
#include "analyze/timeline/timeline.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::analyze {

// tokens[begin .. begin + rounds * period) is `rounds` times the same.
struct Repetition {
  std::size_t begin = 0;
  std::size_t period = 0, rounds = 0;
  std::size_t end() const { return begin + period * rounds; }
};
// Disjoint repetitions, those that cover most first. `weight` of a position: how good a place it is
// for a round to begin at (idle time before it); may be empty. At least three rounds, or two of 16
// and more.
std::vector<Repetition> find_repetitions(const std::vector<std::uint32_t>& tokens,
                                         const std::vector<std::int64_t>& weight);

struct FoundSequence {
  RepeatedSequence sequence;
  bool graphs = false;       // most of it is launched as CUDA graphs already
  bool only_copies = false;  // and sets: no kernels
};
// For each row of Profile::kernels a number that rows of one name share; made once for all streams.
std::vector<std::uint32_t> number_names(const Profile& profile);
std::vector<FoundSequence> find_sequences(const Profile& profile,
                                          const std::vector<std::uint32_t>& name_numbers,
                                          const StreamWork& stream);

}  // namespace purlin::analyze
