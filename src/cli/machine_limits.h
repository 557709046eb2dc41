// SPDX-License-Identifier: Apache-2.0
// The limits of this process's container or service, as `purlin doctor` shows them: memory, cores,
// processes and open files. Reads cgroups of version 2 and 1.
//
// Values; examine_limits() is a pure function. A limit that cannot be read is taken as none.
#pragma once

#include "model/device/capability.h"

#include <cstdint>
#include <optional>
#include <string>

namespace purlin::cli {

struct MachineLimits {
  bool container = false;
  std::optional<std::uint64_t> memory_bytes, processes, open_files;
  std::optional<double> cores;
};

// `root`: "/"; another one in tests.
MachineLimits read_limits(const std::string& root);
Capability examine_limits(const MachineLimits& limits);

}  // namespace purlin::cli
