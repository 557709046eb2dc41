// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/learn/margins.h"
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr double kOfGroup = 67'108'864;

// A product, and light kernels after it, each at 0.92 of the bandwidth.
template <class Before>
Advice eager_program(Before before, bool ops = true) {
  const double pass = 2 * kOfGroup / kBandwidth * 1e9 / 0.92;
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               before(program);
               program.kernel(product("M=8192,N=8192,K=8192"), 1.5e6);
               if (ops) program.op("aten::mul");
               program.kernel(functor("Mul", "n=67108864,inputs=1", "bf16"), 2 * pass);
               program.kernel(functor("Add", "n=67108864,inputs=2", "bf16"), 3 * pass);
               program.kernel(functor("Exp", "n=67108864,inputs=1", "bf16"), 2 * pass);
             })
      .advice();
}

TEST(Compile, LightKernelsBetweenProductsBecomeOne) {
  const Advice advice = eager_program([](Program&) {});
  const Intervention* one = find(advice, "compile_model");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "3 launches in 1 group a step"));
  // High: one array is read and one written, of seven passes: the second input has the size of the
  // first, so it may be that one.
  const double pass = 2 * kOfGroup / kBandwidth * 1e9 / 0.92;
  const double step = 1.5e6 + 7 * pass;
  EXPECT_GT(one->saved_share.high, 5 * pass / step);
  EXPECT_LT(one->saved_share.high, 5 * pass / step + margin_of("compile_model").above + 0.03);
  EXPECT_NEAR(one->saved_share.mid, (7 - (7 - 2 - 2 * 0.6 - 0.5) * 0.92 / 0.7) * pass / step, 0.04);
  EXPECT_LT(one->saved_share.low, one->saved_share.mid);
}

// Sixteen launches become one kernel; the last of 33 does not stay alone.
TEST(Compile, TheLastOfManyLightKernelsIsNotLeftOut) {
  const Advice advice = Program()
                            .steps(kSteps,
                                   [](Program& program) {
                                     program.op("aten::cat");
                                     for (int i = 0; i < 16; ++i) {
                                       program.kernel(functor("Mul", "n=3145728,inputs=1"), 8'000);
                                       program.kernel(functor("Sin", "n=3145728,inputs=1"), 6'000);
                                     }
                                     program.kernel(advised_row("CatArrayBatchedCopy", "aten::cat",
                                                                "n=53477376,inputs=1", "f32"),
                                                    2.7e6);
                                   })
                            .advice();
  EXPECT_TRUE(says(find(advice, "compile_model"), "33 launches in 2 groups a step"));
  EXPECT_FALSE(says(find(advice, "compile_model"), "ops for each launch of a library"))
      << "no library launches";
  EXPECT_GT(share_of(advice, "compile_model").mid, 0.4);
}

// Kernels of a thousand elements: their bytes would take nanoseconds.
TEST(Compile, AFusedKernelStartsAndDrains) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   for (int layer = 0; layer < 8; ++layer) {
                     program.op("aten::mul");
                     program.kernel(product("M=64,N=64,K=64"), 3'000);
                     program.kernel(functor("Mul", "n=1024,inputs=1", "bf16"), 3'000);
                     program.kernel(functor("Add", "n=1024,inputs=2", "bf16"), 1'500);
                   }
                 })
          .advice();
  EXPECT_TRUE(says(find(advice, "compile_model"), "12.0 us (12.0 us to"));  // of eight groups
}

TEST(Compile, SilentWhereItIsDoneOrCannotBe) {
  EXPECT_EQ(find(eager_program([](Program& program) { program.op("CompiledFxGraph abc"); }),
                 "compile_model"),
            nullptr);
  EXPECT_EQ(find(eager_program([](Program&) {}, false), "compile_model"), nullptr);  // no PyTorch
  const Advice cut = eager_program([](Program& program) {
    for (int i = 0; i < 3; ++i) program.waiting_op("aten::item");
  });
  EXPECT_EQ(find(cut, "compile_model"), nullptr);
  // An optimizer reads its counters, which are on the host.
  const Advice counters = eager_program([](Program& program) {
    for (int i = 0; i < 3; ++i) program.op("aten::item");
  });
  EXPECT_NE(find(counters, "compile_model"), nullptr);
}

// The host sets the pace of a small network in training: `ops` ops for each launch of a library.
Advice small_training(int ops) {
  return Program()
      .steps(kSteps,
             [ops](Program& program) {
               program.op("autograd::engine::evaluate_function: MmBackward0");
               for (int layer = 0; layer < 8; ++layer) {
                 for (int i = 0; i < ops; ++i) program.op("aten::mul");
                 program.work(20'000);
                 program.kernel(product("M=64,N=64,K=64"), 3'000);
                 program.work(20'000);
                 program.kernel(functor("Mul", "n=4096,inputs=1", "bf16"), 2'000);
                 program.work(20'000);
                 program.kernel(functor("Add", "n=4096,inputs=2", "bf16"), 2'000);
               }
             })
      .advice();
}

TEST(Compile, PromisesASmallNetworkInTrainingNothing) {
  const Advice few = small_training(8), many = small_training(30);
  const Intervention* one = find(few, "compile_model");
  EXPECT_TRUE(one == nullptr || one->saved_share.mid <= 0);
  ASSERT_NE(find(many, "compile_model"), nullptr);
  EXPECT_TRUE(says(find(many, "compile_model"), "ops for each launch of a library: 30"));
  EXPECT_NEAR(share_of(many, "compile_model").mid, 0.25, 0.06);
  EXPECT_LT(share_of(many, "compile_model").low, 0);  // it may lose
}

// What adds at the places of a tensor takes as long in compiled code, and parts the groups.
TEST(Compile, ScattersAreNotLight) {
  const auto between = [](const char* op) {
    KernelRow middle = functor("Mul", "n=134217728,inputs=2", "f32");
    middle.op = op;
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 program.op("aten::zeros");
                 program.kernel(functor("Exp", "n=67108864,inputs=1"), 1e5);
                 program.kernel(middle, 1e6);
                 program.kernel(functor("Sin", "n=67108864,inputs=1"), 1e5);
                 program.kernel(product("M=8192,N=8192,K=8192"), 1e5);
               })
        .advice();
  };
  EXPECT_NE(find(between("aten::mul"), "compile_model"), nullptr);
  for (const char* op : {"aten::index_add_", "aten::scatter_add_", "aten::index_put_"})
    EXPECT_EQ(find(between(op), "compile_model"), nullptr) << op;
}

TEST(Compile, TwoTensorsThatTakeTurnsAreNoGroup) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   program.op("aten::mul_");
                   for (int i = 0; i < 4; ++i) {
                     program.kernel(functor("Mul", "n=67108864,inputs=1"), 120'000);
                     program.kernel(functor("Clamp", "n=67108864,inputs=1"), 120'000);
                   }
                 })
          .advice();
  EXPECT_EQ(find(advice, "compile_model"), nullptr);
}

// Where long kernels of libraries fill the step, the light ones may cost as much as before.
TEST(Compile, AStepOfLongProductsMayGainNothing) {
  const auto low = [](double product_ns) {
    return share_of(Program()
                        .steps(kSteps,
                               [product_ns](Program& program) {
                                 program.kernel(product("M=8192,N=8192,K=8192"), product_ns);
                                 program.op("aten::mul");
                                 program.kernel(functor("Mul", "n=67108864,inputs=1"), 300'000);
                                 program.kernel(functor("Add", "n=67108864,inputs=2"), 300'000);
                               })
                        .advice(),
                    "compile_model")
        .low;
  };
  EXPECT_LE(low(1.5e6), 0);
  EXPECT_GT(low(2e5), 0.05);  // the light ones take most of it
}

}  // namespace
}  // namespace purlin::analyze
