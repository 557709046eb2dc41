// SPDX-License-Identifier: Apache-2.0
// Programs whose launches, not their kernels, set the pace: S50, S52, S54, with exactly known
// answers.
#include "analyze/advise/facts.h"
#include "analyze/advise/testing.h"
#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::analyze {
namespace {

// Steps of equal launches: each call takes the host `call_ns`, each kernel the device `kernel_ns`.
struct Paced {
  std::string source = "purlin";
  int steps = 12, launches = 300;
  std::int64_t call_ns = 6'000, gap_ns = 0, kernel_ns = 3'000;
  std::string shape = "n=65536,inputs=1";
  int distinct = 10;

  std::int64_t each() const { return std::max(call_ns + gap_ns, kernel_ns); }
  Advice advice() const {
    TimelineBuilder builder;
    builder.profile.environment.devices = {h200()};
    builder.profile.source = source;
    std::int64_t host = 0, device = 0;
    for (int step = 0; step < steps; ++step) {
      const std::int64_t begin = host;
      for (int i = 0; i < launches; ++i) {
        const std::uint32_t call = builder.launch(host, call_ns);
        const std::int64_t at = std::max(device, host + call_ns);
        const std::string name = "void scale_" + std::to_string(i % distinct) + "<float>(float*)";
        builder.kernel(name, at, kernel_ns, call);
        KernelRow& row = builder.profile.kernels[builder.kernel_row(name)];
        row.op = "aten::mul";
        row.shape = shape;
        row.dtype = "f32";
        row.launch.block = {256, 1, 1};
        row.duration.add(static_cast<double>(kernel_ns));
        device = at + kernel_ns;
        host += call_ns + gap_ns;
      }
      builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), begin, host - begin);
    }
    const Profile& profile = builder.sorted();
    return advise(profile, analyze_timeline(profile));
  }
  // What a graph would leave of a step: kernels, and half a microsecond between them.
  double truth(double recorder_ns) const {
    const double step = launches * (static_cast<double>(each()) - recorder_ns);
    return 1 - (launches * (static_cast<double>(kernel_ns) + 500) + 10'000) / step;
  }
};

// S50: a call takes 6.6 us, of which the recorder 1.1: ten launches that become one save nine
// calls, 49.5 us.
TEST(Launches, TenThatBecomeOneSaveNineCalls) {
  Paced paced;
  paced.launches = 10;
  paced.call_ns = 6'600;
  paced.kernel_ns = 1'000;
  const Advice advice = paced.advice();
  const Intervention* fused = find(advice, "fuse_pointwise");
  ASSERT_NE(fused, nullptr);
  EXPECT_NEAR(fused->saved_ns.mid, 49'500, 1'500);
  // The host's cost of a launch is this trace's, not a constant.
  paced.call_ns = 12'100;
  const Advice slower = paced.advice();
  ASSERT_NE(find(slower, "fuse_pointwise"), nullptr);
  EXPECT_NEAR(find(slower, "fuse_pointwise")->saved_ns.mid, 99'000, 3'000);
}

// S52: how much of the host's pace the recorder made is a range, and the truth is in the interval
// whether it made none or half of it.
TEST(Launches, AGraphsIntervalHoldsTheTruthOfEachRecorder) {
  for (const char* source : {"kineto", "nsys", "purlin"}) {
    for (const std::int64_t gap : {0, 2'000, 6'000}) {
      Paced paced;
      paced.source = source;
      paced.gap_ns = gap;
      const Advice advice = paced.advice();
      EXPECT_EQ(advice.verdict, "scheduling") << source << " " << gap;
      const Intervention* graph = find(advice, "cuda_graphs");
      ASSERT_NE(graph, nullptr) << source << " " << gap;
      for (const double recorder : {600.0, 1'500.0}) {
        EXPECT_LE(graph->saved_share.low, paced.truth(recorder)) << source << " " << gap;
        EXPECT_GE(graph->saved_share.high, paced.truth(recorder)) << source << " " << gap;
      }
    }
  }
}

// The verdict states how far its figure depends on the recorder.
TEST(Launches, TheIdleShareHasARange) {
  Paced paced;
  paced.source = "kineto";
  paced.gap_ns = 2'000;
  const Advice advice = paced.advice();
  EXPECT_LT(advice.idle_range.low, advice.idle_share);
  EXPECT_NEAR(advice.idle_range.high, 1 - 3.0 / 8, 0.02);  // the recorder added nothing
  EXPECT_NE(advice.verdict_text.find("how much the recorder added is an estimate"),
            std::string::npos);
}

// Launches of 3 us on a busy device are at 5 % of their roof, and cannot be tuned eighteenfold.
TEST(Launches, ShortOnesAreNotTuned) {
  Paced paced;
  paced.call_ns = 1'000;  // the host runs ahead
  const Advice advice = paced.advice();
  EXPECT_EQ(advice.verdict, "restructure");
  EXPECT_GT(advice.short_share, 0.99);
  EXPECT_LT(advice.levels[static_cast<std::size_t>(LossLevel::kTune)], 0.01);
  EXPECT_TRUE(advice.tune.empty());
}

// S54
TEST(Launches, LongKernelsNeedNoGraph) {
  Paced paced;
  paced.launches = 10;
  paced.kernel_ns = 5'000'000;
  paced.shape = "n=134217728,inputs=1";
  EXPECT_EQ(find(paced.advice(), "cuda_graphs"), nullptr);
}

// S55: what could use the tensor cores is a separate figure, also where no roof is known.
TEST(TensorShares, CountsWhatIsEligibleAndWhatIsUsed) {
  const Advice advice =
      Program()
          .steps(12,
                 [](Program& program) {
                   program.kernel(advised_row(kGemm, "", "", ""), 600'000);
                   program.kernel(advised_row("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_"
                                              "tilesize128x128x64_warpgroupsize1x1x1_execute_"
                                              "segment_k_off_kernel__5x_cublas",
                                              "", "", ""),
                                  300'000);
                   program.kernel(advised_row("relax(float*, int)", "", "", ""), 100'000);
                 })
          .advice();
  EXPECT_NEAR(advice.tensor.eligible, 0.9, 0.01);
  EXPECT_NEAR(advice.tensor.idle, 0.6, 0.01);
  EXPECT_NEAR(advice.tensor.used, 0.3, 0.01);
  const std::string text = render_advice(advice, Terminal(false, false, true, 200));
  EXPECT_NE(text.find("tensor cores: 90% of the kernel time is eligible"), std::string::npos);
}

}  // namespace
}  // namespace purlin::analyze
