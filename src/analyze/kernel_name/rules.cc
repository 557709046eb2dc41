// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name/rules.h"

#include "base/text.h"

namespace purlin::analyze {
namespace {

// Words are lower-case; one that begins with ^ must stand at the beginning.
struct Rule {
  std::string_view word, answer;
};

constexpr Rule kFamilies[] = {
    {"^nccl", "nccl"},
    {"^rccl", "rccl"},
    {"nvshmem", "nvshmem"},
    {"deep_gemm::", "deepgemm"},
    {"deep_ep::", "deepep"},
    {"flashinfer", "flashinfer"},
    {"tensorrt_llm", "tensorrt"},
    {"^fmhasm", "tensorrt"},
    {"^fmhareduction", "tensorrt"},
    {"moe::dev::", "tensorrt"},
    {"sageattn", "sage-attention"},
    {"sage_attn", "sage-attention"},
    {"qk_int_sv", "sage-attention"},
    {"qk_int8_sv", "sage-attention"},
    {"fbgemm", "fbgemm"},
    {"split_embedding", "fbgemm"},
    {"permute_pooled_embs", "fbgemm"},
    {"bounds_check_indices", "fbgemm"},
    {"^linearize_", "fbgemm"},
    {"cudapy::", "numba"},
    {"^bmm_", "tensorrt"},
    {"^trt_", "tensorrt"},
    {"_trt", "tensorrt"},
    {"^__myl_", "tensorrt"},
    {"^generatednative", "tensorrt"},
    {"^phi::", "paddle"},
    {"^paddle::", "paddle"},
    {"^tensorflow::", "tensorflow"},
    {"^onnxruntime::", "onnxruntime"},
    {"^nvfuser_", "nvfuser"},
    {"^cupy_", "cupy"},
    {"at::xpu", "pytorch"},
    {"^gen_conv", "onednn"},
    {"^gen_gemm", "onednn"},
    {"^micro_sdpa", "onednn"},
    {"^aiter::", "aiter"},
    {"^ck::", "ck"},
    {"^ck_tile::", "ck"},
    {"^igemm_", "miopen"},
    {"flashattn", "flash-attention"},
    {"cudnn", "cudnn"},
    {"flash_fwd", "flash-attention"},
    {"flash_bwd", "flash-attention"},
    {"flash::", "flash-attention"},
    {"flash_attn", "flash-attention"},
    {"^fmha", "pytorch"},  // its memory-efficient attention
    {"^triton_", "triton"},
    {"at::native", "pytorch"},
    {"at::cuda", "pytorch"},
    {"^cunn_", "pytorch"},
    {"^(anonymous namespace)::softmax_warp", "pytorch"},
    {"convolve_sgemm", "cudnn"},
    {"scudnn", "cudnn"},
    {"hcudnn", "cudnn"},
    {"hmma_implicit_gemm", "cudnn"},
    {"dgrad2d", "cudnn"},
    {"wgrad2d", "cudnn"},
    {"fft2d_", "cudnn"},
    {"fft1d_", "cudnn"},
    {"flip_filter", "cudnn"},
    {"winograd", "cudnn"},
    {"xmma_fprop", "cudnn"},
    {"xmma_dgrad", "cudnn"},
    {"xmma_wgrad", "cudnn"},
    {"cublas", "cublas"},
    {"nvjet", "cublas"},
    {"xmma_gemm", "cublas"},
    {"splitkreduce", "cublas"},
    {"gemvx::kernel", "cublas"},
    {"^gemmsn_", "cublas"},
    {"^gemmk1_", "cublas"},
    {"^gemv2", "cublas"},
    {"^gemvns", "cublas"},
    {"^dot_kernel", "cublas"},
    {"^volta_", "cublas"},
    {"^turing_", "cublas"},
    {"^ampere_", "cublas"},
    {"^maxwell_", "cublas"},
    {"^pascal_", "cublas"},
    {"cutlass", "cutlass"},
    {"cijk_", "rocblas"},
    {"miopen", "miopen"},
    {"transformer_engine", "transformer-engine"},
    {"vllm::", "vllm"},
    {"thrust::", "thrust"},
    {"cub::", "cub"},
    {"^loop_", "xla"},
    {"^input_", "xla"},
    {"^wrapped_", "xla"},
    {"^fusion_", "xla"},
    {"^gemm_fusion", "xla"},
    {"^multi_tensor_apply", "apex"},
    {"^cuapplylayernorm", "apex"},
    {"^cucomputegradinput", "apex"},
    {"__amd_rocclr", "hip"},
};

// Ordered from what a name says most plainly to what it says in passing: a flash-attention kernel
// may name a softmax, a convolution a GEMM, and nearly anything a reduction.
constexpr Rule kOpClasses[] = {
    {"^nccl", "communication"},
    {"^rccl", "communication"},
    {"nvshmem", "communication"},
    {"all_reduce", "communication"},
    {"allreduce", "communication"},
    {"all_gather", "communication"},
    {"allgather", "communication"},
    {"reduce_scatter", "communication"},
    {"reducescatter", "communication"},
    {"all_to_all", "communication"},
    {"cross_device_reduce", "communication"},
    {"alltoall", "communication"},
    {"all2all", "communication"},
    {"sendrecv", "communication"},
    {"deep_ep::layout", "reduction"},
    {"deep_ep::", "communication"},
    {"split_embedding", "embedding"},  // its optimizer is fused into the gradient of the table
    {"pooled_embs", "layout"},
    {"embedding_codegen", "embedding"},
    {"bounds_check_indices", "embedding"},
    {"linearize_index", "embedding"},
    {"linearize_cache", "embedding"},
    {"jagged", "layout"},
    {"reshape_and_cache", "copy"},
    {"concat_and_cache", "copy"},
    {"fmoe_", "gemm"},
    {"wna16", "gemm"},
    {"marlin", "gemm"},
    {"mul_mat", "gemm"},
    {"wvsplitk", "gemm"},
    {"quantint8", "elementwise"},
    {"quantize_with_block", "elementwise"},
    {"fp4_quant", "elementwise"},
    {"fp8_quant", "elementwise"},
    {"group_quant", "elementwise"},
    {"token_quant", "elementwise"},
    {"to_fp4", "elementwise"},
    {"to_fp8", "elementwise"},
    {"moe_align", "reduction"},
    {"moeroutingkernel", "reduction"},
    {"moe::dev::routing", "reduction"},
    {"routingindices", "reduction"},
    {"routingmain", "reduction"},
    {"routingcustom", "reduction"},
    {"routing_memset", "copy"},
    {"_routing", "reduction"},  // Triton's: sums over the bits of who goes where
    {"bitmatrix", "reduction"},
    {"expt_data", "reduction"},
    {"finalize_matmul", "reduction"},
    {"finalizekernel", "reduction"},  // the weighted sum of what experts give
    {"finalizemoe", "reduction"},
    {"moe_sum", "reduction"},
    {"expandinputrows", "layout"},
    {"buildexpertmaps", "reduction"},
    {"count_and_sort_expert", "reduction"},
    {"moe_permute", "layout"},
    {"moe_unpermute", "layout"},
    {"ms_deform", "attention"},
    {"rotary", "elementwise"},
    {"_rope", "elementwise"},
    {"^rope", "elementwise"},
    {"flash_", "attention"},
    {"flashattn", "attention"},
    {"flash::", "attention"},
    {"fmha", "attention"},
    {"attention", "attention"},
    {"sdpa", "attention"},
    {"mha_fwd", "attention"},
    {"mha_bwd", "attention"},
    {"qk_int_sv", "attention"},
    {"qk_int8_sv", "attention"},
    {"withpagedkvcache", "attention"},  // FlashInfer's
    {"withraggedkvcache", "attention"},
    {"withkvcache", "attention"},
    {"^_fwd_kernel_stage", "attention"},
    {"grouped_kernel_stage", "attention"},
    {"::pa_", "attention"},
    {"::mla_", "attention"},
    {"^__myl_mha", "attention"},
    {"gated_delta_rule", "attention"},  // linear attention
    {"fused_recurrent", "attention"},
    {"chunk_scan", "attention"},
    {"chunk_state", "attention"},
    {"state_passing", "attention"},
    {"selective_state", "attention"},
    {"scaled_dot_kkt", "attention"},
    {"recompute_w_u", "attention"},
    {"solve_tril", "attention"},
    {"chunk_fwd_kernel_o", "attention"},
    {"_mla_", "attention"},
    {"^mla_", "attention"},
    {"::mla::", "attention"},
    {"attn", "attention"},
    {"compute_dot_do_o", "attention"},      // of cuDNN's attention backward
    {"convert_dq_to_16bits", "attention"},  //
    {"lpnormfunctor", "reduction"},
    {"l2norm", "reduction"},
    {"koptimizer", "optimizer"},
    {"_sgd", "optimizer"},
    {"adafactor", "optimizer"},
    {"adam", "optimizer"},
    {"fusedsgd", "optimizer"},
    {"fusedlamb", "optimizer"},
    {"lambfunctor", "optimizer"},
    {"adagrad", "optimizer"},
    {"rmsprop", "optimizer"},
    {"fusedoptimizer", "optimizer"},
    {"multi_tensor_apply", "optimizer"},
    {"layer_norm", "norm"},
    {"layernorm", "norm"},
    {"batch_norm", "norm"},
    {"batchnorm", "norm"},
    {"rms_norm", "norm"},
    {"rmsnorm", "norm"},
    {"group_norm", "norm"},
    {"groupnorm", "norm"},
    {"gammabeta", "norm"},
    {"computeinternalgradients", "norm"},
    {"computebackwardfusedparams", "norm"},
    {"computefusedparams", "norm"},
    {"rowwisemoments", "norm"},
    {"welford", "norm"},
    {"bn_fw", "norm"},
    {"bn_bw", "norm"},
    {"ln_fwd", "norm"},
    {"ln_bwd", "norm"},
    {"^nvfuser_inner_persistent", "norm"},
    {"^nvfuser_outer_persistent", "norm"},
    {"soft_max", "softmax"},
    {"cross_entropy", "softmax"},
    {"softmax", "softmax"},
    {"embedding", "embedding"},
    {"topk", "reduction"},
    {"radixsort", "reduction"},
    {"radix_sort", "reduction"},
    {"mergesort", "reduction"},
    {"bitonicsort", "reduction"},
    {"segmented_sort", "reduction"},
    {"indexselect", "embedding"},
    {"indexadd", "embedding"},
    {"indexing_backward", "embedding"},
    {"index_put", "embedding"},
    {"index_copy", "embedding"},
    {"compute_grad_weight", "embedding"},
    {"index_elementwise", "embedding"},
    {"grid_sampler", "embedding"},
    {"roialign", "embedding"},
    {"roi_align", "embedding"},
    {"get_rows", "embedding"},
    {"gather", "embedding"},
    {"scatter", "embedding"},
    {"convolve", "conv"},
    {"convolution", "conv"},
    {"conv1d", "conv"},
    {"conv2d", "conv"},
    {"conv3d", "conv"},
    {"_conv_", "conv"},
    {"::conv::", "conv"},
    {"depthwise", "conv"},
    {"^gen_conv", "conv"},
    {"_conv_fwd", "conv"},
    {"_conv_bwd", "conv"},
    {"scudnn", "conv"},
    {"hcudnn", "conv"},
    {"winograd", "conv"},
    {"im2col", "conv"},
    {"col2im", "conv"},
    {"884cudnn", "conv"},
    {"1688cudnn", "conv"},
    {"16816cudnn", "conv"},
    {"^igemm_", "conv"},
    {"asmconv", "conv"},
    {"fft2d_", "conv"},
    {"fft1d_", "conv"},
    {"flip_filter", "conv"},
    {"wgrad", "conv"},
    {"dgrad", "conv"},
    {"fprop", "conv"},
    {"cudnn::cnn", "conv"},
    {"^cask_cudnn", "conv"},
    {"cudnn::kernel", "conv"},
    {"gemm", "gemm"},
    {"gemv", "gemm"},
    {"nvjet", "gemm"},
    {"cublas", "gemm"},
    {"cutlass", "gemm"},
    {"splitkreduce", "gemm"},
    {"matmul", "gemm"},
    {"cijk_", "gemm"},
    {"_bmm", "gemm"},
    {"addmm", "gemm"},
    {"^bmm_", "gemm"},
    {"^triton_mm", "gemm"},
    {"^triton_bmm", "gemm"},
    {"^__myl_fc", "gemm"},
    {"lora_shrink", "gemm"},
    {"lora_expand", "gemm"},
    {"sgmv", "gemm"},
    {"bgmv", "gemm"},
    {"spmv", "gemm"},
    {"spmm", "gemm"},
    {"csrmv", "gemm"},
    {"csrmm", "gemm"},
    {"einsum", "gemm"},
    {"mul_mv", "gemm"},
    {"dense_kernel", "gemm"},
    {"fused_moe_kernel", "gemm"},
    {"transpose", "layout"},
    {"permute", "layout"},
    {"nchwtonhwc", "layout"},
    {"nhwctonchw", "layout"},
    {"catarray", "layout"},
    {"im2patch", "layout"},
    {"concat", "layout"},
    {"shuffleintensor", "layout"},
    {"roll_", "layout"},
    {"flip_", "layout"},
    {"pad1d", "layout"},
    {"pad2d", "layout"},
    {"pad3d", "layout"},
    {"dynamic_update_slice", "copy"},
    {"cpy_", "copy"},
    {"copy", "copy"},
    {"memcpy", "copy"},
    {"memset", "copy"},
    {"reduce", "reduction"},
    {"reduction", "reduction"},
    {"nllcriterion", "reduction"},
    {"nll_loss", "reduction"},
    {"cumsum", "reduction"},
    {"scan", "reduction"},
    {"argmax", "reduction"},
    {"max_pool", "reduction"},
    {"avg_pool", "reduction"},
    {"average_pool", "reduction"},
    {"upsampling", "elementwise"},
    {"sampling", "reduction"},
    {"multinomial", "reduction"},
    {"_sample_", "reduction"},
    {"histogram", "reduction"},
    {"bincount", "reduction"},
    {"argmin", "reduction"},
    {"^nms_", "reduction"},
    {"^cupy_sum", "reduction"},
    {"^cupy_max", "reduction"},
    {"^cupy_min", "reduction"},
    {"^cupy_mean", "reduction"},
    {"elementwise", "elementwise"},
    {"pointwise", "elementwise"},
    {"scalepackedtensor", "elementwise"},
    {"dropout", "elementwise"},
    {"axpy", "elementwise"},
    {"vector_add", "elementwise"},
    {"vec_add", "elementwise"},
    {"vectoradd", "elementwise"},
    {"vecadd", "elementwise"},
    {"gelu", "elementwise"},
    {"relu", "elementwise"},
    {"silu", "elementwise"},
    {"glu_", "elementwise"},
    {"^k_bin_bcast", "elementwise"},
    {"tensorop", "elementwise"},
    {"op1dtensor", "elementwise"},
    {"op2dtensor", "elementwise"},
    {"axpby", "elementwise"},
    {"penalties", "elementwise"},
    {"^cupy_", "elementwise"},
    {"^__myl_", "elementwise"},
    {"act_and_mul", "elementwise"},
    {"upsample", "elementwise"},
    {"triu_tril", "elementwise"},
    {"arange", "elementwise"},
    {"masked_fill", "elementwise"},
    {"quant", "elementwise"},
    {"fp8rowwise_to", "elementwise"},
    {"qparam", "reduction"},  // the scale of each row
    {"offsets_range", "elementwise"},
    {"^compute_cuda_kernel", "layout"},  // repeat_interleave
    {"^add", "elementwise"},
    {"hfp8_to", "elementwise"},
    {"doactivation", "elementwise"},
    {"activationkernel", "elementwise"},
    {"parallel_for", "elementwise"},
    {"^loop_", "elementwise"},
    {"^wrapped_", "elementwise"},
    {"eigenmetakernel", "elementwise"},
    {"vectorizedbroadcast", "elementwise"},
    {"bias", "elementwise"},
    {"delayed_scaling", "elementwise"},
    {"sort", "reduction"},
    {"fill", "elementwise"},
};

template <std::size_t kCount>
std::string_view first_match(const Rule (&rules)[kCount], std::string_view name,
                             std::string_view otherwise) {
  for (const Rule& rule : rules) {
    const bool anchored = rule.word[0] == '^';
    if (anchored ? starts_with(name, rule.word.substr(1))
                 : name.find(rule.word) != std::string_view::npos)
      return rule.answer;
  }
  return otherwise;
}

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// Inductor's kernels are named for the ops fused in them, which may say "copy" or "addmm" of what
// came before or after: their kind says more. poi: pointwise, red and per: reductions, tem: a
// template.
std::string_view op_class_of_triton(std::string_view name) {
  const std::string_view kind = name.substr(7, 4);
  if (kind == "tem_")
    return has(name, "attention") ? "attention" : has(name, "conv") ? "conv" : "gemm";
  if (kind == "for_") return "optimizer";  // foreach
  if (has(name, "embedding") || has(name, "index_select") || has(name, "gather"))
    return "embedding";
  if (kind == "red_" || kind == "per_") {
    const bool rms = has(name, "rsqrt") && has(name, "mean");
    return has(name, "softmax") ? "softmax" : has(name, "norm") || rms ? "norm" : "reduction";
  }
  // Pointwise kernels of these only: data is moved.
  constexpr std::string_view kMoves[] = {
      "clone",      "copy",     "to",     "transpose", "permute", "view",  "reshape",
      "expand",     "t",        "unsafe", "unsqueeze", "squeeze", "slice", "cat",
      "contiguous", "constant", "pad",    "nd",        "stack",   "fused"};
  bool moves = true, other_order = false;
  for (const std::string& word : split(name.substr(11), '_')) {
    const bool number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    bool known = word.empty() || number;
    for (std::string_view move : kMoves) known = known || word == move;
    moves = moves && known;
    for (std::string_view order : {"transpose", "permute", "cat", "stack", "t"})
      other_order = other_order || word == order;
  }
  return !moves ? "elementwise" : other_order ? "layout" : "copy";
}

}  // namespace

std::string_view family_of(std::string_view lower) {
  return first_match(kFamilies, lower, "custom");
}

std::string_view op_class_of(std::string_view lower) {
  for (std::string_view kind : {"poi_", "red_", "per_", "tem_", "for_", "unk_", "mtp_"})
    if (starts_with(lower, "triton_") && lower.substr(7, 4) == kind)
      return op_class_of_triton(lower);
  // The library's name is no operation.
  constexpr std::string_view kLibrary = "fbgemm";
  std::string name(lower);
  for (std::size_t at; (at = name.find(kLibrary)) != std::string::npos;)
    name.erase(at, kLibrary.size());
  return first_match(kOpClasses, name, "other");
}

}  // namespace purlin::analyze
