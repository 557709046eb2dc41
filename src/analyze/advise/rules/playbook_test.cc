// SPDX-License-Identifier: Apache-2.0
// Each rule of the playbook both ways: it fires with the right number where the answer is known
// exactly, and stays silent where it must.
#include "analyze/advise/rules/playbook.h"

#include "analyze/advise/rules/testing.h"
#include "base/files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace purlin::analyze {
namespace {

// S11: as many FLOPs, without the scores.
TEST(Playbook, AttentionInThreeKernelsIsOne) {
  const auto body = [](bool normalised) {
    return [normalised](Program& program) {
      for (int layer = 0; layer < 4; ++layer) {
        program.kernel(product("B=128,M=4096,N=4096,K=128"), 1e6);
        program.kernel(functor("Mul", "n=2147483648,inputs=1", "bf16"), 2e6);
        if (normalised) program.kernel(softmax("rows=524288,cols=4096"), 2e6);
        program.kernel(product("B=128,M=4096,N=128,K=4096"), 1e6);
      }
    };
  };
  const Advice advice = Program().steps(kSteps, body(true)).advice();
  ASSERT_NE(find(advice, "flash_attention"), nullptr);
  EXPECT_EQ(advice.interventions[0].id, "flash_attention");
  const double work = 2 * 2 * 128.0 * 4096 * 4096 * 128 / (0.45 * kPeak) * 1e9;
  EXPECT_NEAR(share_of(advice, "flash_attention").mid, 1 - work / 6e6, 0.02);
  EXPECT_TRUE(says(find(advice, "flash_attention"), "48 times of 4 kernels"));
  EXPECT_EQ(find(Program().steps(kSteps, body(false)).advice(), "flash_attention"), nullptr);
  // A window of 64 positions fills a quarter of the fused kernel's tiles.
  const Advice windows = Program()
                             .steps(kSteps,
                                    [](Program& program) {
                                      program.kernel(product("B=16384,M=64,N=64,K=32"), 400'000);
                                      program.kernel(softmax("rows=1048576,cols=64"), 400'000);
                                      program.kernel(product("B=16384,M=64,N=32,K=64"), 400'000);
                                    })
                             .advice();
  const double outer = 4 * 2 * 16384.0 * 64 * 32 / (0.92 * kBandwidth) * 1e9 / 0.25;
  EXPECT_NEAR(share_of(windows, "flash_attention").mid, 1 - outer / 1.2e6, 0.02);
  // With a bias of fewer elements, the fused kernel may be as slow.
  const Advice biased =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   program.kernel(product("B=16384,M=64,N=64,K=32"), 400'000);
                   program.kernel(functor("Add", "n=67108864,inputs=2,in=67141632", "bf16"),
                                  400'000);
                   program.kernel(softmax("rows=1048576,cols=64"), 400'000);
                   program.kernel(product("B=16384,M=64,N=32,K=64"), 400'000);
                 })
          .advice();
  EXPECT_LE(share_of(biased, "flash_attention").low, 0);
  EXPECT_NEAR(share_of(biased, "flash_attention").mid, 0.5 * (1 - outer / 1.6e6), 0.02);
  // The softmax of a classifier lies between two products as well, over the model's width.
  const Advice classifier = Program()
                                .steps(kSteps,
                                       [](Program& program) {
                                         program.kernel(product("M=4096,N=50257,K=768"), 1e6);
                                         program.kernel(softmax("rows=4096,cols=50257"), 2e6);
                                         program.kernel(product("M=4096,N=768,K=50257"), 1e6);
                                       })
                                .advice();
  EXPECT_EQ(find(classifier, "flash_attention"), nullptr);
}

// S46, S47: 40 % of the traffic, but not of the time.
TEST(Playbook, AnEpilogueSavesTrafficAndThePointwiseTime) {
  const auto body = [](const char* between) {
    return [between](Program& program) {
      for (int i = 0; i < 20; ++i) {
        program.kernel(product("M=1024,N=4096,K=4096"), 44'500);
        program.kernel(functor("Add", between, "bf16"), 5'600);
        program.kernel(functor("Relu", "n=4194304,inputs=1", "bf16"), 5'600);
      }
    };
  };
  const Advice advice = Program().steps(kSteps, body("n=4194304,inputs=2,in=4198400")).advice();
  const Intervention* one = find(advice, "fuse_epilogue");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "83.894 MB now, 50.340 MB fused: 40% less"));
  EXPECT_NEAR(one->saved_share.mid, (55.7 - 1.06 * 44.5) / 55.7, 0.02);
  EXPECT_EQ(find(Program().steps(kSteps, body("n=1024,inputs=1")).advice(), "fuse_epilogue"),
            nullptr);
}

// S48: 6 N bytes become 2 N.
TEST(Playbook, ASoftmaxInPiecesIsOneKernel) {
  const double n = 67'108'864, pass = 4 * n / kBandwidth * 1e9;
  const Advice advice =
      Program()
          .steps(kSteps,
                 [&](Program& program) {
                   for (int i = 0; i < 5; ++i) {
                     program.kernel(functor("Exp", "n=67108864,inputs=1"), 2 * pass / 0.92);
                     program.kernel(reduction("n=67108864,out=67108864"), 2 * pass / 0.92);
                     program.kernel(functor("Div", "n=67108864,inputs=1"), 2 * pass / 0.92);
                   }
                 })
          .advice();
  const Intervention* one = find(advice, "fuse_norm");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "from 6.0 to 2.0 times"));
  EXPECT_TRUE(says(one, "60 times"));                          // a round of the loop, not the loop
  EXPECT_NEAR(one->saved_share.high, 1 - 2 * 0.92 / 6, 0.22);  // what remains is uncertain too
}

TEST(Playbook, TwoTensorsOfOneSizeAreNoChain) {
  const double ns = pointwise_time(268435456, 0.9);
  const Advice advice =
      Program()
          .steps(kSteps,
                 [&](Program& program) {
                   for (int i = 0; i < 6; ++i) {
                     program.kernel(functor("Exp", "n=268435456,inputs=1"), ns);
                     program.kernel(functor("Sigmoid", "n=268435456,inputs=1"), ns);
                   }
                 })
          .advice();
  EXPECT_EQ(find(advice, "fuse_pointwise"), nullptr);
}

// A chain at a tenth of the bandwidth may be arithmetic, which fusion keeps.
TEST(Playbook, FusionDoesNotAssumeAMemoryBound) {
  const double ns = pointwise_time(268435456, 0.1);
  const Advice advice = Program()
                            .steps(kSteps,
                                   [&](Program& program) {
                                     for (const char* what : {"Pow", "Sin", "Tanh"})
                                       program.kernel(functor(what, "n=268435456,inputs=1"), ns);
                                   })
                            .advice();
  const Intervention* one = find(advice, "fuse_pointwise");
  ASSERT_NE(one, nullptr);
  EXPECT_LT(one->saved_share.low, 0.05);
  EXPECT_EQ(one->confidence, "D");
}

// S58
TEST(Playbook, MisalignedExtentsAreNamedAndPadded) {
  const auto advice_of = [](const char* shape) {
    return Program()
        .steps(kSteps,
               [shape](Program& program) {
                 for (int i = 0; i < 10; ++i)
                   program.kernel(product(shape,
                                          "cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_"
                                          "nn_align1"),
                                  1e6);
               })
        .advice();
  };
  const Advice odd = advice_of("M=4096,N=4096,K=4001");
  const Intervention* one = find(odd, "align_dimensions");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "K=4001 is not a multiple of 8; padded, at least: M=4096, N=4096, K=4008"));
  EXPECT_NEAR(one->saved_share.mid, 1 - 2 * 4096.0 * 4096 * 4008 / (0.6 * kPeak) * 1e9 / 1e6, 0.02);
  EXPECT_EQ(find(advice_of("M=4096,N=4096,K=4000"), "align_dimensions"), nullptr);
}

KernelRow update(const std::string& op, const char* shape) {
  const std::string name =
      "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<" + op + ">()";
  return advised_row(name.c_str(), op.c_str(), shape, "f32");
}
Advice optimizer_advice(const char* op) {
  Program program;
  program.steps(kSteps, [op](Program& one) {
    const std::int64_t begin = one.host_now();
    for (const char* part : {"", "a", "b", "c", "d", "e", "f", "g", "h", "i"})
      one.kernel(update(std::string(op) + part, "n=100000000,inputs=2,outputs=1,tensors=8"),
                 300'000);
    one.builder().range(RangeKind::kUser, "Optimizer.step#AdamW.step", begin,
                        one.host_now() - begin);
  });
  return program.advice();
}
TEST(Playbook, AnOptimizerOfManyKernelsIsFused) {
  const Advice advice = optimizer_advice("aten::_foreach_mul_");
  const Intervention* one = find(advice, "fused_optimizer");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "7 values of each parameter"));
  EXPECT_GT(one->saved_share.low, 0);
  EXPECT_EQ(find(optimizer_advice("aten::_fused_adamw_"), "fused_optimizer"), nullptr);
}

TEST(Playbook, VectorsTimesOneMatrixAreAProduct) {
  const auto advice_of = [](int vectors) {
    return Program()
        .steps(kSteps,
               [vectors](Program& program) {
                 for (int i = 0; i < 4; ++i) {
                   for (int k = 0; k < vectors; ++k)
                     program.kernel(product("M=1,N=4096,K=4096"), 8'000);
                   program.kernel(functor("Exp", "n=1024,inputs=1"), 8'000);
                 }
               })
        .advice();
  };
  const Advice many = advice_of(32);
  const Intervention* one = find(many, "batch_products");
  ASSERT_NE(one, nullptr);
  const double together = 33.6e6 / (0.6 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, (32 * 8'000 - together) / (33 * 8'000), 0.03);
  EXPECT_EQ(find(advice_of(3), "batch_products"), nullptr);
}

// A matrix times vectors has the vectors on the right.
TEST(Playbook, AMatrixTimesVectorsIsTheSame) {
  const auto advice_of = [](const char* shape) {
    return Program()
        .steps(kSteps,
               [shape](Program& program) {
                 for (int k = 0; k < 32; ++k) program.kernel(product(shape), 8'000);
               })
        .advice();
  };
  const Interval3 left = share_of(advice_of("M=1,N=4096,K=2048"), "batch_products");
  const Interval3 right = share_of(advice_of("M=4096,N=1,K=2048"), "batch_products");
  EXPECT_GT(left.mid, 0.5);
  EXPECT_NEAR(left.mid, right.mid, 0.01);
}

TEST(Playbook, LargeEqualProductsInARowMayBeOne) {
  const auto advice_of = [](const char* shape) {
    return Program()
        .steps(kSteps,
               [shape](Program& program) {
                 for (int k = 0; k < 3; ++k) program.kernel(product(shape), 400'000);
                 program.kernel(functor("Exp", "n=1024,inputs=1"), 8'000);
               })
        .advice();
  };
  EXPECT_NE(find(advice_of("M=16384,N=8192,K=4096"), "reuse_result"), nullptr);
  // Here each may read the one before.
  EXPECT_EQ(find(advice_of("M=4096,N=4096,K=4096"), "reuse_result"), nullptr);
}

TEST(Playbook, WideLoadsAreNotWidened) {
  const auto advice_of = [](double sectors) {
    const KernelRow row =
        with_counters(functor("Exp", "n=268435456,inputs=1"),
                      {{"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", sectors * 1e6},
                       {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 1e6}});
    return Program()
        .steps(kSteps,
               [&row](Program& program) { program.kernel(row, pointwise_time(268435456, 0.4)); })
        .advice();
  };
  EXPECT_NE(find(advice_of(4), "stream_wider"), nullptr);
  EXPECT_EQ(find(advice_of(16), "stream_wider"), nullptr);
}

TEST(Playbook, RowsThatNobodyReadsAreNotComputed) {
  const auto advice_of = [](const char* selecting) {
    return Program()
        .steps(kSteps,
               [selecting](Program& program) {
                 for (int i = 0; i < 4; ++i) {
                   program.kernel(product("M=4096,N=32000,K=1024"), 400'000);
                   program.op(selecting);
                   program.kernel(reduction("n=256000,out=8", "bf16"), 10'000);
                 }
               })
        .advice();
  };
  const Advice advice = advice_of("aten::select");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "8 of 4096"));
  const double left = 2.0 * 1024 * 32000 / (0.7 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, (400'000 - left) / 410'000, 0.02);
  EXPECT_EQ(find(advice_of("aten::view"), "reduce_problem"), nullptr);
}

TEST(Playbook, ATableIsMadeOnce) {
  const auto advice_of = [](const char* reader) {
    return Program()
        .steps(kSteps,
               [reader](Program& program) {
                 for (int layer = 0; layer < 6; ++layer) {
                   program.kernel(advised_row("void at::native::vectorized_elementwise_kernel<4, "
                                              "at::native::cos_kernel_cuda>()",
                                              "aten::cos", "n=8388608,inputs=1", "f32"),
                                  20'000);
                   program.kernel(functor("Add", reader), 30'000);
                 }
               })
        .advice();
  };
  const Interval3 share = share_of(advice_of("n=8388608,inputs=2"), "reuse_result");
  EXPECT_NEAR(share.mid, 0.4 * 11 / 12, 0.02);  // between 5 of 6 and all
  EXPECT_LT(share.low, 0.4 * 5 / 6);
  EXPECT_EQ(find(advice_of("n=8388608,inputs=1"), "reuse_result"), nullptr);
}

TEST(Playbook, WeightsAreCastOnce) {
  const auto advice_of = [](const char* cast) {
    return Program()
        .steps(kSteps,
               [cast](Program& program) {
                 for (int layer = 0; layer < 4; ++layer) {
                   program.kernel(conversion(cast), 30'000);
                   program.kernel(product("M=512,N=4096,K=4096"), 30'000);
                 }
               })
        .advice();
  };
  const Interval3 share =
      share_of(advice_of("n=16777216,inputs=1,in=16777216,read=67108864,write=33554432"),
               "cast_weights_once");
  EXPECT_NEAR(share.mid, 0.97 * 0.5, 0.02);
  EXPECT_EQ(find(advice_of("n=2097152,inputs=1,in=2097152,read=8388608,write=4194304"),
                 "cast_weights_once"),
            nullptr);
}

Advice backward_advice(const char* inner, const char* more = "") {
  Program program;
  program.builder().name(more);
  program.steps(kSteps, [](Program& one) {
    for (int i = 0; i < 4; ++i) one.kernel(product("M=4096,N=4096,K=4096"), 250'000);
  });
  Timeline& timeline = program.builder().profile.timeline;
  const auto add = [&](const char* name, std::uint32_t parent) {
    Op op;
    op.name = program.builder().name(name);
    op.thread = 1;
    op.duration_ns = program.now();
    op.parent = parent;
    timeline.ops.push_back(op);
    return static_cast<std::uint32_t>(timeline.ops.size() - 1);
  };
  const std::uint32_t forward = add("aten::linear", kNone);
  const std::uint32_t node = add("autograd::engine::evaluate_function: MmBackward0", kNone);
  const std::uint32_t again = add(inner, node);
  for (std::size_t i = 0; i < timeline.calls.size(); ++i)
    timeline.calls[i].op = i % 5 == 0 ? again : i % 5 == 1 ? node : forward;
  return program.advice();
}
// S13: the memory is named.
TEST(Playbook, RecomputationIsSeenInTheBackwardPass) {
  const Intervention* one = nullptr;
  const Advice advice = backward_advice("aten::linear");
  one = find(advice, "recompute_less");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, 0.25, 0.02);  // the device sets the pace
  ASSERT_EQ(one->change.edits.size(), 2U);
  const auto* host = std::get_if<edit::ScaleHost>(&one->change.edits[1]);
  ASSERT_NE(host, nullptr);  // the node's time up to the last op that computes again
  EXPECT_EQ(host->when.size(), 1U);
  EXPECT_NEAR(one->freed_bytes, -2.0 * 4096 * 4096, 1e6);
  EXPECT_EQ(find(backward_advice("aten::mm"), "recompute_less"), nullptr);
}
// Hooks of a checkpoint without reentry take the host time in both passes.
TEST(Playbook, HooksOfACheckpointGoWithIt) {
  const Advice advice = backward_advice("aten::linear", "_NoopSaveInputs");
  const Intervention* one = find(advice, "recompute_less");
  ASSERT_NE(one, nullptr);
  ASSERT_EQ(one->change.edits.size(), 3U);
  const auto* hooks = std::get_if<edit::ScaleHost>(&one->change.edits[2]);
  ASSERT_NE(hooks, nullptr);
  EXPECT_LT(hooks->factor.mid, 1);
  EXPECT_EQ(hooks->factor.low, 1);
}

Advice advice_of_a_training(const KernelRow& row, double ns) {
  Program program;
  program.builder().profile.environment.devices[0].memory_bytes = 200'000'000;
  program.steps(kSteps, [&](Program& one) {
    for (int i = 0; i < 4; ++i) one.kernel(row, ns);
  });
  Timeline& timeline = program.builder().profile.timeline;
  for (const char* name : {"aten::linear", "autograd::engine::evaluate_function: MmBackward0"}) {
    Op op;
    op.name = program.builder().name(name);
    op.thread = 1;
    op.duration_ns = program.now();
    timeline.ops.push_back(op);
  }
  for (std::size_t i = 0; i < timeline.calls.size(); ++i) timeline.calls[i].op = i % 5 < 2 ? 0 : 1;
  return program.advice();
}

TEST(Playbook, CheckpointingLooksAtBothRoofs) {
  const auto takes_spare_arithmetic = [](const Advice& advice) {
    for (const Intervention& one : advice.trades)
      for (const std::string& how : one.how)
        if (one.id == "checkpointing" && how.find("as FlashAttention's") != std::string::npos)
          return true;
    return false;
  };
  const KernelRow pointwise = functor("Exp", "n=33554432,inputs=1");
  EXPECT_TRUE(
      takes_spare_arithmetic(advice_of_a_training(pointwise, pointwise_time(33'554'432, 0.75))));
  EXPECT_FALSE(
      takes_spare_arithmetic(advice_of_a_training(pointwise, pointwise_time(33'554'432, 0.4))));
  EXPECT_FALSE(
      takes_spare_arithmetic(advice_of_a_training(product("M=4096,N=4096,K=4096"), 250'000)));
}

TEST(Playbook, CheckpointingIsATrade) {
  const Advice advice = advice_of_a_training(product("M=4096,N=4096,K=4096"), 250'000);
  const auto trade =
      std::find_if(advice.trades.begin(), advice.trades.end(),
                   [](const Intervention& one) { return one.id == "checkpointing"; });
  ASSERT_NE(trade, advice.trades.end());
  EXPECT_LT(trade->saved_ns.mid, 0);
  EXPECT_GT(trade->freed_bytes, 0);
  EXPECT_EQ(find(advice, "checkpointing"), nullptr);
}

TEST(Playbook, LayoutsAndCopiesArePriced) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   program.kernel(advised_row("void cudnn::engines_precompiled::nchwToNhwcKernel<"
                                              "__half, __half, float, false, true>()",
                                              "aten::cudnn_convolution", "", ""),
                                  100'000);
                   program.kernel(
                       advised_row("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_"
                                   "tilesize128x128x64",
                                   "aten::cudnn_convolution", "", ""),
                       300'000);
                   program.copy("d2d", 100'000, 1 << 20);
                 })
          .advice();
  EXPECT_NEAR(share_of(advice, "channels_last").mid, (100 + 0.15 * 300) / 500.0, 0.03);
  EXPECT_NEAR(share_of(advice, "remove_copies").mid, 0.95 * 100 / 500, 0.03);
  EXPECT_TRUE(says(find(advice, "remove_copies"), "of the memory's"));
  const Advice none =
      Program()
          .steps(kSteps,
                 [](Program& program) { program.kernel(product("M=4096,N=4096,K=4096"), 200'000); })
          .advice();
  EXPECT_EQ(find(none, "channels_last"), nullptr);
  // A depthwise convolution computes in planes without a conversion.
  const Advice depthwise =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   program.kernel(advised_row("conv2d_c1_k1_nchw_shmem_tiling",
                                              "aten::cudnn_convolution", "", "f16"),
                                  100'000);
                   program.kernel(product("M=4096,N=4096,K=4096"), 200'000);
                 })
          .advice();
  EXPECT_NEAR(share_of(depthwise, "channels_last").mid, 0.15 / 3, 0.02);
  // PyTorch's norms over planes gain as well; those for channels last are left alone.
  const auto with_norm = [](const char* norm) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 program.kernel(advised_row("void cudnn::engines_precompiled::nchwToNhwcKernel<"
                                            "__half, __half, float, false, true>()",
                                            "aten::cudnn_convolution", "", ""),
                                100'000);
                 program.kernel(advised_row(norm, "aten::native_batch_norm", "", ""), 400'000);
               })
        .advice();
  };
  const Advice planes = with_norm("void at::native::batch_norm_backward_kernel<float>()");
  EXPECT_NEAR(share_of(planes, "channels_last").mid, (100 + 0.3 * 400) / 500.0, 0.03);
  EXPECT_TRUE(says(find(planes, "channels_last"), "images in planes"));
  const Advice last =
      with_norm("void at::native::batch_norm_transform_input_channels_last_kernel<float>()");
  EXPECT_NEAR(share_of(last, "channels_last").mid, 100 / 500.0, 0.03);
  EXPECT_EQ(find(none, "remove_copies"), nullptr);
}

// S68
TEST(Playbook, GathersOfScatteredElementsAreNamed) {
  const auto advice_of = [](double ns) {
    return Program()
        .steps(kSteps,
               [ns](Program& program) {
                 KernelRow row = advised_row(
                     "void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel>()",
                     "aten::index", "", "f32");
                 row.launch.grid = {32768, 1, 1};
                 row.launch.block = {128, 1, 1};
                 program.kernel(row, ns);
               })
        .advice();
  };
  const double least = 16.0 * 32768 * 512 / kBandwidth * 1e9;
  EXPECT_NEAR(share_of(advice_of(10 * least), "local_gathers").mid, 1 - 0.1 / 0.65, 0.03);
  EXPECT_EQ(find(advice_of(2 * least), "local_gathers"), nullptr);
}

TEST(Playbook, AKernelOfOneThreadIsNamed) {
  const auto advice_of = [](std::uint32_t blocks, std::uint32_t threads) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 KernelRow row = advised_row("vectorAdd(float*, float*, float*, int)", "", "", "");
                 row.launch.grid = {blocks, 1, 1};
                 row.launch.block = {threads, 1, 1};
                 program.kernel(row, 6.3e9);
               })
        .advice();
  };
  const Advice advice = advice_of(1, 1);
  const Intervention* one = find(advice, "fill_the_device");
  ASSERT_NE(one, nullptr);
  EXPECT_GT(one->saved_share.mid, 0.8);
  EXPECT_TRUE(says(one, "1 block of 1 thread for 132 SMs"));
  EXPECT_EQ(find(advice_of(4096, 256), "fill_the_device"), nullptr);
}

TEST(Playbook, AnEmptyLastWaveIsPriced) {
  const auto advice_of = [](std::uint32_t blocks) {
    return Program()
        .steps(kSteps,
               [blocks](Program& program) {
                 KernelRow row = product("M=4096,N=4096,K=4096");
                 row.launch.grid = {blocks, 1, 1};
                 row.launch.block = {256, 1, 1};
                 row.registers = 255;  // one block an SM
                 program.kernel(row, 300'000);
               })
        .advice();
  };
  EXPECT_NEAR(share_of(advice_of(140), "whole_waves").mid, 0.5 * (1 - 140.0 / 264), 0.02);
  EXPECT_EQ(find(advice_of(264), "whole_waves"), nullptr);
}

// S61
TEST(Playbook, WeightsOfADecoderAreQuantized) {
  const auto advice_of = [](const char* shape, double ns) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 for (int i = 0; i < 4; ++i) program.kernel(product(shape), ns);
                 program.kernel(functor("Exp", "n=1024,inputs=1"), 2'000);
               })
        .advice();
  };
  const double ns = 2 * 16384.0 * 16384 / (0.8 * kBandwidth) * 1e9;
  const Advice decoder = advice_of("M=16,N=16384,K=16384", ns);
  EXPECT_NEAR(share_of(decoder, "quantize").mid, 0.4, 0.02);
  EXPECT_NE(find(decoder, "quantize")->how[1].find("custom kernel required"), std::string::npos);
  // At the compute roof it is a trade.
  const Advice large =
      advice_of("M=8192,N=8192,K=8192", 2 * std::pow(8192.0, 3) / (0.8 * kPeak) * 1e9);
  EXPECT_EQ(find(large, "quantize"), nullptr);
  ASSERT_FALSE(large.trades.empty());
  EXPECT_GT(large.trades[0].saved_share.mid, 0.3);
  // The conversion of its input takes what a narrow product gains: 3 bytes for each of 2 M K.
  const Advice narrow =
      advice_of("M=131072,N=512,K=512", 2 * 131072.0 * 512 * 512 / (0.8 * kPeak) * 1e9);
  EXPECT_TRUE(narrow.trades.empty() || narrow.trades[0].saved_share.mid < 0.15);
}

TEST(Playbook, AllocationsInEachStepArePriced) {
  const auto advice_of = [](const char* call) {
    return Program()
        .steps(kSteps,
               [call](Program& program) {
                 program.kernel(product("M=4096,N=4096,K=4096"), 700'000);
                 program.wait();
                 program.builder().call(CallKind::kAllocation, call, program.host_now(), 300'000);
                 program.late_kernel(product("M=4096,N=4096,K=4096"), 700'000, 310'000);
               })
        .advice();
  };
  const Interval3 share = share_of(advice_of("cudaFree"), "stop_allocating");
  EXPECT_NEAR(share.mid, 0.3 / 1.7, 0.03);
  EXPECT_EQ(find(advice_of("cudaMallocAsync"), "stop_allocating"), nullptr);
}

TEST(Playbook, AnArrayThatGoesToTheHostAndBackStays) {
  const auto advice_of = [](std::uint64_t back) {
    return Program()
        .steps(kSteps,
               [back](Program& program) {
                 program.kernel(functor("Exp", "n=4194304,inputs=1"), 10'000);
                 program.copy("d2h", 400'000, 16 << 20);
                 program.copy("h2d", 500'000, back);
               })
        .advice();
  };
  const Interval3 share = share_of(advice_of(16 << 20), "keep_on_device");
  EXPECT_NEAR(share.mid, 0.95 * 900 / 910, 0.03);
  EXPECT_EQ(find(advice_of(8 << 20), "keep_on_device"), nullptr);
}

// S75
TEST(Playbook, ManySmallLaunchesOfOneKernelPersist) {
  const auto advice_of = [](int launches) {
    return Program()
        .steps(kSteps,
               [launches](Program& program) {
                 for (int i = 0; i < launches; ++i)
                   program.kernel(advised_row("relax(float*, int)", "", "", ""), 3'000);
               })
        .advice();
  };
  EXPECT_GT(share_of(advice_of(500), "persistent_kernel").mid, 0.05);
  EXPECT_EQ(find(advice_of(20), "persistent_kernel"), nullptr);
}

// S65, S71, S74, S82
TEST(Playbook, CountersOfOneKernel) {
  const auto advice_of = [](const KernelRow& row) {
    return Program().steps(kSteps, [&row](Program& program) { program.kernel(row, 1e6); }).advice();
  };
  const KernelRow own = advised_row("relax(float*, int)", "", "", "");
  const Advice spills =
      advice_of(with_counters(own, {{"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", 4e7},
                                    {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 6e7}}));
  EXPECT_NEAR(share_of(spills, "remove_spills").mid, 0.2, 0.02);
  const Advice banks =
      advice_of(with_counters(own, {{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 5e7},
                                    {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1e8},
                                    {"l1tex__throughput.avg.pct_of_peak_sustained_active", 80}}));
  EXPECT_NEAR(share_of(banks, "avoid_bank_conflicts").mid, 0.2, 0.02);
  EXPECT_NE(
      find(advice_of(with_counters(own, {{"lts__t_sector_hit_rate.pct", 5}})), "raise_cache_hits"),
      nullptr);
  KernelRow heavy = own;
  heavy.registers = 255;
  EXPECT_TRUE(says(find(advice_of(heavy), "fewer_registers"), "255: 12.5% of the warps fit"));
  KernelRow collective = advised_row("ncclDevKernel_SendRecv(ncclDevKernelArgs)", "", "", "");
  collective.registers = 255;  // it waits for another rank
  EXPECT_EQ(find(advice_of(collective), "fewer_registers"), nullptr);
  const Advice plain = advice_of(own);
  for (const char* id : {"remove_spills", "avoid_bank_conflicts", "raise_cache_hits",
                         "fewer_registers", "specialize_warps", "hide_latency", "even_blocks"})
    EXPECT_EQ(find(plain, id), nullptr) << id;
}

// S82: neither memory nor SMs are busy. Each figure that explains it is a finding with its metric.
TEST(Playbook, LowBandwidthHasAFindingForEachCause) {
  const auto advice_of = [](const char* name, double memory, double occupancy) {
    KernelRow row = advised_row(name, "", "", "");
    row = with_counters(
        row, {{"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", memory},
              {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 6},
              {"lts__t_sector_hit_rate.pct", 5},
              {"sm__warps_active.avg.pct_of_peak_sustained_active", occupancy}});
    return Program().steps(kSteps, [&row](Program& program) { program.kernel(row, 1e6); }).advice();
  };
  const Advice low = advice_of("relax(float*, int)", 20, 12);
  EXPECT_TRUE(says(find(low, "hide_latency"), "20.0%"));
  EXPECT_TRUE(says(find(low, "raise_cache_hits"), "5%"));
  EXPECT_TRUE(says(find(low, "even_blocks"), "12.0% of the 100.0% that fit"));
  EXPECT_TRUE(low.nothing.empty());
  // A pointwise kernel streams: no locality to raise, but it waits all the same.
  const Advice pointwise = advice_of("void axpy_kernel<float>(float*, float const*, int)", 20, 80);
  EXPECT_NE(find(pointwise, "hide_latency"), nullptr);
  EXPECT_EQ(find(pointwise, "raise_cache_hits"), nullptr);
  EXPECT_EQ(find(pointwise, "even_blocks"), nullptr);
  const Advice busy = advice_of("relax(float*, int)", 88, 80);
  EXPECT_EQ(find(busy, "hide_latency"), nullptr);
}

// Records are foreign: a name may be out of range, a parent may be its own.
TEST(Playbook, ForeignRecordsDoNoHarm) {
  Program program;
  program.steps(kSteps, [](Program& one) {
    for (int k = 0; k < 6; ++k) {
      one.op("aten::unbind");
      one.kernel(product("M=1,N=4096,K=4096"), 8'000);
    }
    one.builder().call(CallKind::kAllocation, "cudaFree", one.host_now(), 1'000);
    one.builder().range(RangeKind::kUser, "Optimizer.step#SGD.step", one.host_now(), 1'000);
    one.kernel(reduction("n=512,out=1"), 8'000);
  });
  Timeline& timeline = program.builder().profile.timeline;
  for (Op& op : timeline.ops) op.name = kNone, op.parent = 0;
  for (Call& call : timeline.calls) call.name = kNone, call.op = 0;
  for (Range& range : timeline.ranges)
    if (range.kind == RangeKind::kUser) range.name = kNone;
  EXPECT_FALSE(to_json(program.advice()).dump().empty());
}

// Every remedy is complete, known once, and has its section in the guide.
TEST(Playbook, EveryRemedyHasASection) {
  const auto guide = read_file(std::string(PURLIN_SOURCE_DIR) + "/docs/guide/playbook.md");
  ASSERT_TRUE(guide.is_ok());
  std::vector<Remedy> all(remedies().begin(), remedies().end());
  for (const Rule* rule : playbook())
    all.insert(all.end(), rule->remedies.begin(), rule->remedies.end());
  std::string titles;  // as anchors
  for (const char c : *guide)
    titles += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::set<std::string_view> ids;
  for (const Remedy& remedy : all) {
    EXPECT_TRUE(ids.insert(remedy.id).second) << remedy.id;
    for (const std::string_view text : {remedy.title, remedy.regime, remedy.effort, remedy.risk,
                                        remedy.portability, remedy.expertise, remedy.how})
      EXPECT_FALSE(text.empty()) << remedy.id;
    EXPECT_TRUE(remedy.risk != "high" || !remedy.guard.empty()) << remedy.id;
    const std::string section = section_of(remedy.id);
    const std::string anchor = section.substr(section.find('#') + 1);
    EXPECT_NE(titles.find("###-" + anchor + "\n"), std::string::npos) << anchor;
  }
}

}  // namespace
}  // namespace purlin::analyze
