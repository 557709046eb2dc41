// SPDX-License-Identifier: Apache-2.0
// Programs of kinds that no recorded pair has, as practitioners write them: what they would change
// is first or second. And programs in which what suggests itself gains nothing.
#include "analyze/advise/rules/testing.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr std::int64_t kHostLate = 20'000;
constexpr const char* kTinyGemm = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3";
constexpr const char* kGather = "at::native::(anonymous namespace)::vectorized_gather_kernel<16>()";
constexpr const char* kSort = "at_cuda_detail::cub::DeviceRadixSortOnesweepKernel()";
constexpr const char* kDropout = "at::native::(anonymous namespace)::fused_dropout_kernel_vec<>()";

KernelRow row(const char* name, const char* op, std::string shape = "", const char* dtype = "f32") {
  return advised_row(name, op, std::move(shape), dtype);
}
KernelRow on_blocks(KernelRow out, std::uint32_t blocks) {
  out.launch.grid = {blocks, 1, 1};
  return out;
}
void late(Program& program, const KernelRow& kernel) {
  program.late_kernel(kernel, 3'000, kHostLate);
}
void gemm(Program& program, double ns = 1.5e6) {
  program.kernel(product("M=8192,N=8192,K=8192"), ns);
}

void lstm_cells(Program& program) {
  for (int t = 0; t < 40; ++t) {
    program.op("aten::lstm_cell");
    for (const char* shape : {"M=64,N=1024,K=128", "M=64,N=1024,K=256"})
      late(program, product(shape, kTinyGemm));
    for (const char* functor_name : {"Sigmoid", "Tanh", "Mul"})
      late(program, functor(functor_name, "n=16384,inputs=1"));
  }
}
void tables_of_a_recommender(Program& program) {
  for (int t = 0; t < 26; ++t)
    late(program, row(kGather, "aten::embedding", "indices=4096,cols=32,rows=20000"));
  program.late_kernel(row("CatArrayBatchedCopy", "aten::cat", "n=3407872,inputs=1"), 12'000,
                      kHostLate);
}
void many_small_reductions(Program& program) {
  for (int t = 0; t < 60; ++t) late(program, reduction("n=32768,out=1"));
}
void values_read_in_a_loop(Program& program) {
  for (int t = 0; t < 20; ++t) {
    program.kernel(functor("Exp", "n=4194304,inputs=1"), 10'000);
    program.copy("d2h", 1'500, 4).wait().work(10'000);
  }
}
void float64_by_accident(Program& program) {
  program.kernel(functor("Mul", "n=33554432,inputs=1", "f64"), 170'000);
  program.kernel(functor("Sin", "n=33554432,inputs=1", "f64"), 400'000);
}
void put_by_index(Program& program) {
  program.kernel(
      row("void at::native::index_elementwise_kernel<128, 4>()", "aten::index_put_", "n=4194304"),
      2e6);
  program.kernel(functor("Add", "n=4194304,inputs=2"), 15'000);
}
void sort_of_which_few_are_used(Program& program) {
  for (int i = 0; i < 4; ++i) program.kernel(row(kSort, "aten::sort", "n=8208384", "f16"), 300'000);
  program.op("aten::slice").kernel(functor("Mul", "n=3200,inputs=1", "f16"), 2'000);
}
void running_sum_of_four_rows(Program& program) {
  program.kernel(on_blocks(row("void at::native::tensor_kernel_scan_innermost_dim<float>()",
                               "aten::cumsum", "n=4194304"),
                           4),
                 3e6);
  program.kernel(functor("Add", "n=4194304,inputs=2"), 15'000);
}
void dropout_at_inference(Program& program) {
  for (int i = 0; i < 4; ++i) {
    program.kernel(product("M=8192,N=4096,K=4096"), 300'000);
    program.kernel(row(kDropout, "aten::native_dropout", "n=33554432,inputs=1", "bf16"), 100'000);
  }
}
void cache_in_another_order(Program& program) {
  for (int i = 0; i < 8; ++i) {
    program.kernel(row(kGather, "aten::index_select", "indices=32,cols=524288,rows=32", "f16"),
                   20'000);
    program.kernel(row("flash_fwd_splitkv_kernel", "aten::_flash_attention_forward"), 15'000);
  }
}
void pageable_batches(Program& program) {
  program.copy("h2d (pageable to device)", 2'500'000, 38'535'168);
  gemm(program);
}
void batches_not_sent_ahead(Program& program) {
  program.copy("h2d (pinned to device)", 700'000, 38'535'168);
  gemm(program);
}
void gradients_set_to_zero(Program& program) {
  for (int i = 0; i < 4; ++i)
    program.kernel(functor("Fill", "n=67108864,inputs=0,write=134217728", "bf16"), 40'000);
  program.kernel(product("M=1024,N=4096,K=4096"), 100'000);
}
void planes_of_a_denoiser(Program& program) {
  for (int i = 0; i < 4; ++i) {
    program.kernel(row("void cudnn::engines_precompiled::nchwToNhwcKernel<__half>()",
                       "aten::cudnn_convolution"),
                   80'000);
    program.kernel(
        row("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64",
            "aten::cudnn_convolution"),
        120'000);
  }
}
void ensemble_of_nets(Program& program) {
  for (int i = 0; i < 10; ++i)
    for (const char* shape : {"M=128,N=512,K=256", "M=128,N=64,K=512"})
      late(program, product(shape, kTinyGemm));
}

struct Practice {
  const char* name;
  void (*body)(Program&);
  const char* ids;  // any of them, first or second
};

TEST(Practice, WhatOneWouldChangeIsFirstOrSecond) {
  const Practice programs[] = {
      {"cells", lstm_cells, "cuda_graphs|cut_host_work|compile_model"},
      {"tables", tables_of_a_recommender, "cuda_graphs|cut_host_work"},
      {"reductions", many_small_reductions, "cuda_graphs|cut_host_work"},
      {"values", values_read_in_a_loop, "remove_syncs"},
      {"float64", float64_by_accident, "leave_float64"},
      {"index_put", put_by_index, "local_gathers"},
      {"sort", sort_of_which_few_are_used, "reduce_problem"},
      {"cumsum", running_sum_of_four_rows, "fill_the_device"},
      {"dropout", dropout_at_inference, "reduce_problem"},
      {"cache", cache_in_another_order, "remove_copies"},
      {"pageable", pageable_batches, "pin_memory"},
      {"ahead", batches_not_sent_ahead, "overlap_copies"},
      {"zero", gradients_set_to_zero, "remove_fills"},
      {"planes", planes_of_a_denoiser, "channels_last"},
      {"ensemble", ensemble_of_nets, "batch_products"},
  };
  for (const Practice& one : programs) {
    const Advice advice = Program().steps(kSteps, one.body).advice();
    ASSERT_FALSE(advice.interventions.empty()) << one.name;
    const auto ids = split(one.ids, '|');
    const auto rank = std::find_if(
        advice.interventions.begin(), advice.interventions.end(), [&](const Intervention& known) {
          return std::find(ids.begin(), ids.end(), known.id) != ids.end();
        });
    EXPECT_LT(rank - advice.interventions.begin(), 2) << one.name;
  }
}

void flash(Program& program) {
  program.kernel(row("flash_fwd_kernel", "aten::_flash_attention_forward"), 500'000);
}

TEST(Practice, WhatGainsNothingIsNotPromised) {
  const Practice programs[] = {
      {"large products", [](Program& program) { gemm(program); },
       "cuda_graphs|batch_products|reuse_result|tensor_cores|compile_model"},
      {"dropout in training",
       [](Program& program) {
         program.op("autograd::engine::evaluate_function: MulBackward0");
         gemm(program);
         program.kernel(row(kDropout, "aten::native_dropout", "n=33554432,inputs=1", "bf16"),
                        35'000);
       },
       "reduce_problem"},
      {"a copy during computation",
       [](Program& program) {
         gemm(program);
         program.copy("h2d (pinned to device)", 500'000, 25'000'000, true);
       },
       "overlap_copies|pin_memory|keep_on_device"},
      {"one value of a long step",
       [](Program& program) {
         for (int i = 0; i < 8; ++i) gemm(program);
         program.copy("d2h", 1'500, 4).wait();
       },
       "remove_syncs|cut_host_work|cuda_graphs"},
      {"a sort that is needed",
       [](Program& program) {
         for (int i = 0; i < 4; ++i)
           program.kernel(row(kSort, "aten::sort", "n=8208384", "f16"), 300'000);
         program.kernel(functor("Mul", "n=8208384,inputs=1", "f16"), 9'000);
       },
       "reduce_problem|fuse_norm|fuse_pointwise|compile_model"},
      {"attention of a library", flash, "flash_attention|fuse_norm"},
      {"an optimizer in one kernel",
       [](Program& program) {
         gemm(program);
         program.kernel(row("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>()",
                            "aten::_fused_adamw_"),
                        100'000);
       },
       "fused_optimizer|cut_host_work"},
      {"rows in another order, once",
       [](Program& program) {
         gemm(program);
         program.kernel(
             row(kGather, "aten::embedding", "indices=4096,cols=1024,rows=50000", "bf16"), 6'000);
       },
       "remove_copies|local_gathers"},
      {"layers, each with its weights",
       [](Program& program) {
         for (int i = 0; i < 12; ++i)
           for (const char* shape : {"M=4096,N=12288,K=4096", "M=4096,N=4096,K=12288"})
             program.kernel(product(shape), 700'000);
       },
       "reuse_result|batch_products|cuda_graphs"},
      {"projections between attentions",
       [](Program& program) {
         for (int i = 0; i < 6; ++i) {
           program.kernel(product("M=16384,N=2048,K=1024"), 120'000);
           flash(program);
         }
       },
       "reuse_result|batch_products"},
  };
  for (const Practice& one : programs) {
    const Advice advice = Program().steps(kSteps, one.body).advice();
    const auto ids = split(one.ids, '|');
    for (const Intervention& known : advice.interventions) {
      if (std::find(ids.begin(), ids.end(), known.id) != ids.end()) {
        EXPECT_LE(known.saved_share.mid, 0.03) << one.name << ": " << known.id;
      }
    }
  }
}

}  // namespace
}  // namespace purlin::analyze
