// SPDX-License-Identifier: Apache-2.0
// The host's side of a report of nsys: API calls, waits, NVTX ranges and ops, the profiler's own
// overhead. Private to profile/import/nsys. One owner, one thread.
#pragma once

#include "profile/import/nsys/tables.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::profile {

class NsysHost {
 public:
  explicit NsysHost(NsysTables& tables) : tables_(tables) {}

  void read();
  // The call that launched an activity, kNone where it is not known.
  std::uint32_t call_of(std::uint32_t process, std::optional<std::int64_t> correlation) const;

 private:
  Status calls(std::string_view table);
  void note_failures();
  Status syncs(std::string_view table);
  void domains();
  Status ranges(std::string_view table);
  Status overhead(std::string_view table);

  NsysTables& tables_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> launched_;  // launch_key -> call
  std::map<std::int64_t, std::uint64_t> failed_;  // launches, by the error that they returned
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> domains_;
};

}  // namespace purlin::profile
