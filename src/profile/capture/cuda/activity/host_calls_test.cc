// SPDX-License-Identifier: Apache-2.0
// Against a fake of CUPTI's functions.
#include "profile/capture/cuda/activity/host_calls.h"

#include "profile/format/file.h"

#include <cupti_driver_cbid.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

struct FakeCallbacks {
  CUptiResult answer = CUPTI_SUCCESS;
  CUpti_CallbackFunc function = nullptr;
  void* data = nullptr;
  int subscriptions = 0, ended = 0;
  std::set<CUpti_CallbackId> enabled;
};
FakeCallbacks callbacks;

Cupti callback_functions() {
  callbacks = {};
  Cupti cupti;
  cupti.subscribe = [](CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* data) {
    if (callbacks.answer != CUPTI_SUCCESS) return callbacks.answer;
    ++callbacks.subscriptions;
    callbacks.function = function;
    callbacks.data = data;
    *handle = reinterpret_cast<CUpti_SubscriberHandle>(&callbacks);
    return CUPTI_SUCCESS;
  };
  cupti.unsubscribe = [](CUpti_SubscriberHandle) {
    ++callbacks.ended;
    return CUPTI_SUCCESS;
  };
  cupti.enable_callback = [](std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                             CUpti_CallbackId id) {
    callbacks.enabled.insert(id);
    return CUPTI_SUCCESS;
  };
  return cupti;
}

// A call of the program, as CUPTI reports it.
void make_call(CUpti_CallbackId id, std::chrono::microseconds length) {
  std::uint64_t kept = 0;
  CUpti_CallbackData data = {};
  data.correlationData = &kept;
  data.callbackSite = CUPTI_API_ENTER;
  callbacks.function(callbacks.data, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  std::this_thread::sleep_for(length);
  data.callbackSite = CUPTI_API_EXIT;
  callbacks.function(callbacks.data, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

Profile profile_of(Recorder& recorder) {
  recorder.set_meta(R"({"pid":1,"layer":"cuda"})", "[]");
  const Result<Profile> profile = decode_profile(recorder.drain(0, 1, true));
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return profile.is_ok() ? *profile : Profile();
}

TEST(HostCalls, WaitsGoToTheTimelineWhileLaunchesAreRecorded) {
  const Cupti cupti = callback_functions();
  Recorder recorder(false);
  HostCalls calls(cupti, recorder);
  calls.open();
  EXPECT_TRUE(callbacks.enabled.contains(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize));
  EXPECT_FALSE(callbacks.enabled.contains(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel))
      << "a launch costs nothing";
  make_call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, std::chrono::milliseconds(2));
  make_call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, std::chrono::milliseconds(0));
  calls.close();
  make_call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, std::chrono::milliseconds(0));
  calls.collect();
  const Profile profile = profile_of(recorder);
  ASSERT_EQ(profile.timeline.calls.size(), 2u);
  const Call& wait = profile.timeline.calls[0];
  EXPECT_EQ(profile.timeline.names[wait.name], "cuStreamSynchronize");
  EXPECT_EQ(wait.kind, CallKind::kSync);
  EXPECT_GE(wait.duration_ns, 2'000'000);
  EXPECT_EQ(profile.timeline.calls[1].kind, CallKind::kCopy);
  EXPECT_EQ(calls.take_cost_ns(), 3 * HostCalls::kCallbackNs);
}

TEST(HostCalls, CountsOnAfterRecordingAndEndsByItself) {
  const Cupti cupti = callback_functions();
  Recorder recorder(false);
  HostCalls calls(cupti, recorder);
  calls.open();
  make_call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, {});
  calls.close();
  calls.rest();
  for (int pace = 0; pace < 30; ++pace) {
    for (int i = 0; i < pace; ++i)
      if (callbacks.ended == 0)
        make_call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, std::chrono::microseconds(100));
    calls.rest();
  }
  EXPECT_EQ(callbacks.ended, 1);
  const Profile profile = profile_of(recorder);
  ASSERT_EQ(profile.processes.size(), 1u);
  const std::vector<Pace>& paces = profile.processes[0].paces;
  ASSERT_EQ(paces.size(), 10u);
  for (std::size_t i = 0; i < paces.size(); ++i) EXPECT_EQ(paces[i].calls, i);
  EXPECT_GE(paces[9].ns, 9 * 100'000);
}

TEST(HostCalls, AnotherClientHasPriority) {
  const Cupti cupti = callback_functions();
  Recorder recorder(false);
  HostCalls calls(cupti, recorder);
  calls.open();
  calls.yield();
  calls.open();
  EXPECT_EQ(callbacks.subscriptions, 1);
  EXPECT_EQ(callbacks.ended, 1);
  calls.rest();
  calls.rest();
  EXPECT_TRUE(profile_of(recorder).processes[0].paces.empty());

  HostCalls late(cupti, recorder);
  callbacks.answer = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  late.open();
  late.rest();
  late.collect();
  late.yield();
  EXPECT_EQ(callbacks.ended, 1);
}

TEST(HostCalls, WithoutTheFunctionsNothingIsWatched) {
  const Cupti cupti;
  Recorder recorder(false);
  HostCalls calls(cupti, recorder);
  calls.open();
  calls.collect();
  calls.rest();
  calls.yield();
  EXPECT_TRUE(profile_of(recorder).timeline.calls.empty());
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
