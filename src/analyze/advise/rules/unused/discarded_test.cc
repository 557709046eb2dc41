// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <tuple>

namespace purlin::analyze {
namespace {

constexpr const char* kScores = "n=131072000,inputs=1";
constexpr const char* kWidened = "n=131072000,inputs=1,write=524288000";
constexpr const char* kRows = "rows=4096,cols=32000";

KernelRow choosing(const char* op, const char* shape = "n=131072000,out=4096") {
  KernelRow out = reduction(shape);
  out.name += op;
  out.op = op;
  return out;
}

// A cast, a softmax or a function, and what reads it.
Advice chosen_of(const KernelRow& function, const KernelRow& reader, bool trains = false) {
  KernelRow cast = conversion(kWidened);
  cast.dtype = "bf16";
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(product("M=4096,N=32000,K=1024"), 400'000);
               program.kernel(cast, 200'000);
               program.kernel(function, 250'000);
               program.kernel(reader, 150'000);
               if (trains) program.op("autograd::engine::evaluate_function: MmBackward0");
             })
      .advice();
}

TEST(ReduceProblem, ASoftmaxBeforeTheGreatestPlace) {
  const Advice advice = chosen_of(softmax(kRows, "f32"), choosing("aten::argmax"));
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Choose first: the order is the same before a rising function");
  EXPECT_NEAR(one->saved_share.mid, 0.45, 0.01);  // the cast and the softmax of a step of 1 ms
  EXPECT_GT(one->saved_share.low, 0.35);
  EXPECT_TRUE(says(one, "kernels before aten::argmax"));
}

TEST(ReduceProblem, WhatIsChosenOfAFunctionMayNeedItsValues) {
  // A softmax's greatest values, or one in training; elements of a function are computed after.
  EXPECT_LE(
      share_of(chosen_of(softmax(kRows, "f32"), choosing("aten::topk")), "reduce_problem").low, 0);
  EXPECT_LE(
      share_of(chosen_of(softmax(kRows, "f32"), choosing("aten::argmax"), true), "reduce_problem")
          .low,
      0);
  KernelRow sigmoid = functor("Sigmoid", kScores);
  sigmoid.op = "aten::sigmoid";
  EXPECT_GT(share_of(chosen_of(sigmoid, choosing("aten::topk")), "reduce_problem").low, 0.35);
}

TEST(ReduceProblem, FunctionsThatChangeTheOrderStay) {
  for (const auto& [op, shape, reader] :
       {std::tuple{"aten::neg", kScores, "n=131072000,out=4096"},
        {"aten::abs", kScores, "n=131072000,out=4096"},
        {"aten::sigmoid", "n=131072000,inputs=2", "n=131072000,out=4096"},
        {"aten::sigmoid", kScores, "n=65536000,out=4096"}}) {
    KernelRow function = functor("Some", shape);
    function.op = op;
    EXPECT_EQ(find(chosen_of(function, choosing("aten::argmax", reader)), "reduce_problem"),
              nullptr)
        << op << reader;
  }
  EXPECT_EQ(find(chosen_of(softmax(kRows, "f32"), choosing("aten::sum")), "reduce_problem"),
            nullptr);
}

// The maximum of a softmax written manually: its elements are read again.
TEST(ReduceProblem, AMaximumWithinASoftmax) {
  const auto advice_of = [](const char* after) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 KernelRow exp = functor("Exp", kScores);
                 exp.op = "aten::exp";
                 program.kernel(exp, 250'000);
                 program.kernel(choosing("aten::amax"), 150'000);
                 program.kernel(functor("Sub", after), 250'000);
               })
        .advice();
  };
  EXPECT_EQ(find(advice_of("n=131072000,inputs=2,in=131076096"), "reduce_problem"), nullptr);
  EXPECT_NE(find(advice_of("n=4096,inputs=2"), "reduce_problem"), nullptr);
}

Advice added_up(const char* sum, const char* op = "aten::mean", bool activation = false,
                bool backward = false, const char* after = nullptr) {
  KernelRow reader = reduction(sum, "bf16");
  reader.op = op;
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               const auto body = [&](Program& inner) {
                 inner.kernel(product("M=65536,N=1024,K=768"), 165'000);
                 if (activation)
                   inner.kernel(functor("Gelu", "n=67108864,inputs=1", "bf16"), 50'000);
                 inner.kernel(reader, 40'000);
                 if (after != nullptr) inner.kernel(product(after), 165'000);
               };
               if (backward)
                 program.within("autograd::engine::evaluate_function: AddmmBackward0", body);
               else
                 body(program);
             })
      .advice();
}

TEST(ReduceProblem, AProductWhoseRowsAreAddedUp) {
  const Advice advice = added_up("n=67108864,out=131072");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Add up first, multiply the sums");
  const double left = 2'000 + 2.0 * (65'536 + 1'024) * 768 / (0.6 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 205'000, 0.02);
  EXPECT_NE(find(added_up("n=67108864,out=65536", "aten::sum"), "reduce_problem"), nullptr);
}

TEST(ReduceProblem, ProductsThatAreNotOnlyAddedUp) {
  // An activation in between, a maximum, one value, half of the elements, and a gradient.
  EXPECT_EQ(find(added_up("n=67108864,out=131072", "aten::mean", true), "reduce_problem"), nullptr);
  EXPECT_EQ(find(added_up("n=67108864,out=131072", "aten::amax"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(added_up("n=67108864,out=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(added_up("n=67108864,out=33554432"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(added_up("n=67108864,out=1024", "aten::sum", false, true), "reduce_problem"),
            nullptr);
}

TEST(ReduceProblem, AProductThatIsAddedUpAndReadWhole) {
  const auto then = [](const char* next) {
    return added_up("n=67108864,out=131072", "aten::mean", false, false, next);
  };
  EXPECT_EQ(find(then("M=65536,N=768,K=1024"), "reduce_problem"), nullptr);
  EXPECT_NE(find(then("M=128,N=768,K=1024"), "reduce_problem"), nullptr);
}

// Gates of which a few are chosen; a loss may read all of them, or another product writes them
// again.
TEST(ReduceProblem, AChoiceFromWhatIsReadWhole) {
  const auto advice_of = [](const KernelRow& between, const KernelRow& after) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 KernelRow gates = functor("Sigmoid", kScores);
                 gates.op = "aten::sigmoid";
                 program.kernel(gates, 250'000);
                 program.kernel(choosing("aten::topk"), 150'000);
                 program.kernel(between, 20'000);
                 program.kernel(after, 150'000);
               })
        .advice();
  };
  const KernelRow sum = reduction("n=131072000,out=1"), small = functor("Neg", "n=4096,inputs=1");
  EXPECT_EQ(find(advice_of(small, sum), "reduce_problem"), nullptr);
  EXPECT_NE(find(advice_of(small, small), "reduce_problem"), nullptr);
  EXPECT_NE(find(advice_of(product("M=4096,N=32000,K=1024"), sum), "reduce_problem"), nullptr);
}

Advice cut_after(const char* op, const char* reader, const char* more = nullptr) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(functor("Scale", "n=134217728,inputs=1"), 200'000);
               program.kernel(functor("Exp", "n=134217728,inputs=1"), 200'000);
               program.op(op);
               program.kernel(functor("Copy", reader), 20'000);
               if (more != nullptr) program.op(more);
               program.kernel(functor("Neg", reader), 20'000);
             })
      .advice();
}

TEST(ReduceProblem, AResultOfWhichAPartIsRead) {
  const Advice advice = cut_after("aten::slice", "n=8388608,inputs=1");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Cut first, compute on the part");
  EXPECT_NEAR(one->saved_share.mid, 0.9 * 15 / 16 * 400 / 440, 0.03);
  EXPECT_LE(one->saved_share.low, 0);
  // Parts that are handed out, half of it, no selection, and another part that is read later.
  EXPECT_EQ(find(cut_after("aten::chunk", "n=8388608,inputs=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(cut_after("aten::slice", "n=67108864,inputs=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(cut_after("aten::view", "n=8388608,inputs=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(cut_after("aten::slice", "n=8388608,inputs=1", "aten::slice"), "reduce_problem"),
            nullptr);
}

}  // namespace
}  // namespace purlin::analyze
