// SPDX-License-Identifier: Apache-2.0
#include "fleet/demo/made_week.h"

#include "base/random.h"
#include "base/version.h"
#include "fleet/analysis/role.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kMadeHourNs = 3'600'000'000'000, kStepHours = 6;
constexpr int kMadeSteps = 28;   // a week
constexpr int kBuildStep = 12;   // build v1.9 from day 4 on
constexpr int kDriverStep = 17;  // driver 580 on H200
constexpr int kSampled = 24;     // launches of a row that were recorded
constexpr int kGpusOfNode = 2;

struct MadeKernel {
  std::string_view name, op, shape, dtype;
  double us, launches_per_step;
};

// Training of a language model.
constexpr MadeKernel kTraining[] = {
    {"flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", "layers.attn.core",
     "B=4,H=32,Sq=4096,Sk=4096,D=128,causal=1", "bf16", 1180, 90e3},
    {"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>",
     "layers.attn.core", "B=4,H=32,Sq=4096,Sk=4096,D=128,causal=1,backward=1", "bf16", 2900, 90e3},
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64", "layers.attn.qkv_proj",
     "M=16384,N=12288,K=4096", "bf16", 2480, 90e3},
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "layers.attn.o_proj",
     "M=16384,N=4096,K=4096", "bf16", 840, 90e3},
    {"nvjet_tst_256x128_64x4_2x1_v_bz_TNT", "layers.mlp.up_proj", "M=16384,N=14336,K=4096", "bf16",
     2890, 180e3},
    {"nvjet_tst_128x256_64x4_1x2_h_bz_TNT", "layers.mlp.down_proj", "M=16384,N=4096,K=14336",
     "bf16", 2910, 90e3},
    {"rms_norm_kernel", "layers.norm", "rows=16384,cols=4096,rms=1", "bf16", 96, 380e3},
    {"rms_norm_kernel", "layers.norm", "rows=32768,cols=4096,rms=1", "bf16", 188, 100e3},
    {"rms_norm_backward_kernel", "layers.norm", "rows=16384,cols=4096,rms=1,backward=1", "bf16",
     210, 180e3},
    {"silu_and_mul_kernel", "layers.mlp.act", "n=234881024,inputs=2", "bf16", 520, 90e3},
    {"rotary_embedding_kernel", "layers.attn.rope", "n=67108864,inputs=1", "bf16", 88, 180e3},
    {"void multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>", "optimizer.step",
     "n=500000000,inputs=4,outputs=3", "f32", 5200, 3e3},
    {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "fsdp", "in=268435456,out=11184811,ranks=24",
     "bf16", 2300, 60e3},
    {"ncclDevKernel_AllGather_RING_LL", "fsdp", "in=11184811,out=268435456,ranks=24", "bf16", 1900,
     120e3},
    {"softmax_cross_entropy_kernel", "loss", "rows=4096,cols=128256", "f32", 1900, 3e3},
    {"embedding_backward_kernel", "embedding", "indices=16384,cols=4096,backward=1", "bf16", 420,
     3e3},
};
// A server of a language model.
constexpr MadeKernel kServing[] = {
    {"paged_attention_v2_kernel<bf16, 128, 16>", "model.attn", "B=128,H=32,Hk=8,Sq=1,Sk=1536,D=128",
     "bf16", 210, 900e3},
    {"flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>", "model.attn",
     "B=4,H=32,Sq=2048,Sk=2048,D=128,causal=1", "bf16", 310, 200e3},
    {"reshape_and_cache_flash_kernel", "model.attn.kv_cache", "n=524288,inputs=1", "bf16", 9,
     900e3},
    {"sm90_fp8_gemm_1d2d_kernel", "model.mlp.gate_up_proj", "M=128,N=28672,K=4096", "f8e4m3", 66,
     900e3},
    {"sm90_fp8_gemm_1d2d_kernel", "model.mlp.down_proj", "M=128,N=4096,K=14336", "f8e4m3", 38,
     900e3},
    {"nvjet_qqtst_64x64_128x8_2x1_v_TNT", "model.attn.qkv_proj", "M=128,N=6144,K=4096", "f8e4m3",
     21, 900e3},
    {"per_token_group_quant_fp8_kernel", "model.quant", "n=524288,inputs=1", "f8e4m3", 6, 1800e3},
    {"fused_add_rms_norm_kernel", "model.norm", "rows=128,cols=4096,rms=1", "bf16", 7, 1800e3},
    {"act_and_mul_kernel<silu>", "model.mlp.act", "n=1835008,inputs=2", "bf16", 8, 900e3},
    {"cross_device_reduce_1stage<bf16, 8>", "tp.all_reduce", "in=524288,out=524288,ranks=8", "bf16",
     19, 1800e3},
    {"topk_topp_sampling_kernel", "sampler", "n=16416768,out=128", "f32", 140, 28e3},
};
// Recommendation.
constexpr MadeKernel kRanking[] = {
    {"embedding_bag_forward_kernel", "sparse.lookup", "indices=1638400,cols=128,bags=65536", "f16",
     520, 300e3},
    {"embedding_bag_backward_kernel", "sparse.lookup", "indices=1638400,cols=128,backward=1", "f16",
     940, 300e3},
    {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "dense.mlp",
     "M=65536,N=1024,K=512", "f16", 340, 900e3},
    {"interaction_dot_kernel", "interaction", "n=23003136,inputs=2", "f16", 260, 300e3},
    {"split_embedding_adagrad_kernel", "optimizer", "n=60000000,inputs=3,outputs=2", "f32", 800,
     100e3},
};
// Vision.
constexpr MadeKernel kVision[] = {
    {"cudnn_implicit_gemm_conv_fprop_nhwc_64x64x32", "backbone.conv",
     "N=32,C=256,H=56,W=56,K=256,R=3,S=3,P=56,Q=56", "f16", 610, 300e3},
    {"batch_norm_transform_kernel_nhwc", "backbone.bn", "rows=256,cols=100352", "f16", 150, 300e3},
    {"vectorized_elementwise_kernel<4, relu>", "backbone.relu", "n=25690112,inputs=1", "f16", 190,
     300e3},
    {"max_pool_forward_nhwc", "backbone.pool", "n=51380224,out=12845056", "f16", 240, 30e3},
    {"nms_kernel_impl<float>", "head.nms", "n=8000", "f32", 480, 30e3},
};
// Simulation on AMD.
constexpr MadeKernel kSimulation[] = {
    {"stencil27_kernel", "solve.smooth", "n=134217728,inputs=1", "f64", 1500, 200e3},
    {"spmv_csr_vector_kernel<64>", "solve.spmv", "n=134217728", "f64", 2100, 100e3},
    {"dot_reduce_kernel", "solve.dot", "n=134217728,out=1", "f64", 410, 300e3},
    {"axpy_kernel", "solve.axpy", "n=100663296,inputs=2", "f64", 620, 300e3},
    {"Cijk_Ailk_Bljk_DB_MT128x128x16_SN", "solve.coarse", "M=4096,N=4096,K=4096", "f64", 3400,
     20e3},
};

struct Fleetlet {
  std::string_view prefix, model, job, runtime, driver;
  int nodes;
  const MadeKernel* kernels;
  std::size_t count;
};
template <std::size_t N>
constexpr Fleetlet fleetlet(std::string_view prefix, std::string_view model, std::string_view job,
                            std::string_view runtime, std::string_view driver, int nodes,
                            const MadeKernel (&kernels)[N]) {
  return {prefix, model, job, runtime, driver, nodes, kernels, N};
}
const Fleetlet kFleet[] = {
    fleetlet("h100", "NVIDIA H100 80GB HBM3", "train-llm", "CUDA 12.8", "570.124.06", 24,
             kTraining),
    fleetlet("h200", "NVIDIA H200", "serve-chat", "CUDA 12.8", "570.124.06", 20, kServing),
    fleetlet("a100", "NVIDIA A100-SXM4-80GB", "rank-ads", "CUDA 12.4", "550.90.07", 10, kRanking),
    fleetlet("l40s", "NVIDIA L40S", "detect", "CUDA 12.4", "550.90.07", 8, kVision),
    fleetlet("mi300", "AMD Instinct MI300X", "simulate", "ROCm 6.3", "6.10.5", 8, kSimulation),
};

struct Place {
  const Fleetlet& fleet;
  int node, step;
  bool new_build() const { return fleet.prefix == "h100" && step >= kBuildStep; }
  bool new_driver() const { return fleet.prefix == "h200" && step >= kDriverStep; }
};

// The planted truths.
double planted_factor(const Place& place, int gpu, const MadeKernel& kernel) {
  double factor = 1;
  if (place.new_build() && kernel.name == "rms_norm_kernel") factor *= 1.09;
  if (place.new_driver() && kernel.name.starts_with("paged_attention")) factor *= 1.06;
  if (place.fleet.prefix == "h100" && place.node == 7 && gpu == 1) factor *= 1.18;
  return factor;
}
double planted_launches(const Place& place, const MadeKernel& kernel) {
  if (!place.new_build() || kernel.name != "rms_norm_kernel") return kernel.launches_per_step;
  // The new build launches more of the large shape.
  return kernel.launches_per_step * (kernel.shape.starts_with("rows=32768") ? 4 : 0.5);
}
bool hardly_seen(const Place& place) { return place.fleet.prefix == "a100" && place.node == 3; }

std::string node_name(const Fleetlet& fleet, int node) {
  return fmt::format("{}-{:02}", fleet.prefix, node);
}

store::BatchRow made_row(const Place& place, int gpu, const MadeKernel& kernel, double level,
                         std::int64_t hour_ns, Random& random) {
  store::BatchRow row;
  row.hour_ns = hour_ns;
  row.kernel = kernel.name;
  row.role = analysis::role_of(kernel.name, kernel.op);
  row.op = kernel.op, row.shape = kernel.shape, row.dtype = kernel.dtype;
  row.device = static_cast<std::uint32_t>(gpu);
  const double launches = planted_launches(place, kernel) * random.uniform(0.9, 1.1);
  const double ns = kernel.us * 1e3 * level * planted_factor(place, gpu, kernel);
  for (int i = 0; i < kSampled; ++i)
    row.duration.add(ns * std::exp(0.012 * random.normal()), launches / kSampled);
  row.recorded = kSampled;
  return row;
}

store::BatchCoverage made_coverage(const Place& place, int gpu, std::int64_t hour_ns,
                                   double busy_ns) {
  store::BatchCoverage coverage;
  coverage.hour_ns = hour_ns;
  coverage.device = static_cast<std::uint32_t>(gpu);
  coverage.busy_ns = busy_ns;
  coverage.seen_ns = busy_ns * (hardly_seen(place) ? 0.01 : 0.97);
  coverage.launches_seen = hardly_seen(place) ? 900 : 2e6;
  coverage.launches_sampled_out = coverage.launches_seen * 9;
  coverage.overhead_ns = busy_ns * 0.004;
  if (hardly_seen(place)) coverage.why = "another CUPTI client was active";
  return coverage;
}

// One node's is full, and the collectors of one job are too old to state it.
store::SpoolFill made_spool(const Place& place) {
  constexpr std::uint64_t kLimit = std::uint64_t{256} << 20;
  if (place.fleet.prefix == "l40s") return {};
  if (hardly_seen(place)) return {kLimit - (std::uint64_t{1} << 20), kLimit};
  return {(std::uint64_t{place.fleet.prefix == "h200" ? 9u : 1u} << 20) *
              static_cast<std::uint64_t>(place.node + 1) / 4,
          kLimit};
}

store::Batch made_batch(const Place& place, const std::vector<double>& chips, double process,
                        std::int64_t hour_ns, Random& random) {
  const Fleetlet& fleet = place.fleet;
  store::Batch batch;
  batch.node = node_name(fleet, place.node);
  batch.boot = "00000000-0000-4000-8000-" + fmt::format("{:012}", place.node);
  batch.sequence = static_cast<std::uint64_t>(place.step) + 1;
  batch.begin_ns = hour_ns, batch.end_ns = hour_ns + kMadeHourNs;
  batch.sent_ns = batch.end_ns;
  batch.tool_version = version();
  batch.collector_cpu_ns = 0.004 * static_cast<double>(kMadeHourNs);
  batch.collector_rss_bytes = 31u << 20;
  for (int gpu = 0; gpu < kGpusOfNode; ++gpu) {
    store::BatchDevice device;
    device.uuid = fmt::format("GPU-{}-{}", batch.node, gpu);
    device.model = fleet.model, device.ordinal = gpu;
    device.driver = place.new_driver() ? "580.65.06" : fleet.driver;
    device.runtime = fleet.runtime;
    batch.devices.push_back(std::move(device));
  }
  store::BatchRun run;
  run.build = fleet.prefix == "h100" ? (place.new_build() ? "v1.9" : "v1.8") : "v4.2";
  run.command = fmt::format("python {}.py", fleet.job);
  run.labels.job = std::string(fleet.job);
  batch.runs.push_back(std::move(run));
  for (int gpu = 0; gpu < kGpusOfNode; ++gpu) {
    double busy_ns = 0;
    for (std::size_t i = 0; i < fleet.count; ++i) {
      batch.rows.push_back(made_row(place, gpu, fleet.kernels[i],
                                    chips[static_cast<std::size_t>(gpu)] * process, hour_ns,
                                    random));
      busy_ns += batch.rows.back().duration.total_ns();
    }
    batch.coverage.push_back(made_coverage(place, gpu, hour_ns, busy_ns));
  }
  if (hardly_seen(place)) batch.shed.push_back({"spool_full", 3, 1200, 0});
  batch.spool = made_spool(place);
  return batch;
}

}  // namespace

std::vector<store::Batch> made_week(const MadeWeekOptions& options) {
  const std::int64_t end_ns = options.end_ns - options.end_ns % kMadeHourNs;
  Random random(options.seed);
  std::vector<store::Batch> batches;
  for (const Fleetlet& fleet : kFleet) {
    const int nodes = std::max(fleet.nodes * options.nodes_scale / 100, 1);
    for (int node = 0; node < nodes; ++node) {
      std::vector<double> chips;
      for (int gpu = 0; gpu < kGpusOfNode; ++gpu)
        chips.push_back(std::exp(0.012 * random.normal()));
      double process = 1;
      for (int step = 0; step < kMadeSteps; ++step) {
        if (step % 4 == node % 4) process = std::exp(0.004 * random.normal());
        const std::int64_t hour_ns = end_ns - (kMadeSteps - step) * kStepHours * kMadeHourNs;
        batches.push_back(made_batch({fleet, node, step}, chips, process, hour_ns, random));
        // The last one has just arrived, so that no node seems to be silent.
        if (step + 1 == kMadeSteps) batches.back().sent_ns = options.end_ns;
      }
    }
  }
  return batches;
}

}  // namespace purlin::fleet
