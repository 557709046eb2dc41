// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/capture.h"

#include "profile/capture/cuda/devices.h"
#include "profile/capture/cuda/hooks.h"
#include "profile/capture/cuda/tiers.h"

#include <unistd.h>

namespace purlin::profile::capture::cuda {
namespace {

GovernorOptions governor_options(const SessionOptions& options) {
  GovernorOptions result;
  result.every_launch = options.timeline;
  result.seed =
      static_cast<std::uint64_t>(wall_ns()) ^ (static_cast<std::uint64_t>(getpid()) << 32);
  return result;
}

}  // namespace

Capture::Capture(const Cupti& cupti, const SessionOptions& options)
    : cupti_(cupti),
      session_(options, *this),
      attribution_(cupti, session_.recorder(),
                   AttributionOptions::from_environment(session_.options().timeline)),
      folding_(cupti, session_.recorder(), attribution_),
      arbiter_(
          governor_options(options),
          make_tiers({cupti, session_.options(), session_.recorder(), folding_, attribution_})),
      ownership_(cupti, session_.recorder(), folding_, arbiter_) {}

void Capture::begin(CUpti_BuffersCallbackRequestFunc requested,
                    CUpti_BuffersCallbackCompleteFunc completed) {
  // The first window opens here: the program's first launches come before the session's thread
  // does.
  if (!ownership_.begin(requested, completed)) return;
  arbiter_.begin();
  arbiter_.tick(ownership_);
}

std::int64_t Capture::tick() { return arbiter_.tick(ownership_); }

void Capture::collect(bool final) {
  if (!final) redirect_new_copies(cupti_, session_.recorder());
  arbiter_.collect(ownership_, final);
  ownership_.resume_if_idle();
  if (folding_.seen_records() && !devices_known_) {
    devices_known_ = true;
    session_.set_devices(describe_devices());
  }
  folding_.account();
}

}  // namespace purlin::profile::capture::cuda
