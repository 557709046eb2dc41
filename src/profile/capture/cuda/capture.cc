// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/capture.h"

#include "profile/capture/cuda/cupti/hooks.h"
#include "profile/capture/cuda/devices.h"
#include "profile/capture/cuda/tiers.h"
#include "profile/capture/recording/json_text.h"
#include "profile/capture/session/timed_lock.h"

#include <unistd.h>

namespace purlin::profile::capture::cuda {
namespace {

ControllerOptions controller_options(const SessionOptions& options) {
  ControllerOptions result;
  result.every_launch = options.every_launch;
  result.budget = options.budget;
  result.idle = options.idle;
  result.waits = options.waits;
  result.windows = options.windows;
  if (options.lasting_launch_ns >= 0) result.costs.lasting_launch_ns = options.lasting_launch_ns;
  result.full_window_ns = options.full_window_ns;
  result.full_cell_ns = options.full_cell_ns;
  result.seed =
      static_cast<std::uint64_t>(wall_ns()) ^ (static_cast<std::uint64_t>(getpid()) << 32);
  return result;
}

}  // namespace

Capture::Capture(const Cupti& cupti, const SessionOptions& options)
    : cupti_(cupti),
      session_(options, *this),
      attribution_(cupti, session_.recorder(), AttributionOptions::from_environment()),
      aggregator_(cupti, session_, attribution_),
      scheduler_(
          controller_options(options),
          make_tiers({cupti, session_.options(), session_.recorder(), aggregator_, attribution_}),
          aggregator_, session_.recorder()),
      ownership_(cupti, session_.recorder(), aggregator_, scheduler_) {}

void Capture::begin(CUpti_BuffersCallbackRequestFunc requested,
                    CUpti_BuffersCallbackCompleteFunc completed) {
  if (!ownership_.begin(requested, completed, session_.options().idle)) return;
  // The first window opens here: the program's first launches come before the session's thread
  // does.
  scheduler_.begin();
  scheduler_.tick(ownership_);
  begun_ = true;
}

std::int64_t Capture::tick() {
  return begun_ ? scheduler_.tick(ownership_) : OverheadController::kNever;
}

std::string Capture::control(const ControlRequest& request) {
  if (!begun_) return JsonText().text("error", "CUDA is not captured in this process").finish();
  return scheduler_.control(ownership_, request);
}

void Capture::collect(bool final) {
  if (!final) redirect_new_copies(cupti_, session_.recorder());
  scheduler_.collect(ownership_, final);
  ownership_.resume_if_idle();
  find_devices();
  aggregator_.account();
}

// The program may exit while the session's thread asks the driver: its last seal waits for that.
void Capture::find_devices() {
  std::unique_lock<std::timed_mutex> lock(finding_devices_, std::defer_lock);
  if (!lock_in_time(lock) || devices_known_ || !aggregator_.seen_records()) return;
  devices_known_ = true;
  session_.set_devices(describe_devices());
  if (const std::string sharing = sharing_of_devices(); !sharing.empty())
    session_.recorder().note("shared_device", sharing);
}

}  // namespace purlin::profile::capture::cuda
