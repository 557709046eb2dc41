// SPDX-License-Identifier: Apache-2.0
// DataFlow: which results of a step are not read, are read in part, or come again. PyTorch's
// execution trace records it (docs/design/data-flow.md). A plain value; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

enum class FlowKind : std::uint8_t {
  kUnread,      // no op that matters reads the result
  kPartlyRead,  // a part of the result is read
  kRepeated,    // an earlier op of the step has the same result
  kUnchanged,   // each step computes the same result
  // Of the backward pass of a repeated op: one backward pass can take the sum of their gradients.
  kGradientOfRepeated,
};

// Of one op of a step: the ordinal-th of its name, counted from 0 over all threads by start, of
// `count` in a step.
struct FlowFact {
  FlowKind kind = FlowKind::kUnread;
  std::string op;  // "aten::mm"
  std::uint32_t ordinal = 0, count = 0;
  double read_share = 0;  // kPartlyRead: elements read of those written, above 0, below 1
  // kPartlyRead: the op that reads most. kRepeated: the earlier op's ordinal. Empty otherwise.
  std::string reader;
  std::uint32_t earlier = 0;
};

struct DataFlow {
  std::uint32_t steps = 0;  // recorded whole; 0: no data flow was recorded
  std::uint64_t ops = 0;    // of one step, that compute
  // Each step computes the same from the same data, as benchmarks do. Then only what depends on no
  // data is kUnchanged.
  bool same_data = false;
  // Ops of the step read numbers of the host, whose values are not recorded. Then equal results are
  // missed: what no fact names may be repeated or unchanged all the same.
  bool host_numbers = false;
  // Of steps that no range marks: the `aten::` ops of one, by number and hash (OpSequence). In the
  // timeline a step is where they come in this order. 0: marked steps.
  std::uint32_t sequence_ops = 0;
  std::uint64_t sequence_hash = 0;
  std::vector<FlowFact> facts;  // by op and ordinal; an op may have several

  bool recorded() const { return steps > 0; }
};

// Hashes of the stretches of a sequence of ops, by name: the same in a trace and in a timeline.
class OpSequence {
 public:
  static bool counts(std::string_view op) { return op.substr(0, 6) == "aten::"; }
  static std::uint64_t hash_of(std::string_view op);

  void add(std::uint64_t op_hash);
  std::size_t size() const { return sums_.size() - 1; }
  // Of `ops` ops from the `begin`-th; polynomial, modulo 2^64. REQUIRES: they exist.
  std::uint64_t hash(std::size_t begin, std::size_t ops) const {
    return sums_[begin + ops] - sums_[begin] * powers_[ops];
  }

 private:
  std::vector<std::uint64_t> sums_ = {0}, powers_ = {1};
};

}  // namespace purlin
