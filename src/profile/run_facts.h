// SPDX-License-Identifier: Apache-2.0
// The labels of the running program (model/profile/run_labels.h): from its environment, its cgroup
// and its mounts. Also compiled into the capture libraries, so it needs only libc.
//
// Free functions. A fact that cannot be read is "".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::profile {

// What the labels are read from. `variable` is getenv: null without the variable.
struct RunSources {
  const char* (*variable)(const char* name) = nullptr;
  std::string host;       // gethostname
  std::string user;       // where no variable names it
  std::string cgroup;     // /proc/self/cgroup
  std::string mountinfo;  // /proc/self/mountinfo
};

// Pairs of key and value, as in RunLabels; those that are known.
using RunFacts = std::vector<std::pair<const char*, std::string>>;
RunFacts read_run_facts(const RunSources& sources);
// Of this process. None if PURLIN_ANONYMOUS is 1.
RunFacts facts_of_this_run();

}  // namespace purlin::profile
