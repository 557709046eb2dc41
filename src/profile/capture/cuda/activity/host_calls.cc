// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/host_calls.h"

#include "profile/capture/cuda/activity/launch_calls.h"
#include "profile/capture/cuda/ownership.h"
#include "profile/capture/session/clock.h"

#include <algorithm>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

std::uint32_t own_thread_number() {
  thread_local const auto number = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return number;
}

}  // namespace

void HostCalls::open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (over_ || cupti_.subscribe == nullptr || cupti_.unsubscribe == nullptr ||
      cupti_.enable_callback == nullptr)
    return;
  if (subscriber_ == nullptr) {
    if (!log_) log_ = std::make_unique<CallLog>();
    if (cupti_.subscribe(&subscriber_, &HostCalls::called, this) != CUPTI_SUCCESS) {
      subscriber_ = nullptr;  // another tool has it
      over_ = true;
      return;
    }
    for_each_waiting_call([&](CUpti_CallbackId id) {
      cupti_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
    });
  }
  in_timeline_ = true;
  paced_ns_ = 0;
}

void HostCalls::yield() {
  const std::lock_guard<std::mutex> lock(mutex_);
  over_ = true;
  in_timeline_ = false;
  if (subscriber_ == nullptr) return;
  cupti_.unsubscribe(subscriber_);
  subscriber_ = nullptr;
}

void CUPTIAPI HostCalls::called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.correlationData == nullptr) return;
  if (call.callbackSite == CUPTI_API_ENTER)
    *call.correlationData = static_cast<std::uint64_t>(wall_ns());
  else
    static_cast<HostCalls*>(self)->left(id, static_cast<std::int64_t>(*call.correlationData));
}

void HostCalls::left(CUpti_CallbackId id, std::int64_t began_ns) {
  if (Ownership::has_turn()) return;  // of CUPTI, while it is flushed
  calls_.fetch_add(1, std::memory_order_relaxed);
  cost_ns_.fetch_add(kCallbackNs, std::memory_order_relaxed);
  if (!in_timeline_.load(std::memory_order_relaxed) || began_ns <= 0) return;
  if (!log_->add({id, own_thread_number(), began_ns, wall_ns()})) ++dropped_;
}

void HostCalls::collect() {
  if (!log_) return;
  Recorder::Batch batch(recorder_);
  log_->drain([&](const LoggedCall& logged) {
    const LaunchCall* call = launch_call(CUPTI_ACTIVITY_KIND_DRIVER, logged.call);
    if (call == nullptr) return;
    batch.host_call({call->name, call->kind, logged.thread, logged.start_ns,
                     std::max<std::int64_t>(0, logged.end_ns - logged.start_ns)});
  });
}

void HostCalls::rest() {
  if (const std::uint64_t dropped = dropped_.exchange(0); dropped > 0)
    recorder_.note("host_calls_dropped",
                   "waits and memcpy calls of the host are missing from the timeline: more came at "
                   "once than are kept",
                   static_cast<double>(dropped));
  if (count_pace()) yield();
}

// Whether it was the last.
bool HostCalls::count_pace() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (subscriber_ == nullptr || over_) return false;
  const std::int64_t now = monotonic_ns();
  const std::uint64_t calls = calls_.load();
  const std::uint64_t made = calls - std::exchange(paced_calls_, calls);
  const std::int64_t began = std::exchange(paced_ns_, now);
  if (began == 0) return false;
  const auto length = static_cast<double>(now - began);
  recorder_.add_pace({static_cast<double>(made), length});
  return ++paces_ >= kPaces || static_cast<double>(made) > kMostCallsPerS * length * 1e-9;
}

}  // namespace purlin::profile::capture::cuda
