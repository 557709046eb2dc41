// SPDX-License-Identifier: Apache-2.0
#include "cli/guard/device.h"

#include "base/files.h"
#include "base/time.h"

namespace purlin::cli {

void GuardDevice::declare(Flags& flags) {
  flags.option("--lock-clocks", clock_,
               {"Hold the GPU clock while measuring: base, max or MHz",
                "The user needs the permission to lock clocks."},
               "CLOCK");
}

Status GuardDevice::open(Context& context, const DeviceInfo& device) {
  Result<std::unique_ptr<gpu::Monitor>> monitor = gpu::open_monitor(device);
  if (!monitor.is_ok()) {
    if (!clock_.empty()) return monitor.status().with_context("--lock-clocks");
    if (device.backend == "cuda") context.log.warn("{}", monitor.status().message());
    return Status::ok();
  }
  monitor_ = std::move(monitor).value();
  watch_ = std::make_unique<guard::Watch>(*monitor_, system_clock());
  if (clock_.empty()) return Status::ok();
  PURLIN_ASSIGN(const unsigned mhz, gpu::parse_clock(clock_, device));
  PURLIN_ASSIGN(std::unique_ptr<gpu::Monitor> own, gpu::open_monitor(device));
  Result<std::unique_ptr<gpu::ClockLock>> lock = gpu::ClockLock::acquire(
      std::move(own), mhz,
      {join_path(executable_directory(), "purlin"), "keep-clock", device.uuid});
  if (!lock.is_ok()) return lock.status().with_context("--lock-clocks");
  lock_ = std::move(lock).value();
  locked_mhz_ = mhz;
  context.log.info("the clock of {} is held at {} until this ends", device.name,
                   mhz == 0 ? "its base" : fmt::format("{} MHz", mhz));
  return Status::ok();
}

}  // namespace purlin::cli
