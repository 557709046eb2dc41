// SPDX-License-Identifier: Apache-2.0
// RocmRun: a profile from records of rocprofiler-sdk, whichever file they come from: agents,
// calls, kernels, memcpys, counters. Add all agents first, then all calls, then the rest. Owned by
// one importer; not thread-safe.
#pragma once

#include "profile/import/assembly.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::profile {

struct RocmAgent {
  std::int64_t id = 0;        // by which records name it
  std::int64_t node = -1;     // of HSA: CPUs come first
  std::int64_t ordinal = -1;  // among the GPUs, as a program counts them; -1: by order
  bool gpu = false;
  DeviceInfo info;
};

struct RocmSpan {
  std::int64_t start_ns = 0, end_ns = 0;
};

struct RocmDispatch {
  std::string_view name;
  RocmSpan span;
  std::uint32_t process = 0;
  std::int64_t agent = 0, stream = 0, correlation = 0;
  Dim3 items = {1, 1, 1}, group = {1, 1, 1};  // AMD counts a grid in work-items
  std::uint32_t registers = 0, shared_bytes = 0, scratch_bytes = 0;
};

struct RocmCopy {
  std::string_view direction;
  RocmSpan span;
  std::uint32_t process = 0;
  std::int64_t source_agent = 0, target_agent = 0, stream = 0, correlation = 0;
  std::uint64_t bytes = 0;
};

class RocmRun {
 public:
  explicit RocmRun(const ImportOptions& options);

  void add_agent(RocmAgent agent);
  std::uint32_t process(std::uint64_t key, std::int64_t pid, std::string_view command = "");
  // A call of HIP or HSA, or a range of the program: `name` decides. HSA's calls are what HIP's
  // consist of, and are left out.
  void add_call(std::string_view name, RocmSpan span, std::uint32_t process, std::uint32_t thread,
                std::int64_t correlation);
  void link_calls();                                               // after the last call
  std::optional<std::uint32_t> add(const RocmDispatch& dispatch);  // its row
  void add(const RocmCopy& copy);
  void add_counter(std::uint32_t row, std::string_view name, double value);
  void damaged(const Status& why);  // part of the file cannot be read
  // kInvalid where nothing was added.
  Result<Profile> finish(const std::string& name);

 private:
  std::optional<std::pair<std::int64_t, std::int64_t>> times(RocmSpan span);
  int device(std::int64_t agent);
  std::uint32_t call_of(std::uint32_t process, std::int64_t correlation) const;

  ImportOptions options_;
  Profile profile_;
  Assembly assembly_;
  std::vector<RocmAgent> agents_;
  std::map<std::int64_t, int> devices_;  // by agent
  std::vector<std::pair<std::pair<std::uint32_t, std::int64_t>, std::uint32_t>> launched_;
  std::map<std::uint32_t, std::size_t> counters_at_;
  double bad_times_ = 0;
};

}  // namespace purlin::profile
