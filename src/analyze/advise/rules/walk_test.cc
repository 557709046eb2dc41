// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/walk.h"

#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace purlin::analyze {
namespace {

constexpr int kKindsOfWeights = 500;

constexpr const char* kGradientOp = "autograd::engine::evaluate_function: AddmmBackward0";

int width_of(int product) { return 1024 + 8 * (product % kKindsOfWeights); }

// The gradients of products in one op and more, each of which is accumulated, and their update,
// which leaves half of them out.
void train(Program& step, int products, bool in_one_op) {
  const auto gradient = [](int i) {
    return product(fmt::format("M=1024,N={},K=2048", width_of(i)));
  };
  std::int64_t elements = 0;
  if (in_one_op)
    step.within(kGradientOp, [&](Program& inner) {
      for (int i = 0; i < products; ++i) inner.kernel(gradient(i), 20'000);
    });
  for (int i = 0; i < products; ++i) {
    if (!in_one_op)
      step.within(kGradientOp, [&](Program& inner) { inner.kernel(gradient(i), 20'000); });
    with_inputs(step, "torch::autograd::AccumulateGrad",
                fmt::format("1024x{}", width_of(i)).c_str(), [](Program&) {});
    if (i >= products / 2) elements += 1024 * width_of(i);
  }
  with_inputs(
      step, "aten::_fused_adam_",
      fmt::format("n={},inputs=4,outputs=3,tensors={}", elements, products - products / 2).c_str(),
      [](Program& inner) {
        inner.kernel(advised_row("void multi_tensor_apply_kernel<FusedAdam>()",
                                 "aten::_fused_adam_", "", "f32"),
                     50'000);
      });
}

enum class Kind { kInference, kTraining, kOneLargeOp };

// Of steps of so many products, each of one of 500 weights, with a pointwise kernel behind it.
std::size_t looks_at(int products, Kind kind) {
  Program program;
  program.steps(2, [&](Program& step) {
    for (int i = 0; i < products; ++i) {
      step.kernel(product(fmt::format("M=2048,N={},K=1024", width_of(i))), 20'000);
      step.kernel(functor("Tanh", fmt::format("n={},inputs=1", 2048 * width_of(i))), 10'000);
    }
    if (kind != Kind::kInference) train(step, products, kind == Kind::kOneLargeOp);
  });
  const Profile& profile = program.profile();
  const TimelineAnalysis timeline = analyze_timeline(profile);
  const Facts facts = gather(profile, timeline, {}, {});
  Walk walk(facts);
  Advice advice;
  const std::size_t before = walk.looks();
  for (const Rule* rule : playbook()) rule->add(walk, advice);
  return walk.looks() - before;
}

// Twice the launches are twice the work, not four times, however many weights there are.
TEST(Walk, RulesLookAtALongStepAFewTimes) {
  for (const Kind kind : {Kind::kInference, Kind::kTraining, Kind::kOneLargeOp}) {
    const std::size_t one = looks_at(500, kind), two = looks_at(1'000, kind);
    EXPECT_GT(one, 2'000u);
    EXPECT_LT(two, 2.5 * static_cast<double>(one)) << one << ", " << two;
  }
}

}  // namespace
}  // namespace purlin::analyze
