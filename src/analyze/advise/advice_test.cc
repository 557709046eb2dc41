// SPDX-License-Identifier: Apache-2.0
// Synthetic profiles whose right answer is known. Savings against reality: measured_test.cc.
#include "analyze/advise/advice.h"

#include "analyze/advise/learn/margins.h"
#include "analyze/advise/ranking/ranking.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/testing.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace purlin::analyze {
namespace {

constexpr double kElements = 1 << 28;
KernelRow pointwise(const char* name) {
  return advised_row(name, "aten::mul", "n=268435456,inputs=1", "f32");
}
double pointwise_ns(double utilization) { return 8 * kElements / kBandwidth * 1e9 / utilization; }
KernelRow gemm() { return advised_row(kGemm, "aten::mm", "M=4096,N=4096,K=4096", "f32"); }
double gemm_ns(double flops_per_s) { return 2.0 * 4096 * 4096 * 4096 / flops_per_s * 1e9; }

TEST(Advise, NothingWithoutAProfile) {
  const Profile empty;
  const Advice advice = advise(empty, analyze_timeline(empty));
  EXPECT_EQ(advice.verdict, "unknown");
  EXPECT_TRUE(advice.interventions.empty());
  EXPECT_NE(advice.nothing.find("no profile"), std::string::npos);
}

// S42: kernels at 85 % of their roof, 60 % idle.
TEST(Advise, EfficientKernelsAndAnIdleDeviceAreAQuestionOfScheduling) {
  Program program;
  const double ns = pointwise_ns(0.85);
  for (int i = 0; i < 40; ++i)
    program.late_kernel(pointwise("void scale<float>(float*)"), ns,
                        static_cast<std::int64_t>(1.5 * ns));
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "scheduling");
  EXPECT_NEAR(advice.idle_share, 0.6, 0.02);
  EXPECT_NEAR(advice.kernel_utilization, 0.85, 0.01);
  ASSERT_FALSE(advice.interventions.empty());
  for (const Intervention& one : advice.interventions) EXPECT_EQ(one.regime, "host") << one.id;
  EXPECT_TRUE(advice.tune.empty());
}

// Near the roof and busy: no advice, and the reason is reported.
TEST(Advise, SilentWhereNothingIsWorthTheWork) {
  Program program;
  for (int i = 0; i < 20; ++i)
    program.kernel(pointwise("void scale<float>(float*)"), pointwise_ns(0.92));
  const Advice advice = program.advice();
  EXPECT_TRUE(advice.interventions.empty());
  EXPECT_FALSE(advice.nothing.empty());
  EXPECT_EQ(advice.verdict, "scale_hardware");
}

// S24: memory-bound kernels never get advice about tensor cores, compute-bound ones none about
// coalescing.
TEST(Advise, TheFirstAdviceFitsTheRegime) {
  Program memory, compute;
  for (int i = 0; i < 20; ++i) {
    memory.kernel(pointwise("void scale<float>(float*)"), pointwise_ns(0.25));
    compute.kernel(gemm(), gemm_ns(15e12));
  }
  const Advice slow = memory.advice();
  ASSERT_FALSE(slow.interventions.empty());
  EXPECT_EQ(slow.interventions[0].id, "stream_wider");
  EXPECT_EQ(find(slow, "tensor_cores"), nullptr);
  EXPECT_EQ(slow.verdict, "tune");
  const Advice idle = compute.advice();
  ASSERT_FALSE(idle.interventions.empty());
  EXPECT_EQ(idle.interventions[0].id, "tensor_cores");
  EXPECT_EQ(find(idle, "stream_wider"), nullptr);
  EXPECT_FALSE(idle.interventions[0].guard.empty());  // numerics
}

// With 16 bits, what lies between the products moves half of its bytes as well: at best.
TEST(Advise, PrecisionHalvesTheTrafficBetweenProducts) {
  const auto high = [](const char* dtype) {
    Program program;
    for (int i = 0; i < 20; ++i) {
      program.kernel(gemm(), gemm_ns(60e12));
      program.kernel(
          advised_row("void scale<float>(float*)", "aten::mul", "n=67108864,inputs=1", dtype),
          gemm_ns(60e12));
    }
    const Advice advice = program.advice();
    const Intervention* one = find(advice, "tensor_cores");
    return one != nullptr ? one->saved_share.high : 0;
  };
  EXPECT_NEAR(high("f32") - high("bf16"), 0.45 / 2, 0.06);
}

// S25: same runtime, opposite fixes.
TEST(Advise, MoreFlopsBuyAMemoryBoundKernelNothing) {
  Program memory, compute;
  for (int i = 0; i < 20; ++i) {
    memory.kernel(pointwise("void scale<float>(float*)"), pointwise_ns(0.8));
    compute.kernel(gemm(), gemm_ns(60e12));
  }
  const auto saved = [](const Advice& advice, std::string_view resource) {
    for (const WhatIf& one : advice.what_if)
      if (one.resource == resource) return one.saved_share;
    return -1.0;
  };
  EXPECT_EQ(saved(memory.advice(), "compute"), 0.0);
  EXPECT_NEAR(saved(memory.advice(), "memory_bandwidth"), 0.5, 0.02);
  EXPECT_NEAR(saved(compute.advice(), "compute"), 0.5, 0.02);
  EXPECT_EQ(saved(compute.advice(), "memory_bandwidth"), 0.0);
  const Advice advice = memory.advice();
  ASSERT_FALSE(advice.no_gain.empty());
  EXPECT_EQ(advice.no_gain[0].what, "twice the FLOP/s");
  EXPECT_EQ(advice.no_gain[0].saved_ns, 0.0);
}

// S41: copies during the computation cause no advice.
TEST(Advise, OnlyCopiesThatNothingHidesAreFlagged) {
  Program serial, overlapped;
  for (int i = 0; i < 20; ++i) {
    serial.copy("h2d", 1'000'000, 32 << 20).kernel(pointwise("void f(float*)"), 1'000'000);
    overlapped.kernel(pointwise("void f(float*)"), 1'000'000).copy("h2d", 900'000, 32 << 20, true);
  }
  const Advice bad = serial.advice();
  const Intervention* copies = find(bad, "overlap_copies");
  ASSERT_NE(copies, nullptr);
  EXPECT_LE(copies->saved_ns.high, 20e6);
  EXPECT_TRUE(std::any_of(bad.alerts.begin(), bad.alerts.end(),
                          [](const Alert& alert) { return alert.id == "copies_not_overlapped"; }));
  const Advice good = overlapped.advice();
  EXPECT_EQ(find(good, "overlap_copies"), nullptr);
  for (const Alert& alert : good.alerts) EXPECT_NE(alert.id, "copies_not_overlapped");
}

// S41: streams that hide most of the copies are pipelined; what is left is no finding.
TEST(Advise, CopiesMostOfWhichAreHiddenAreNotFlagged) {
  Program mostly;
  for (int i = 0; i < 20; ++i) {
    if (i % 5 < 3)
      mostly.kernel(pointwise("void f(float*)"), 1'000'000).copy("h2d", 1'000'000, 32 << 20, true);
    else
      mostly.copy("h2d", 1'000'000, 32 << 20).kernel(pointwise("void f(float*)"), 1'000'000);
  }
  EXPECT_EQ(find(mostly.advice(), "overlap_copies"), nullptr);
}

// S36: what saves as much is ordered by level, a larger saving comes first at any level.
TEST(Advise, TiesAreOrderedByLevel) {
  std::vector<Intervention> all(6);
  const Level levels[] = {Level::kTuning, Level::kParallelism, Level::kCompute,
                          Level::kMemory, Level::kAlgorithm,   Level::kTuning};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].level = levels[i];
    all[i].saved_ns.mid = i == 5 ? 2000 : 1000 + static_cast<double>(i % 2);
  }
  rank(all);
  const std::vector<Level> expected = {Level::kTuning,  Level::kAlgorithm,   Level::kMemory,
                                       Level::kCompute, Level::kParallelism, Level::kTuning};
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].level, expected[i]) << i;
}

// S17: the same saving in a tenth of the time comes first. An alternative counts a quarter.
TEST(Advise, WhatTakesLessWorkComesFirst) {
  std::vector<Intervention> all(4);
  const char* efforts[] = {"weeks", "days", "hours", "hours"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].effort = efforts[i];
    all[i].saved_ns.mid = 1000;
  }
  all[3].alternative = true;
  all[3].saved_ns.mid = 1200;
  all[1].saved_ns.mid = 1500;
  rank(all);
  EXPECT_EQ(all[0].effort, "hours");
  EXPECT_EQ(all[1].effort, "days");
  EXPECT_TRUE(all[2].alternative);
  EXPECT_EQ(all[3].effort, "weeks");
}

// S43: a wait after each kernel is counted, and the idle time it explains is named.
TEST(Advise, WaitsOfTheHostAreCountedAndPriced) {
  Program program;
  for (int i = 0; i < 50; ++i) program.kernel(pointwise("void f(float*)"), 20'000).wait();
  const Advice advice = program.advice();
  const Intervention* syncs = find(advice, "remove_syncs");
  ASSERT_NE(syncs, nullptr);
  EXPECT_EQ(syncs->saved_ns.low, 0);
  bool counted = false;
  for (const Evidence& item : syncs->evidence)
    counted |= item.value.find("cudaDeviceSynchronize 50 times") != std::string::npos;
  EXPECT_TRUE(counted);
}

// S54: launches that take no time next to their kernels are no reason for a graph.
TEST(Advise, NoGraphForLongKernels) {
  Program program;
  for (int i = 0; i < 30; ++i)
    program.kernel(pointwise("void f(float*)"), 5e6).kernel(pointwise("void g(float*)"), 5e6);
  EXPECT_EQ(find(program.advice(), "cuda_graphs"), nullptr);
}

// S53: obstacles of a capture are reported, and no saving is promised.
TEST(Advise, AGraphThatCannotBeCapturedIsNotPromised) {
  Program program;
  for (int i = 0; i < 100; ++i) {
    program.late_kernel(pointwise("void f(float*)"), 3'000, 6'000);
    program.late_kernel(pointwise("void g(float*)"), 3'000, 6'000).wait();
    program.late_kernel(pointwise("void h(float*)"), 3'000, 6'000);
  }
  const Advice advice = program.advice();
  EXPECT_EQ(find(advice, "cuda_graphs"), nullptr);
  ASSERT_TRUE(std::any_of(advice.no_gain.begin(), advice.no_gain.end(), [](const NoGain& one) {
    return one.what.find("CUDA graph") != std::string::npos && !one.saved_ns &&
           one.why.find("cudaDeviceSynchronize") != std::string::npos;
  }));
}

// A chain over the same elements, and neighbours that are none.
TEST(Advise, FusionNeedsAChain) {
  Program chain, unrelated;
  for (int i = 0; i < 50; ++i) {
    for (const char* name :
         {"void f<float>(float*)", "void g<float>(float*)", "void h<float>(float*)"})
      chain.kernel(pointwise(name), pointwise_ns(0.9));
    KernelRow other = pointwise("void g<float>(float*)");
    other.shape = "n=134217728,inputs=1";
    unrelated.kernel(pointwise("void f<float>(float*)"), pointwise_ns(0.9));
    unrelated.kernel(other, 0.5 * pointwise_ns(0.9));
  }
  const Advice advice = chain.advice();
  const Intervention* fusion = find(advice, "fuse_pointwise");
  ASSERT_NE(fusion, nullptr);
  EXPECT_EQ(fusion->kernels.size(), 3u);
  EXPECT_NEAR(fusion->saved_share.mid, 2.0 / 3, 0.02);  // six passes become two
  EXPECT_EQ(find(unrelated.advice(), "fuse_pointwise"), nullptr);
}

// S38: the target, and that it can be given.
TEST(Advise, TargetsCanBeGiven) {
  Program program;
  for (int i = 0; i < 20; ++i)
    program.kernel(pointwise("void f<float>(float*)"), pointwise_ns(0.55));
  ASSERT_EQ(program.advice().tune.size(), 1u);
  EXPECT_EQ(program.advice().tune[0].target, 0.92);
  AdviceOptions modest;
  modest.targets.memory = 0.5;
  EXPECT_TRUE(program.advice(modest).tune.empty());
}

// S93: two lists, each no longer than asked for.
TEST(Advise, TheTwoListsAreShort) {
  Program before, after;
  for (int k = 0; k < 12; ++k) {
    const std::string name = "void kernel_" + std::to_string(k) + "<float>(float*)";
    for (int i = 0; i < 30; ++i) {
      const double ns = pointwise_ns(0.5) + 1000.0 * (i % 3);
      before.kernel(pointwise(name.c_str()), ns);
      after.kernel(pointwise(name.c_str()), (k % 2 == 0 ? 1.3 : 1.0) * ns);
    }
  }
  const auto diff = diff_profiles(before.profile(), after.profile());
  ASSERT_TRUE(diff.is_ok());
  AdviceOptions options;
  options.list = 4;
  options.against = &*diff;
  const Advice advice = after.advice(options);
  EXPECT_EQ(advice.tune.size(), 4u);
  ASSERT_EQ(advice.slower.size(), 4u);
  for (const ListedKernel& item : advice.slower) {
    EXPECT_NE(item.why.find("+30%"), std::string::npos) << item.why;
    EXPECT_FALSE(item.kernel_id.empty());
  }
  options.list = 100;
  EXPECT_EQ(after.advice(options).slower.size(), 6u);  // those that did get slower
  // The other way round nothing got slower.
  const auto turned = diff_profiles(after.profile(), before.profile());
  options.against = &*turned;
  EXPECT_TRUE(before.advice(options).slower.empty());
}

// Amdahl, order and completeness, for every program.
TEST(Advise, EveryInterventionIsCompleteAndBounded) {
  std::set<std::string> seen;
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    Program program;
    for (int i = 0; i < 30; ++i) {
      const auto utilization = 0.05 + 0.01 * static_cast<double>(random.below(90));
      const std::uint64_t what = random.below(6);
      if (what == 0) program.kernel(gemm(), gemm_ns(60e12 * utilization));
      if (what == 1) program.kernel(pointwise("void a(float*)"), pointwise_ns(utilization));
      if (what == 2)
        program.late_kernel(pointwise("void b(float*)"), pointwise_ns(utilization), 1'000'000);
      if (what == 3) program.copy("h2d", 500'000, 4 << 20);
      if (what == 4) program.wait();
      if (what == 5)
        program.kernel(
            advised_row("void convert<float>(float*)", "aten::copy_", "n=1048576,inputs=1", "f32"),
            20'000);
    }
    program.kernel(pointwise("void a(float*)"), pointwise_ns(0.5));
    const Advice advice = program.advice();
    double last = 1e18;
    std::size_t place = 0;
    for (const Intervention& one : advice.interventions) {
      seen.insert(one.id);
      EXPECT_FALSE(one.evidence.empty()) << one.id;
      EXPECT_FALSE(one.how.empty()) << one.id;
      EXPECT_FALSE(one.title.empty() || one.confidence.empty() || one.effort.empty() ||
                   one.risk.empty() || one.portability.empty() || one.expertise.empty())
          << one.id;
      EXPECT_LE(one.saved_share.low, one.saved_share.mid);
      EXPECT_LE(one.saved_share.mid, one.saved_share.high);
      EXPECT_LE(one.saved_share.high, 1);
      // The second and third place go to what saves most on top of those before.
      EXPECT_LE(worth(one), last * 1.02 + 1e-9);
      if (place == 0 || place > 2) last = worth(one);
      EXPECT_TRUE(place == 1 || place == 2 || !one.on_top_share) << one.id;
      ++place;
    }
    const Profile& profile = program.profile();
    double kernel_ns = 0;
    for (const KernelRow& one : profile.kernels) kernel_ns += one.duration.total_ns();
    for (const Intervention& one : advice.interventions)
      if (!one.kernels.empty() && one.regime != "host" && one.risk != "high") {
        double owned = 0;
        const Report rows = build_rows(profile, GroupBy::kKernel);
        for (const KernelStat& kernel : rows.kernels)
          if (std::find(one.kernels.begin(), one.kernels.end(), kernel.label) != one.kernels.end())
            owned += kernel.duration.total_ns();
        // What removes launches has a margin for the host's time that they take.
        const double margin = margin_of(one.id).above * advice.unit.baseline_ns.mid;
        EXPECT_LE(one.saved_ns.high, owned * 1.0001 + margin) << one.id;
      }
  }
  EXPECT_GE(seen.size(), 5u);
}

// With all records, figures are finite and in order, and nothing is read out of bounds.
TEST(Advise, AbsurdTimelinesDoNoHarm) {
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    Profile profile = random_timeline(random, 1 + static_cast<std::int64_t>(random.below(100'000)));
    profile.environment.devices[0] = h200();
    profile.source = round % 2 == 0 ? "kineto" : "";
    for (KernelRow& one : profile.kernels) {
      one.duration.add(static_cast<double>(random.below(1000)));
      one.shape = "n=1024,inputs=1";
      one.dtype = "f32";
    }
    const Advice advice = advise(profile, analyze_timeline(profile));
    for (const Intervention& one : advice.interventions) {
      EXPECT_TRUE(std::isfinite(one.saved_ns.low) && std::isfinite(one.saved_ns.high)) << one.id;
      EXPECT_LE(one.saved_ns.low, one.saved_ns.mid) << one.id;
      EXPECT_LE(one.saved_ns.mid, one.saved_ns.high) << one.id;
    }
    EXPECT_FALSE(to_json(advice).dump().empty());
    EXPECT_FALSE(render_advice(advice, Terminal(false, false, false, 80)).empty());
  }
}

// S34: each remedy is one entry under one pillar, with everything that a reader needs.
TEST(Remedies, AreComplete) {
  std::set<std::string_view> ids;
  for (const Remedy& remedy : remedies()) {
    EXPECT_TRUE(ids.insert(remedy.id).second) << remedy.id;
    for (const std::string_view text : {remedy.title, remedy.regime, remedy.effort, remedy.risk,
                                        remedy.portability, remedy.expertise, remedy.how})
      EXPECT_FALSE(text.empty()) << remedy.id;
    EXPECT_FALSE(to_text(remedy.pillar).empty());
    // What changes results says what to check.
    EXPECT_TRUE(remedy.risk != "high" || !remedy.guard.empty()) << remedy.id;
  }
}

// The hook for PyTorch knows what a step took before its trace.
TEST(Unit, TheStepBeforeTheTraceIsTheBaseline) {
  TimelineBuilder builder;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = i * 80'000'000;
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), at, 80'000'000);
    for (int k = 0; k < 4; ++k)
      builder.kernel("gemm", at + 5'000'000 + k * 20'000'000, 9'000'000,
                     builder.launch(at + 4'900'000 + k * 20'000'000, 10'000));
  }
  for (int i = 0; i < 40; ++i) builder.profile.kernels[0].duration.add(9'000'000);
  const double inflated = advise(builder.sorted(), analyze_timeline(builder.profile)).idle_share;
  EXPECT_NEAR(inflated, 1 - 36.0 / 80, 0.01);
  builder.profile.coverage.step_ns = 48e6;
  const Advice advice = advise(builder.profile, analyze_timeline(builder.profile));
  EXPECT_NEAR(advice.unit.recorded_ns, 80e6, 1e6);
  EXPECT_NEAR(advice.unit.baseline_ns.mid, 48e6, 1e6);
  EXPECT_LT(advice.unit.baseline_ns.low, advice.unit.baseline_ns.mid);
  EXPECT_NEAR(advice.idle_share, 1 - 36.0 / 48, 0.01);
}

TEST(JoinAlike, ProblemsOfOneKernelAreOneIntervention) {
  const auto of = [](const char* id, const char* kernel, double saved, const char* value) {
    Intervention one;
    one.id = id;
    one.kernels = {kernel};
    one.saved_ns = {saved, saved, saved};
    one.confidence = saved > 5 ? "C" : "B";
    one.evidence = {{"registers of a thread", value, "launch"}, {"device", "H100", "launch"}};
    return one;
  };
  std::vector<Intervention> all = {
      of("fewer_registers", "k", 3, "255"), of("fewer_registers", "other", 2, "255"),
      of("fewer_registers", "k", 10, "128"), of("remove_spills", "k", 1, "255")};
  join_alike(all);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].saved_ns, (Interval3{13, 13, 13}));
  EXPECT_EQ(all[0].confidence, "C");
  EXPECT_EQ(all[0].evidence.size(), 3u);
}

}  // namespace
}  // namespace purlin::analyze
