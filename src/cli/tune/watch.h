// SPDX-License-Identifier: Apache-2.0
// Watches the devices of a tuning session where NVML knows them, and reports whether something held
// their clocks down while configs were measured. Belongs to one thread. Failure: a device that
// cannot be watched is left out without a message.
#pragma once

#include "base/log.h"
#include "gpu/monitor.h"
#include "guard/arms/watch.h"

#include <memory>
#include <optional>
#include <vector>

namespace purlin::cli {

class TuneWatch {
 public:
  // From now until end().
  explicit TuneWatch(const std::vector<DeviceInfo>& devices);
  // Of all devices; nullopt where none was watched. The cause of a held-down clock goes to the log.
  std::optional<guard::Conditions> end(Log& log);

 private:
  struct Watched {
    std::unique_ptr<gpu::Monitor> monitor;
    std::unique_ptr<guard::Watch> watch;
  };
  std::vector<Watched> watched_;
};

}  // namespace purlin::cli
