// SPDX-License-Identifier: Apache-2.0
// Times that cannot be, launches that a capture took, and the devices of other backends.
#include "profile/import/chrome/trace.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

struct Work {
  std::string name;
  double start_us = 0, duration_us = 0;
  int correlation = 0, device = 0, stream = 7;
  std::string category = "kernel", more;
};

std::string text_of(const Work& work) {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
      R"("args":{{"device":{},"stream":{},"correlation":{}{}}}}})",
      work.category, work.name, work.device, work.stream, work.start_us, work.duration_us,
      work.device, work.stream, work.correlation, work.more);
}

std::string call(std::string_view name, double start_us, int correlation,
                 std::string_view category = "cuda_runtime") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":42,"tid":42,"ts":{:.3f},"dur":1,)"
                     R"("args":{{"correlation":{}}}}})",
                     category, name, start_us, correlation);
}

Profile import_of(const std::vector<std::string>& events, std::string_view members = "") {
  std::string list;
  for (const std::string& event : events) list += (list.empty() ? "" : ",") + event;
  Result<Profile> profile = import_chrome_trace(
      Input::from_bytes(fmt::format(R"({{{}"traceEvents":[{}]}})", members, list)), "trace", {});
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return profile.is_ok() ? std::move(profile).value() : Profile{};
}

double count_of(const Profile& profile, std::string_view cause) {
  double count = -1;
  for (const CoverageNote& note : profile.coverage.notes)
    if (note.cause == cause) count = note.count;
  return count;
}

double total_kernel_ns(const Profile& profile) {
  double total = 0;
  for (const KernelRow& row : profile.kernels) total += row.duration.total_ns();
  return total;
}

constexpr double kLate = 1.4e12;  // 16 days, in us

TEST(TraceTimes, WorkWithoutTimesIsInNoSum) {
  std::vector<std::string> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(call("cudaLaunchKernel", kLate + i * 10, i + 1));
    const bool timed = i % 2 == 0;
    events.push_back(text_of({"k", timed ? kLate + i * 10 + 5 : 0, timed ? 4.0 : 0.0, i + 1}));
  }
  events.push_back(text_of({"Memcpy HtoD", 0, 0, 9, 0, 7, "gpu_memcpy", R"(,"bytes":4)"}));
  std::string open = text_of({"k", kLate + 60, 4, 5});
  open.erase(open.find(R"("dur")"), std::string_view(R"("dur":4.000,)").size());
  events.push_back(std::move(open));
  const Profile profile = import_of(events);
  EXPECT_DOUBLE_EQ(total_kernel_ns(profile), 8000);
  EXPECT_EQ(profile.coverage.launches_seen, 2);
  EXPECT_EQ(profile.coverage.launches_lost, 2);
  EXPECT_LT(profile.wall_ns, 100'000);
  EXPECT_EQ(count_of(profile, "bad_times"), 4);
  EXPECT_TRUE(profile.copies.empty());
}

TEST(TraceTimes, WhatIsDaysAwayIsLeftOut) {
  const Profile profile = import_of(
      {text_of({"k", kLate, 4, 1}), text_of({"k", kLate + 10, 4, 2}), text_of({"k", 12, 4, 3}),
       text_of({"k", kLate + 20, 1e15, 4}), text_of({"k", kLate + 30, 4, 5}),
       text_of({"Memcpy HtoD", 3, 5, 9, 0, 7, "gpu_memcpy", R"(,"bytes":4)"})});
  EXPECT_DOUBLE_EQ(total_kernel_ns(profile), 12000);
  EXPECT_EQ(profile.wall_ns, 34000);
  EXPECT_EQ(count_of(profile, "bad_times"), 3);
  EXPECT_EQ(profile.copies.at(0).duration.count(), 0);
  // A trace that begins at zero is one.
  EXPECT_EQ(import_of({text_of({"k", 0, 4, 1}), text_of({"k", 10, 4, 2})}).coverage.notes.size(),
            import_of({text_of({"k", 5, 4, 1}), text_of({"k", 10, 4, 2})}).coverage.notes.size());
}

TEST(TraceTimes, AnOverlongKernelCountsUpToTheNextStart) {
  std::vector<std::string> events = {call("cudaLaunchKernel", 0, 1)};
  for (int i = 0; i < 10; ++i)
    events.push_back(text_of({i == 4 ? "bad" : "k", i * 110.0, i == 4 ? 1.6e6 : 100, i + 1}));
  events.push_back(text_of({"long", 0, 1000, 99, 0, 8}));  // another stream
  Profile profile = import_of(events);
  EXPECT_DOUBLE_EQ(total_kernel_ns(profile), 9 * 100'000 + 110'000 + 1'000'000);
  EXPECT_EQ(count_of(profile, "overlong_kernels"), 1);
  // Nodes of a graph may run side by side on one stream.
  events.clear();
  for (int i = 0; i < 10; ++i)
    events.push_back(text_of({"k", i * 10.0, i == 4 ? 500.0 : 5.0, 1, 0, 7, "kernel",
                              R"(,"graph id":3,"graph node id":4)"}));
  profile = import_of(events);
  EXPECT_DOUBLE_EQ(total_kernel_ns(profile), 545'000);
  EXPECT_EQ(count_of(profile, "overlong_kernels"), -1);
}

// The last kernel of all has none behind it: the host's wait shows when it had ended.
TEST(TraceTimes, AKernelEndsBeforeAWaitForItDoes) {
  const auto total = [](const std::string& wait, int device) {
    std::vector<std::string> events = {wait};
    for (int i = 0; i < 10; ++i) {
      events.push_back(call("cudaLaunchKernel", i * 110.0, i + 1));
      events.push_back(text_of({"k", i * 110.0 + 5, i == 9 ? 1.6e6 : 100, i + 1}));
    }
    if (device > 0) events.push_back(text_of({"k", 5, 100, 77, device}));
    return total_kernel_ns(import_of(events));
  };
  // The tests' calls take 1 us: it has returned at 1,201 us, and the kernel began at 995.
  EXPECT_DOUBLE_EQ(total(call("cudaDeviceSynchronize", 1200, 50), 0), 9 * 100'000 + 206'000);
  EXPECT_DOUBLE_EQ(total(call("cudaStreamSynchronize", 1200, 50), 0), 9 * 100'000 + 1.6e9);
  EXPECT_DOUBLE_EQ(total(call("cudaDeviceSynchronize", 1200, 50), 1), 10 * 100'000 + 1.6e9);
}

TEST(TraceTimes, ALaunchThatIsInTheFileTwiceCountsOnce) {
  std::vector<std::string> events;
  for (int i = 0; i < 10; ++i) {
    events.push_back(call("cudaLaunchKernel", i * 110.0, i + 1));
    for (int twice = 0; twice < (i < 4 ? 2 : 1); ++twice)
      events.push_back(text_of({"k", i * 110.0 + 5, 100, i + 1}));
  }
  const Profile profile = import_of(events);
  EXPECT_DOUBLE_EQ(total_kernel_ns(profile), 1'000'000);
  EXPECT_EQ(count_of(profile, "doubled_records"), 4);
  EXPECT_EQ(profile.coverage.launches_seen, 10);
}

TEST(TraceTimes, CapturedLaunchesAreNotLost) {
  const Profile profile = import_of(
      {call("hipLaunchKernel", 1, 1), text_of({"k", 3, 2, 1}), call("hipStreamBeginCapture", 10, 2),
       call("hipLaunchKernel", 11, 3), call("hipExtModuleLaunchKernel", 12, 4),
       call("hipStreamEndCapture", 13, 5), call("hipLaunchKernel", 20, 6)});
  EXPECT_EQ(profile.coverage.launches_counted, 2);
  EXPECT_EQ(profile.coverage.launches_lost, 1);
  EXPECT_EQ(count_of(profile, "launches_captured"), 2);
}

std::string gpus(int count, std::string_view name) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += fmt::format(R"({}{{"id":{},"name":"{}","numSms":304}})", i == 0 ? "" : ",", i, name);
  return R"("deviceProperties":[)" + list + "],";
}

TEST(TraceDevices, HsaNumbersStartBehindTheCpus) {
  const auto device = [](const std::string& members, std::vector<int> numbers) {
    std::vector<std::string> events = {call("hipLaunchKernel", 1, 1)};
    for (std::size_t i = 0; i < numbers.size(); ++i)
      events.push_back(text_of({"k", 10.0 * static_cast<double>(i + 1), 2, 1, numbers[i]}));
    const Profile profile = import_of(events, members);
    std::string ids;
    for (const KernelRow& row : profile.kernels)
      ids += (ids.empty() ? "" : " ") +
             profile.environment.devices.at(static_cast<std::size_t>(row.device)).id;
    return fmt::format("{} of {}", ids, profile.environment.devices.size());
  };
  EXPECT_EQ(device(gpus(1, "AMD Instinct MI300X"), {2}), "hip:0 of 1");
  EXPECT_EQ(device(gpus(1, "AMD Instinct MI300X VF"), {9}), "hip:0 of 1");
  EXPECT_EQ(device(gpus(8, "AMD Instinct MI355X"), {2}), "hip:0 of 8");
  EXPECT_EQ(device(gpus(8, ""), {9, 4}), "hip:2 hip:7 of 8");
  EXPECT_EQ(device(gpus(8, "AMD Instinct MI355X"), {1}), "hip:0 of 8");
  EXPECT_EQ(device(gpus(4, "AMD Instinct MI300A"), {4, 5, 6, 7}), "hip:0 hip:1 hip:2 hip:3 of 4");
  // No program sees a CPU: where 0 runs kernels, the numbers are HIP's.
  EXPECT_EQ(device(gpus(8, "AMD Instinct MI355X"), {0, 3}), "hip:0 hip:3 of 8");
  EXPECT_EQ(device("", {2}), "hip:2 of 1");
}

TEST(TraceDevices, AMemcpyMayNameTheCpu) {
  const Profile profile =
      import_of({text_of({"k", 10, 2, 1, 2}),
                 text_of({"Memcpy DtoH", 20, 2, 2, 0, 7, "gpu_memcpy", R"(,"bytes":4)"})},
                gpus(1, "AMD Instinct MI300X"));
  ASSERT_EQ(profile.environment.devices.size(), 1u);
  EXPECT_EQ(profile.kernels.at(0).device, 0);
  EXPECT_EQ(profile.copies.at(0).device, 0);
}

TEST(TraceDevices, OtherBackendsKeepTheirNames) {
  const auto device = [](std::string_view name, std::string_view category) {
    const Profile profile =
        import_of({call(name, 1, 1, category), text_of({"k", 10, 2, 1, 3})},
                  R"("deviceProperties":[{"id":0,"name":"Intel(R) Data Center GPU Max 1550"}],)");
    const DeviceInfo& info =
        profile.environment.devices.at(static_cast<std::size_t>(profile.kernels.at(0).device));
    return info.id + " " + info.vendor + " " + profile.processes.at(0).layer;
  };
  EXPECT_EQ(device("urEnqueueKernelLaunch", "xpu_runtime"), "xpu:3 Intel xpu");
  EXPECT_EQ(device("runFunction", "mtia_runtime"), "mtia:3 Meta mtia");
  EXPECT_EQ(device("launch", "privateuse1_runtime"), "privateuse1:3  privateuse1");
  // Of a trace without calls of the runtime, the name tells.
  EXPECT_EQ(device("cudaLaunchKernel", "cuda_runtime"), "cuda:3 NVIDIA cuda");
  const Profile unnamed =
      import_of({text_of({"k", 10, 2, 1, 0})},
                R"("deviceProperties":[{"id":0,"name":"Intel(R) Arc(TM) B580 Graphics"}],)");
  EXPECT_EQ(unnamed.environment.devices.at(0).id, "xpu:0");
}

TEST(TraceDevices, TheAutogradProfilerBeforeKineto) {
  const Profile profile = import_of(
      {R"({"name":"aten::mm","ph":"X","ts":1,"dur":9,"tid":1,"pid":"CPU functions","args":{}})",
       R"({"name":"aten::mm","ph":"s","ts":1,"tid":1,"pid":"CPU functions","id":1,"cat":"cpu_to_cuda"})",
       R"({"name":"aten::mm","ph":"f","ts":3,"tid":"1","pid":"CUDA functions","id":1,"cat":"cpu_to_cuda"})",
       R"({"name":"volta_sgemm_128x64_nn","ph":"X","ts":3,"dur":8,"tid":1,"pid":"CUDA functions"})"});
  EXPECT_EQ(profile.source, "kineto");
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].name, "volta_sgemm_128x64_nn");
  EXPECT_DOUBLE_EQ(profile.kernels[0].duration.total_ns(), 8000);
  EXPECT_EQ(profile.environment.devices.at(0).id, "cuda:1");
  EXPECT_EQ(profile.timeline.ops.size(), 1u);
}

}  // namespace
}  // namespace purlin::profile
