// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr double kMany = 67'108'864;

KernelRow expanding(const std::string& what, const char* in) {
  KernelRow row = functor(what, std::string("n=67108864,inputs=2,in=") + in);
  row.name += " of " + what;
  return row;
}

// Both sides of an expression are made from fewer elements, then joined: nothing is read.
Advice expanded(const char* in, const char* joined) {
  const double written = pointwise_time(kMany, 0.9) / 2;
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(expanding("Maximum", in), written);
               program.kernel(expanding("Minimum", in), written);
               program.kernel(functor("Add", joined), 3 * written);
             })
      .advice();
}

TEST(FusePointwise, BothSidesOfAnExpressionAreMadeFromFewer) {
  const Advice advice = expanded("32768", "n=67108864,inputs=2");
  const Interval3 share = share_of(advice, "fuse_pointwise");
  // One pass that writes is left of five passes.
  EXPECT_NEAR(share.mid, 0.8, 0.03);
  EXPECT_GT(share.low, 0.5);
  // Whole arrays are read: what the second kernel makes is not known to be of the chain.
  EXPECT_LT(share_of(expanded("134217728", "n=67108864,inputs=2"), "fuse_pointwise").mid, 0.5);
  // One side is not read by the kernel that follows.
  EXPECT_EQ(find(expanded("32768", "n=67108864,inputs=1"), "fuse_pointwise"), nullptr);
}

// A kernel that reads the halves of what the chain made goes on with half of the length.
Advice halves(const char* shape) {
  const double pass = pointwise_time(kMany, 0.9);
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(functor("Clamp", "n=67108864,inputs=1"), pass);
               program.kernel(functor("Scale", "n=67108864,inputs=1"), pass);
               program.kernel(functor("Mul", shape), 0.75 * pass);
             })
      .advice();
}

TEST(FusePointwise, TheHalvesOfAGateAreOfTheChain) {
  // 8 and 8 and 6 bytes an element become 6.
  EXPECT_NEAR(share_of(halves("n=33554432,inputs=2"), "fuse_pointwise").mid, 1 - 6.0 / 22, 0.04);
  EXPECT_EQ(find(halves("n=33000000,inputs=2"), "fuse_pointwise"), nullptr);
}

// A sum over the three components of a vector is no norm of a row.
Advice summed(const char* reduced, const char* after) {
  const double pass = pointwise_time(kMany, 0.9);
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(functor("Pow", "n=67108864,inputs=1"), pass);
               program.kernel(reduction(reduced), 0.5 * pass);
               program.kernel(functor("Mul", after), pass);
             })
      .advice();
}

TEST(FusePointwise, AVectorOfOneThreadIsNoRow) {
  const Advice vectors = summed("n=67108864,out=16777216", "n=67108864,inputs=2,in=83886080");
  EXPECT_NE(find(vectors, "fuse_pointwise"), nullptr);
  EXPECT_EQ(find(vectors, "fuse_norm"), nullptr);
  const Advice rows = summed("n=67108864,out=65536", "n=67108864,inputs=2,in=67174400");
  EXPECT_EQ(find(rows, "fuse_pointwise"), nullptr);
  EXPECT_NE(find(rows, "fuse_norm"), nullptr);
}

// Rows of a table that are summed as soon as they are looked up.
Advice pooled(const char* sum) {
  const KernelRow gather =
      advised_row("void at::native::vectorized_gather_kernel<16, long>()", "aten::gather",
                  "indices=819200,cols=128,rows=200000", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(gather, 500'000);
               program.kernel(reduction(sum), 100'000);
             })
      .advice();
}

TEST(FusePointwise, RowsAreAddedUpAsTheyAreLookedUp) {
  const Advice advice = pooled("n=104857600,out=2097152");
  const Intervention* one = find(advice, "fuse_pointwise");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Add up the rows while they are looked up");
  EXPECT_NEAR(one->saved_share.mid, (600.0 - 250) / 600, 0.02);
  EXPECT_NEAR(one->saved_share.low, (600.0 - 400) / 600, 0.09);
  // A sum of other elements, and one that keeps most of them.
  EXPECT_EQ(find(pooled("n=4194304,out=32768"), "fuse_pointwise"), nullptr);
  EXPECT_EQ(find(pooled("n=104857600,out=104857600"), "fuse_pointwise"), nullptr);
}

// A norm in separate kernels over rows of `length`, of 8 M elements.
Advice normed(int length) {
  const int n = 1 << 23, rows = n / length;
  const std::string all = fmt::format("n={}", n), each = fmt::format("n={}", rows);
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(functor("pow", all + ",inputs=1"), 15'000);
               program.kernel(reduction(fmt::format("{},out={}", all, rows)), 8'000);
               program.kernel(functor("rsqrt", each + ",inputs=1"), 3'000);
               program.kernel(functor("mul", fmt::format("{},inputs=2,in={}", all, n + rows)),
                              15'000);
               program.kernel(functor("mul", all + ",inputs=2"), 23'000);
             })
      .advice();
}

TEST(FuseNorm, ALibraryHasABlockForEachShortRow) {
  const Interval3 shorter = share_of(normed(128), "fuse_norm"),
                  longer = share_of(normed(4096), "fuse_norm");
  const double by_row = 65'536.0 / (16 * 132) * 1'600;
  EXPECT_NEAR(shorter.low, 1 - by_row / 64'000, 0.1);
  EXPECT_LT(shorter.low, longer.low - 0.2);
  EXPECT_LT(shorter.mid, longer.mid - 0.1);
  EXPECT_NEAR(shorter.high, longer.high, 0.02);
  EXPECT_FALSE(says(find(normed(4096), "fuse_norm"), "short rows"));
}

// A loss written manually: its mean is one value, and the gradient reads the elements again.
Advice loss_by_hand(const char* mean, const char* absolute = "n=16777216,inputs=1") {
  const double n = 16'777'216, pass = pointwise_time(n, 0.8);
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(functor("Sub", "n=16777216,inputs=2"), 1.5 * pass);
               program.kernel(functor("Abs", absolute), pass);
               program.kernel(functor("Pow", "n=16777216,inputs=1"), pass);
               program.kernel(reduction(mean), 0.5 * pass);
               program.within("autograd::engine::evaluate_function: PowBackward0",
                              [&](Program& inner) {
                                inner.kernel(functor("Mul", "n=16777216,inputs=2"), 1.5 * pass);
                                inner.kernel(functor("Sign", "n=16777216,inputs=1"), pass);
                              });
             })
      .advice();
}

TEST(FusePointwise, ALossAndItsGradientAreNoNorm) {
  const Advice loss = loss_by_hand("n=16777216,out=1");
  EXPECT_EQ(find(loss, "fuse_norm"), nullptr);
  ASSERT_NE(find(loss, "fuse_pointwise"), nullptr);
  EXPECT_GT(share_of(loss, "fuse_pointwise").mid, 0.4);
  EXPECT_NE(find(loss_by_hand("n=16777216,out=65536"), "fuse_norm"), nullptr);
}

TEST(FusePointwise, ExtentsOfAnOpWithoutAProblemShape) {
  const Interval3 whole = share_of(loss_by_hand("n=16777216,out=1"), "fuse_pointwise");
  const Interval3 raw = share_of(loss_by_hand("n=16777216,out=1", "4194304x4,0"), "fuse_pointwise");
  EXPECT_GT(raw.mid, 0.4);
  EXPECT_NEAR(raw.mid, whole.mid, 0.02);
}

// Nsight Systems records shapes and no types: the kernels' names have them.
TEST(FusePointwise, ATypeMayBeThatOfTheName) {
  const auto share = [](const char* dtype) {
    const double pass = 4.0 * 134217728 / kBandwidth * 1e9 / 0.85;
    return share_of(Program()
                        .steps(kSteps,
                               [&](Program& program) {
                                 const char* one = "n=134217728,inputs=1";
                                 program.kernel(functor("Exp", one, dtype), 2 * pass);
                                 program.kernel(functor("Mul", "n=134217728,inputs=2", dtype),
                                                3 * pass);
                                 program.kernel(functor("Tanh", one, dtype), 2 * pass);
                               })
                        .advice(),
                    "fuse_pointwise");
  };
  EXPECT_GT(share("f32").mid, 0.5);
  EXPECT_NEAR(share("").mid, share("f32").mid, 0.01);
}

}  // namespace
}  // namespace purlin::analyze
