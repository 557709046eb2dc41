// SPDX-License-Identifier: Apache-2.0
// Where the time is, and in which order to win it back: programs of ten steps whose answer is
// known.
#include "analyze/advise/verdict/levels.h"

#include "analyze/advise/facts.h"
#include "analyze/advise/learn/margins.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/savings/applied.h"
#include "analyze/replay/testing.h"
#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

#include <numeric>

namespace purlin::analyze {
namespace {

constexpr int kLevelSteps = 12;

// Steps of work on one stream; the host launches ahead and waits at the end of each step.
class LevelProgram {
 public:
  LevelProgram() {
    DeviceInfo& device = builder_.profile.environment.devices[0];
    device.name = "NVIDIA H200";
    device.arch = "sm_90";
    device.compute_units = 132;
    device.memory_bytes = 150'000'000'000;
  }
  LevelProgram& kernel(std::string_view name, std::int64_t ns, std::string shape = "",
                       std::string dtype = "") {
    work_.push_back({std::string(name), "", ns, 0, std::move(shape), std::move(dtype)});
    return *this;
  }
  LevelProgram& copy(std::string kind, std::int64_t ns, std::uint64_t bytes) {
    work_.push_back({"", std::move(kind), ns, bytes, "", ""});
    return *this;
  }
  LevelProgram& between(CallKind kind, std::string name) {
    work_.push_back({"", "", 0, static_cast<std::uint64_t>(kind), std::move(name), ""});
    return *this;
  }
  LevelProgram& host(std::int64_t ns) {
    host_time_ = ns;
    return *this;
  }
  const Profile& profile() {
    std::int64_t host = 0, device = 0;
    for (int step = 0; step < kLevelSteps; ++step) {
      const std::int64_t begin = host;
      for (const Item& item : work_) run(item, host, device);
      const std::int64_t wait = std::max(host + 1'000, device + 2'000);
      builder_.call(CallKind::kSync, "cudaDeviceSynchronize", host, wait - host);
      host = wait;
      builder_.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), begin, host - begin);
    }
    return builder_.sorted();
  }
  Advice advice() {
    const Profile& of = profile();
    return advise(of, analyze_timeline(of));
  }

 private:
  struct Item {
    std::string kernel, copy;
    std::int64_t ns = 0;
    std::uint64_t bytes = 0;
    std::string shape, dtype;
  };
  void run(const Item& item, std::int64_t& host, std::int64_t& device) {
    host += host_time_;
    if (item.kernel.empty() && item.copy.empty()) {
      builder_.call(static_cast<CallKind>(item.bytes), item.shape, host, 3'000);
      host += 3'000;
      return;
    }
    const std::uint32_t call = item.copy.empty()
                                   ? builder_.launch(host, 2'000)
                                   : builder_.call(CallKind::kCopy, "cudaMemcpyAsync", host, 2'000);
    const std::int64_t at = std::max(host + 5'000, device + 1'000);
    host += 2'000;
    device = at + item.ns;
    if (!item.copy.empty()) {
      Activity& activity = builder_.copy(item.copy, at, item.ns, call);
      activity.bytes = item.bytes;
      CopyRow& row = builder_.profile.copies[activity.row];
      row.bytes += static_cast<double>(item.bytes);
      row.duration.add(static_cast<double>(item.ns));
      return;
    }
    Activity& activity = builder_.kernel(item.kernel, at, item.ns, call);
    KernelRow& row = builder_.profile.kernels[activity.row];
    row.shape = item.shape;
    row.dtype = item.dtype;
    row.op = item.shape.starts_with("M=") ? "aten::mm" : item.shape.empty() ? "" : "aten::mul";
    row.launch.block = {256, 1, 1};
    row.duration.add(static_cast<double>(item.ns));
  }
  TimelineBuilder builder_;
  std::vector<Item> work_;
  std::int64_t host_time_ = 1'000;
};

constexpr const char* kScale = "void scale<float>(float*)";
constexpr const char* kSquare = "M=4096,N=4096,K=4096";
// At 85 % of the bandwidth of an H200: 2^27 elements of 4 bytes, read and written.
constexpr std::int64_t kScaleNs = 263'000;
constexpr const char* kScaleShape = "n=134217728,inputs=1";

double level(const Advice& advice, LossLevel which) {
  return advice.levels[static_cast<std::size_t>(which)];
}
const Intervention* advised(const Advice& advice, std::string_view id) {
  for (const Intervention& one : advice.interventions)
    if (one.id == id) return &one;
  return nullptr;
}

TEST(Levels, AddUpToOne) {
  LevelProgram program;
  program.kernel(kScale, kScaleNs, kScaleShape, "f32").copy("h2d pinned", 500'000, 12'000'000);
  const Advice advice = program.advice();
  EXPECT_NEAR(std::accumulate(advice.levels.begin(), advice.levels.end(), 0.0), 1, 0.001);
}

// Each kind of copy that takes the time has advice, or a reason that names it.
TEST(Levels, EveryKindOfCopyHasAnAnswer) {
  for (const auto& [kind, id] : {std::pair{"p2p", "overlap_copies"},
                                 {"memset", "remove_fills"},
                                 {"d2h pinned", "overlap_copies"}}) {
    LevelProgram program;
    program.copy(kind, 2'000'000, 100'000'000).kernel(kScale, kScaleNs, kScaleShape, "f32");
    const Advice advice = program.advice();
    EXPECT_EQ(advice.verdict, "data_movement") << kind;
    ASSERT_NE(advised(advice, id), nullptr) << kind;
    EXPECT_EQ(advised(advice, id)->at, LossLevel::kDataMovement) << kind;
  }
}

TEST(Levels, ExposedCopiesAreDataMovement) {
  LevelProgram program;
  program.copy("h2d pageable", 8'000'000, 268'000'000);
  program.kernel(kScale, kScaleNs, kScaleShape, "f32");
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "data_movement");
  EXPECT_NEAR(level(advice, LossLevel::kDataMovement), 0.96, 0.02);
  EXPECT_NE(advice.verdict_text.find("h2d pageable"), std::string::npos);
}

TEST(Levels, CopiesWithinTheDeviceHaveTheirShareOfTheBandwidth) {
  LevelProgram program;
  program.copy("d2d", 2'000'000, 4'300'000'000);  // 2.15 TB/s, each byte twice, of 4.8
  program.kernel("my_k", 100'000);
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "data_movement");
  EXPECT_NE(advice.verdict_text.find("d2d at 2.15 TB/s, 90% of the bandwidth"), std::string::npos)
      << advice.verdict_text;
}

TEST(Levels, ExposedCollectivesAreCommunication) {
  LevelProgram program;
  program.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", 6'000'000);
  program.kernel(kScale, kScaleNs, kScaleShape, "f32");
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "communication");
  EXPECT_GT(level(advice, LossLevel::kCommunication), 0.9);
  EXPECT_NE(advice.verdict_text.find("ranks that are not recorded included; "), std::string::npos)
      << advice.verdict_text;
}

// A rank that launches late, and whose collectives take most of the time: the other ranks, which
// are not recorded, may keep it waiting by launching as late.
TEST(Levels, CollectivesOfARankThatLaunchesLateMayBeWaits) {
  Machine m;
  m.builder.profile.environment.devices[0].name = "NVIDIA H200";
  for (int step = 0; step < kLevelSteps; ++step) {
    m.step(step);
    for (int i = 0; i < 300; ++i) {
      m.work(20'000);
      m.launch("a", 3'000);
    }
    m.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", 9'000'000);
    m.wait();
  }
  const Profile& profile = m.finish();
  const Advice advice = advise(profile, analyze_timeline(profile));
  EXPECT_EQ(advice.verdict, "communication");
  ASSERT_FALSE(advice.interventions.empty());
  EXPECT_EQ(loss_level(advice.interventions.front()), LossLevel::kScheduling);
  EXPECT_NE(advice.verdict_text.find("launch faster first (" + advice.interventions.front().id),
            std::string::npos)
      << advice.verdict_text;
}

// One rank computes three times as long: the other waits in the collective, not for the network.
TEST(Levels, WaitingForTheLastRankIsNoCommunication) {
  Machine m({}, 2);
  for (DeviceInfo& device : m.builder.profile.environment.devices) device.name = "NVIDIA H200";
  for (int step = 0; step < kLevelSteps; ++step) {
    m.step(step);
    for (int rank = 0; rank < 2; ++rank) {
      m.work(5'000, 1, rank);
      m.launch("a", rank == 0 ? 300'000 : 900'000, 20, 1, rank);
    }
    m.collective(50'000);
    for (int rank = 0; rank < 2; ++rank) m.wait(1, rank);
  }
  const Profile& profile = m.finish();
  const Advice advice = advise(profile, analyze_timeline(profile));
  EXPECT_LT(level(advice, LossLevel::kCommunication), 0.1);
  EXPECT_NEAR(level(advice, LossLevel::kScheduling), 0.3, 0.08);
}

TEST(Levels, AnIdleDeviceIsScheduling) {
  LevelProgram program;
  program.host(400'000).kernel(kScale, kScaleNs, kScaleShape, "f32");
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "scheduling");
  EXPECT_GT(level(advice, LossLevel::kScheduling), 0.5);
}

// 80 % of the time in a kernel at a fifth of its roof: the mean over all kernels would hide it.
TEST(Levels, ADominantKernelIsJudgedByItself) {
  const double at_roof = 2.0 * 4096 * 4096 * 4096 / 989e12 * 1e9;
  LevelProgram program;
  program.kernel("nvjet_tst_256x128_64x4_2x1_v_bz_NNT", static_cast<std::int64_t>(5 * at_roof),
                 kSquare, "bf16");
  program.kernel(kScale, static_cast<std::int64_t>(1.25 * at_roof), "n=88000000,inputs=1", "f32");
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "tune") << advice.verdict_text;
  EXPECT_GT(level(advice, LossLevel::kTune), 0.5);
}

// A copy far below its roof: not to make it is the change, not to make it faster.
TEST(Levels, AKernelThatOnlyMovesDataIsRestructuredNotTuned) {
  const char* copy =
      "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::"
      "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>(int)>(int)";
  LevelProgram program;
  program.kernel(copy, 420'000, "n=67108864,inputs=1", "bf16").kernel("gemm_kernel", 40'000);
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "restructure") << advice.verdict_text;
  EXPECT_NE(advice.verdict_text.find("do that before you tune"), std::string::npos)
      << advice.verdict_text;
  EXPECT_LT(level(advice, LossLevel::kTune), 0.05);
  EXPECT_GT(level(advice, LossLevel::kRestructure), 0.8);
}

// The same where no kernel dominates: the verdict is of the level with most of the time.
TEST(Levels, SeveralCopiesAreRestructuredToo) {
  LevelProgram program;
  for (const char* type : {"c10::BFloat16", "c10::Half"})
    program.kernel(std::string("void at::native::elementwise_kernel<128, 4, at::native::"
                               "gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::"
                               "TensorIteratorBase&)::{lambda(") +
                       type + ")#1}>(int)>(int)",
                   420'000, "n=67108864,inputs=1", "bf16");
  const Advice advice = program.advice();
  EXPECT_GT(level(advice, LossLevel::kRestructure), level(advice, LossLevel::kTune));
  EXPECT_EQ(advice.verdict, "restructure") << advice.verdict_text;
}

TEST(Levels, PrecisionAndFusionAreRestructuringTilingAndLoadsAreTuning) {
  for (const char* id : {"tensor_cores"})
    EXPECT_EQ(loss_level(from_remedy(id)), LossLevel::kRestructure) << id;
  for (const char* id : {"stream_wider", "coalesce", "reuse_data", "raise_occupancy", "tune_kernel",
                         "more_loads_in_flight"})
    EXPECT_EQ(loss_level(from_remedy(id)), LossLevel::kTune) << id;
  EXPECT_EQ(loss_level(from_remedy("overlap_copies")), LossLevel::kDataMovement);
  EXPECT_EQ(loss_level(from_remedy("pin_memory")), LossLevel::kDataMovement);
  EXPECT_EQ(loss_level(from_remedy("overlap_communication")), LossLevel::kCommunication);
  EXPECT_EQ(loss_level(from_remedy("cuda_graphs")), LossLevel::kScheduling);
}

TEST(Plan, WorkOfHoursComesBeforeWorkOfWeeks) {
  EXPECT_LT(effort_days("hours"), effort_days("days"));
  EXPECT_LT(effort_days("days"), effort_days("weeks"));
}

// A product in f32 on the vector units: take the tensor cores first; tuning the old one is then
// pointless.
TEST(Plan, RestructuringMakesTuningObsolete) {
  Facts facts;
  facts.profile = nullptr;
  Advice advice;
  Intervention tune = from_remedy("tune_kernel"), precision = from_remedy("tensor_cores");
  tune.kernels = precision.kernels = {"gemm"};
  tune.saved_share = {0, 0.4, 0.5};
  precision.saved_share = {0.1, 0.3, 0.6};
  tune.estimate = precision.estimate = "kernels";
  advice.interventions = {tune, precision};
  ListedKernel listed;
  listed.label = "gemm";
  advice.tune = {listed};
  add_plan(facts, advice);
  ASSERT_EQ(advice.plan.size(), 2u);
  EXPECT_EQ(advice.plan[0].intervention, 1u);
  EXPECT_EQ(advice.plan[0].obsolete_after, 0u);
  EXPECT_EQ(advice.plan[1].obsolete_after, 1u);
  EXPECT_EQ(advice.tune[0].obsolete_after, 1u);
  EXPECT_NEAR(advice.interventions[1].roi, 30 / effort_days("hours"), 1e-9);
}

// Two ways to save the host's time, without a replay: the second saves what the first leaves.
TEST(Plan, AnAlternativeSavesOnlyWhatIsLeft) {
  Facts facts;
  facts.profile = nullptr;
  Advice advice;
  Intervention graph = from_remedy("cuda_graphs"), host = from_remedy("cut_host_work");
  Intervention pointwise = from_remedy("fuse_pointwise");
  host.alternative = true;
  graph.saved_share = {0.4, 0.5, 0.6};
  host.saved_share = {0.1, 0.25, 0.5};
  pointwise.saved_share = {0, 0.01, 0.02};
  graph.estimate = host.estimate = pointwise.estimate = "kernels";
  advice.interventions = {graph, host, pointwise};
  add_plan(facts, advice);
  ASSERT_EQ(advice.plan.size(), 3u);
  EXPECT_EQ(advice.plan[0].intervention, 0u);
  EXPECT_EQ(advice.plan[1].intervention, 1u);
  EXPECT_EQ(advice.plan[1].saved_share, 0);
  EXPECT_EQ(advice.plan[1].obsolete_after, 1u);
  EXPECT_DOUBLE_EQ(advice.plan[2].saved_share, 0.01);

  advice.plan.clear();
  advice.interventions[0].saved_share.mid = 0.95;
  advice.interventions[0].effort = "hours";  // before the other
  advice.interventions[1].saved_share.mid = 0.97;
  add_plan(facts, advice);
  EXPECT_NEAR(advice.plan[1].saved_share, 0.02, 1e-9);
}

// One wait or allocation in the middle of a step is in the way of a graph of the step.
TEST(GraphCapture, ACallBetweenTheLaunchesHinders) {
  for (const auto& [kind, name] : {std::pair{CallKind::kSync, "cudaDeviceSynchronize"},
                                   std::pair{CallKind::kAllocation, "cudaMalloc"}}) {
    LevelProgram program;
    program.host(8'000);
    for (int i = 0; i < 40; ++i) {
      program.kernel("small", 2'000);
      if (i == 25) program.between(kind, name);
    }
    const Advice advice = program.advice();
    EXPECT_EQ(advised(advice, "cuda_graphs"), nullptr) << name;
    bool named = false;
    for (const NoGain& one : advice.no_gain) named |= one.why.find(name) != std::string::npos;
    EXPECT_TRUE(named) << name;
  }
}

TEST(GraphCapture, WithoutSuchACallItIsAGraph) {
  LevelProgram program;
  program.host(8'000);
  for (int i = 0; i < 40; ++i) program.kernel("small", 2'000);
  const Advice advice = program.advice();
  const Intervention* graph = advised(advice, "cuda_graphs");
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->estimate, "replay");
  EXPECT_GT(graph->saved_share.mid, 0.5);
}

// Copies to the host cut a sequence; between them, graphs hold what lies there.
TEST(GraphCapture, StretchesBetweenCopiesToTheHost) {
  const auto advice_of = [](int between) {
    TimelineBuilder builder;
    builder.profile.source = "purlin";
    std::int64_t at = 0;
    for (int round = 0; round < 30; ++round) {
      for (int i = 0; i < between; ++i, at += 10'000)
        builder.kernel("relax", at, 4'000, builder.launch(at - 3'000, 2'000));
      builder.copy("d2h", at, 2'000,
                   builder.call(CallKind::kCopy, "cudaMemcpy", at - 3'000, 6'000));
      at += 10'000;
    }
    builder.profile.kernels[0].duration.add(4'000, 30.0 * between);
    const Profile& profile = builder.sorted();
    return advise(profile, analyze_timeline(profile));
  };
  const Advice advice = advice_of(20);
  const Intervention* graph = advised(advice, "cuda_graphs");
  ASSERT_NE(graph, nullptr);
  EXPECT_GT(graph->saved_share.mid, 0.3);
  bool said = false;
  for (const Evidence& one : graph->evidence)
    said = said || one.what == "a graph of the launches between two copies to the host";
  EXPECT_TRUE(said);
  EXPECT_EQ(advised(advice_of(4), "cuda_graphs"), nullptr);
}

// Loading input is not work that another way of launching would save.
TEST(HostWork, LeavesTheLoadingOfInput) {
  TimelineBuilder builder;
  builder.profile.source = "kineto";
  for (int step = 0; step < kLevelSteps; ++step) {
    const std::int64_t at = step * 1'000'000;
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), at, 1'000'000);
    builder.range(RangeKind::kDataLoader, "next", at, 800'000);
    for (int i = 0; i < 10; ++i)
      builder.kernel("small", at + 808'000 + i * 20'000, 2'000,
                     builder.launch(at + 800'000 + i * 20'000, 5'000));
  }
  builder.profile.kernels[0].duration.add(2'000, 10.0 * kLevelSteps);
  const Profile& profile = builder.sorted();
  const Advice advice = advise(profile, analyze_timeline(profile));
  const Intervention* feed = advised(advice, "feed_the_device");
  ASSERT_NE(feed, nullptr);
  EXPECT_EQ(advice.interventions[0].id, "feed_the_device");
  if (const Intervention* host = advised(advice, "cut_host_work")) {
    EXPECT_LT(host->saved_share.high, 0.25 + margin_of("cut_host_work").above);
  }
}

// Nothing is promised for one large kernel a step.
TEST(GraphCapture, NotForOneKernel) {
  LevelProgram program;
  program.host(150'000).kernel("large", 200'000);
  EXPECT_EQ(advised(program.advice(), "cuda_graphs"), nullptr);
}

TEST(Applied, ShowsBothSides) {
  LevelProgram program;
  program.host(8'000);
  for (int i = 0; i < 40; ++i) program.kernel("small", 2'000);
  const Profile& profile = program.profile();
  const TimelineAnalysis timeline = analyze_timeline(profile);
  const Advice advice = advise(profile, timeline);
  const auto applied = apply_intervention(profile, timeline, {}, advice, "cuda_graphs");
  ASSERT_TRUE(applied.is_ok()) << applied.status().message();
  EXPECT_LT(applied->after.step_ns, applied->before.step_ns);
  EXPECT_NEAR(applied->before.step_ns, advice.unit.baseline_ns.mid, 1);
  EXPECT_NEAR(applied->after.busy_ns, applied->before.busy_ns, 1);
  EXPECT_LT(applied->after.calls, 0.2 * applied->before.calls);
  EXPECT_FALSE(applied->timeline.timeline.activities.empty());
  ASSERT_FALSE(applied->gone.empty());
  EXPECT_EQ(applied->gone[0].name, "cudaLaunchKernel");
  EXPECT_NEAR(applied->gone[0].count, 39, 1);
  const std::string text = render_applied(*applied, Terminal(false, false, false, 100));
  EXPECT_NE(text.find("critical path after"), std::string::npos);
  EXPECT_FALSE(to_json(*applied, advice).dump().empty());
  EXPECT_TRUE(apply_intervention(profile, timeline, {}, advice, "1").is_ok());
  const auto unknown = apply_intervention(profile, timeline, {}, advice, "nothing");
  ASSERT_FALSE(unknown.is_ok());
  EXPECT_NE(unknown.status().message().find("cuda_graphs"), std::string::npos);
}

TEST(Hardware, OtherDevicesOfTheSameMaker) {
  LevelProgram program;
  for (int i = 0; i < 4; ++i) program.kernel(kScale, kScaleNs, kScaleShape, "f32");
  const Advice advice = program.advice();
  double best = 0, two = 0;
  for (const WhatIf& one : advice.what_if) {
    if (one.resource == "gpu") {
      EXPECT_EQ(one.device.find("MI"), std::string::npos);
      best = std::max(best, one.saved_share);
    }
    if (one.resource == "gpus" && one.factor == 2) two = one.saved_share;
  }
  EXPECT_GT(best, 0.3);  // bandwidth of the newest against 4.8 TB/s
  EXPECT_LT(best, 0.6);
  EXPECT_NEAR(two, 0.5, 0.02);
}

}  // namespace
}  // namespace purlin::analyze
