// SPDX-License-Identifier: Apache-2.0
#include "gpu/clock_lock.h"

#include "base/text.h"

namespace purlin::gpu {

Result<unsigned> parse_clock(const std::string& text, const DeviceInfo& device) {
  if (text == "base") return 0u;
  if (text == "max" && device.clock_mhz > 0) return static_cast<unsigned>(device.clock_mhz);
  const std::optional<std::int64_t> mhz = parse_int(text);
  if (mhz && *mhz >= 100 && *mhz <= 10000) return static_cast<unsigned>(*mhz);
  return error(Code::kInvalid, "a clock is \"base\", \"max\" or MHz from 100 to 10000, not '{}'",
               text);
}

Result<std::unique_ptr<ClockLock>> ClockLock::acquire(std::unique_ptr<Monitor> monitor,
                                                      unsigned mhz,
                                                      const std::vector<std::string>& keeper) {
  // Ready before the clock is locked.
  Result<Keeper> ready = Keeper::start(keeper);
  if (!ready.is_ok()) return ready.status().with_context("the clock is not locked");
  std::unique_ptr<ClockLock> lock(new ClockLock(std::move(monitor), std::move(ready).value()));
  PURLIN_TRY(lock->monitor_->lock_clocks(mhz, mhz));  // where this fails, unlocking does no harm
  return lock;
}

ClockLock::~ClockLock() {
  // If this fails, the keeper tries again, and reports what to do if it fails, too.
  if (monitor_->unlock_clocks().is_ok()) keeper_.dismiss();
}

Status keep_clock(Monitor& monitor) {
  return keep_until_gone([&] { return monitor.unlock_clocks(); });
}

}  // namespace purlin::gpu
