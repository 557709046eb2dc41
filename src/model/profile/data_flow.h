// SPDX-License-Identifier: Apache-2.0
// DataFlow: which results of a step are not read, are read in part, or come again. PyTorch's
// execution trace records it (docs/design/data-flow.md). A plain value; not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace purlin {

enum class FlowKind : std::uint8_t {
  kUnread,      // no op that matters reads the result
  kPartlyRead,  // a part of the result is read
  kRepeated,    // an earlier op of the step has the same result
  kUnchanged,   // each step computes the same result
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
  std::vector<FlowFact> facts;  // by op and ordinal; an op may have several

  bool recorded() const { return steps > 0; }
};

}  // namespace purlin
