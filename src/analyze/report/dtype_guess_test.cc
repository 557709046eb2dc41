// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/dtype_guess.h"

#include "analyze/report/report.h"
#include "analyze/report/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr const char* kBf16 = "void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)";
constexpr const char* kF32 = "void layer_norm_kernel<float>(float*)";
constexpr const char* kUntold = "paged_attention_any";
constexpr const char* kConvert = "triton_poi_fused__to_copy_3";
constexpr const char* kIndices = "void index_elementwise_kernel<int>(int*)";

// A stream of launches of 10 us, by name.
Profile launches_of(const std::vector<std::string>& names) {
  Profile profile;
  profile.environment.devices.resize(1);
  profile.processes.resize(1);
  for (const std::string& name : names) {
    std::uint32_t row = 0;
    while (row < profile.kernels.size() && profile.kernels[row].name != name) ++row;
    if (row == profile.kernels.size()) profile.kernels.emplace_back().name = name;
    profile.kernels[row].duration.add(10'000);
    Activity activity;
    activity.start_ns = 12'000 * static_cast<std::int64_t>(profile.timeline.activities.size());
    activity.duration_ns = 10'000;
    activity.row = row;
    profile.timeline.activities.push_back(activity);
  }
  return profile;
}

KernelStat guessed(const Profile& profile, const std::string& name,
                   GroupBy group_by = GroupBy::kKernel) {
  for (const KernelStat& stat : build_rows(profile, group_by).kernels)
    if (stat.name.full == name) return stat;
  ADD_FAILURE() << "no row " << name;
  return {};
}

std::vector<std::string> repeated(std::vector<std::string> layer, int times) {
  std::vector<std::string> out;
  for (int i = 0; i < times; ++i) out.insert(out.end(), layer.begin(), layer.end());
  return out;
}

TEST(DtypeGuess, IsThatOfTheLaunchesAround) {
  const KernelStat stat = guessed(launches_of(repeated({kBf16, kUntold, kIndices}, 4)), kUntold);
  EXPECT_EQ(stat.dtype, "");
  EXPECT_EQ(stat.dtype_guess, (DtypeGuess{"bf16", "neighbours"}));
  EXPECT_EQ(dtype_text(stat), "bf16?");
}

TEST(DtypeGuess, IsNoneBetweenTwoTypes) {
  const Profile mixed = launches_of(repeated({kBf16, kUntold, kF32}, 4));
  EXPECT_EQ(dtype_text(guessed(mixed, kUntold)), "");
}

TEST(DtypeGuess, IsNoneOfConversionsAndWhatIsKnown) {
  const Profile profile = launches_of(repeated({kBf16, kConvert, kIndices, kUntold}, 4));
  EXPECT_EQ(dtype_text(guessed(profile, kConvert)), "");
  EXPECT_EQ(guessed(profile, kIndices).dtype_guess.dtype, "");
  EXPECT_EQ(guessed(profile, kBf16).dtype_guess.dtype, "");
}

TEST(DtypeGuess, FarLaunchesAndOneAloneTellNothing) {
  std::vector<std::string> far = {kBf16};
  far.insert(far.end(), 20, kIndices);
  far.push_back(kUntold);
  EXPECT_EQ(dtype_text(guessed(launches_of(far), kUntold)), "");
  EXPECT_EQ(dtype_text(guessed(launches_of({kBf16, kUntold}), kUntold)), "");
}

TEST(DtypeGuess, OtherStreamsAreNoNeighbours) {
  Profile profile = launches_of(repeated({kBf16, kUntold}, 4));
  for (Activity& activity : profile.timeline.activities) activity.stream = activity.row;
  EXPECT_EQ(dtype_text(guessed(profile, kUntold)), "");
}

TEST(DtypeGuess, OperandsOfEightBitsComeWithOthers) {
  const Profile profile = launches_of(repeated({"_gemm_kernel_fp8", kUntold}, 4));
  EXPECT_EQ(dtype_text(guessed(profile, kUntold)), "");
}

TEST(DtypeGuess, TheInputsOfAnOpAroundItComeFirst) {
  Profile profile = launches_of(repeated({kBf16, kUntold}, 4));
  Timeline& timeline = profile.timeline;
  timeline.names = {"", "f16", "custom::attention"};
  Op op;
  op.name = 2;
  op.dtype = 1;
  timeline.ops = {op};
  Call call;
  call.op = 0;
  timeline.calls = {call};
  for (Activity& activity : timeline.activities)
    if (activity.row == 1) activity.call = 0;
  EXPECT_EQ(guessed(profile, kUntold).dtype_guess, (DtypeGuess{"f16", "op"}));
}

TEST(DtypeGuess, WithoutATimelineAllKernelsMustAgree) {
  Profile profile = launches_of(repeated({kBf16, kBf16, kUntold}, 4));
  profile.timeline = {};
  EXPECT_EQ(guessed(profile, kUntold).dtype_guess, (DtypeGuess{"bf16", "profile"}));
  Profile mixed = launches_of(repeated({kBf16, kF32, kUntold}, 4));
  mixed.timeline = {};
  EXPECT_EQ(dtype_text(guessed(mixed, kUntold)), "");
}

TEST(DtypeGuess, IsMarkedInJsonAndCsv) {
  Report report = build_rows(launches_of(repeated({kBf16, kUntold}, 4)), GroupBy::kKernel);
  const Json document = to_json(report);
  for (const Json& kernel : document["kernels"].items()) {
    const bool untold = kernel["name"].as_string() == kUntold;
    EXPECT_EQ(kernel["dtype"].as_string(), untold ? "bf16" : "");
    EXPECT_EQ(kernel["dtype_from"].dump(), untold ? "\"neighbours\"" : "null");
  }
  EXPECT_NE(to_csv(report).find(",neighbours\r\n"), std::string::npos);
}

}  // namespace
}  // namespace purlin::analyze
