// SPDX-License-Identifier: Apache-2.0
// Which op is read how. Positions are those of the ops' signatures in PyTorch's
// native_functions.yaml (all versions since 1.8 where they differ not), flash-attention, xformers,
// vLLM and c10d.
#include "base/text.h"
#include "model/problem/rules.h"

#include <unordered_map>

namespace purlin {
namespace {

constexpr std::string_view kGemm = "gemm", kConv = "conv", kAttention = "attention", kNorm = "norm",
                           kSoftmax = "softmax", kElementwise = "elementwise",
                           kReduction = "reduction", kCopy = "copy", kLayout = "layout",
                           kOptimizer = "optimizer", kEmbedding = "embedding",
                           kCommunication = "communication", kTransform = "fft";

constexpr OpRule kRules[] = {
    // a, b, addend, beta
    {"mm", read_product, kGemm, {0, 1, -1}},
    {"bmm", read_product, kGemm, {0, 1, -1}},
    {"mv", read_product, kGemm, {0, 1, -1}},
    {"dot", read_product, kGemm, {0, 1, -1}},
    {"vdot", read_product, kGemm, {0, 1, -1}},
    {"matmul", read_product, kGemm, {0, 1, -1}},
    {"addmm", read_product, kGemm, {1, 2, 0, 3}},
    {"_addmm_activation", read_product, kGemm, {1, 2, 0, 3}},
    {"addmv", read_product, kGemm, {1, 2, 0, 3}},
    {"baddbmm", read_product, kGemm, {1, 2, 0, 3}},
    {"linear", read_linear, kGemm, {0, 1}},
    {"_scaled_mm", read_scaled_mm, kGemm, {0, 1, 6}},
    {"_int_mm", read_scaled_mm, kGemm, {0, 1, -1, 3}},
    {"_grouped_mm", read_grouped_mm, kGemm, {0, 1}},
    {"_scaled_grouped_mm", read_grouped_mm, kGemm, {0, 1}},
    {"_C::cutlass_scaled_mm", read_product, kGemm, {1, 2, -1}},

    // input, weight, gradient, stride, padding, dilation, groups, transposed, mask, kind
    {"convolution", read_convolution, kConv, {0, 1, -1, 3, 4, 5, 8, 6, -1, kForward}},
    {"_convolution", read_convolution, kConv, {0, 1, -1, 3, 4, 5, 8, 6, -1, kForward}},
    {"convolution_overrideable", read_convolution, kConv, {0, 1, -1, 3, 4, 5, 8, 6, -1, kForward}},
    {"conv1d", read_convolution, kConv, {0, 1, -1, 3, 4, 5, 6, -1, -1, kForward}},
    {"conv2d", read_convolution, kConv, {0, 1, -1, 3, 4, 5, 6, -1, -1, kForward}},
    {"conv3d", read_convolution, kConv, {0, 1, -1, 3, 4, 5, 6, -1, -1, kForward}},
    {"cudnn_convolution", read_convolution, kConv, {0, 1, -1, 3, 2, 4, 5, -1, -1, kForward}},
    {"cudnn_convolution_relu", read_convolution, kConv, {0, 1, -1, 3, 4, 5, 6, -1, -1, kForward}},
    {"cudnn_convolution_add_relu",
     read_convolution,
     kConv,
     {0, 1, -1, 5, 6, 7, 8, -1, -1, kForward}},
    {"miopen_convolution", read_convolution, kConv, {0, 1, -1, 4, 3, 5, 6, -1, -1, kForward}},
    {"mkldnn_convolution", read_convolution, kConv, {0, 1, -1, 4, 3, 5, 6, -1, -1, kForward}},
    {"_conv_depthwise2d", read_convolution, kConv, {0, 1, -1, 4, 5, 6, -1, -1, -1, kForward}},
    {"conv_depthwise3d", read_convolution, kConv, {0, 1, -1, 4, 5, 6, -1, -1, -1, kForward}},
    {"conv_transpose1d", read_convolution, kConv, {0, 1, -1, 3, 4, 7, 6, -1, 5, kTransposedOp}},
    {"conv_transpose2d", read_convolution, kConv, {0, 1, -1, 3, 4, 7, 6, -1, 5, kTransposedOp}},
    {"conv_transpose3d", read_convolution, kConv, {0, 1, -1, 3, 4, 7, 6, -1, 5, kTransposedOp}},
    {"cudnn_convolution_transpose",
     read_convolution,
     kConv,
     {0, 1, -1, 4, 2, 5, 6, -1, 3, kTransposedOp}},
    {"convolution_backward", read_convolution, kConv, {1, 2, 0, 4, 5, 6, 9, 7, 10, kBackward}},
    {"cudnn_convolution_backward",
     read_convolution,
     kConv,
     {0, 2, 1, 4, 3, 5, 6, -1, -1, kBackward}},
    {"cudnn_convolution_backward_input",
     read_convolution,
     kConv,
     {-1, 2, 1, 4, 3, 5, 6, -1, -1, kOneGradient}},
    {"cudnn_convolution_backward_weight", read_convolution, kConv, {-1, -1, 1, -1, -1, -1, -1, -1}},

    // query, layout, causal, backward, sequence starts of q and k, longest q and k, mask
    {"scaled_dot_product_attention",
     read_attention,
     kAttention,
     {0, kHeadsFirst, 5, 0, -1, -1, -1, -1, 3}},
    {"_scaled_dot_product_attention_math", read_attention, kAttention, {0, kHeadsFirst, 5, 0, -1}},
    {"_scaled_dot_product_flash_attention", read_attention, kAttention, {0, kHeadsFirst, 4, 0, -1}},
    {"_scaled_dot_product_flash_attention_for_cpu",
     read_attention,
     kAttention,
     {0, kHeadsFirst, 4, 0, -1}},
    {"_scaled_dot_product_efficient_attention",
     read_attention,
     kAttention,
     {0, kHeadsFirst, 6, 0, -1}},
    {"_scaled_dot_product_cudnn_attention", read_attention, kAttention, {0, kHeadsFirst, 6, 0, -1}},
    {"_scaled_dot_product_fused_attention_overrideable",
     read_attention,
     kAttention,
     {0, kHeadsFirst, 5, 0, -1}},
    {"_cudnn_attention_forward", read_attention, kAttention, {0, kHeadsFirst, 10, 0, 4, 5, 6, 7}},
    {"_flash_attention_forward", read_attention, kAttention, {0, kSequenceFirst, 8, 0, 3, 4, 5, 6}},
    {"_efficient_attention_forward",
     read_attention,
     kAttention,
     {0, kSequenceFirst, 9, 0, 4, 5, 6, 7}},
    {"_scaled_dot_product_flash_attention_backward",
     read_attention,
     kAttention,
     {1, kHeadsFirst, 11, 1, -1}},
    {"_scaled_dot_product_efficient_attention_backward",
     read_attention,
     kAttention,
     {1, kHeadsFirst, 11, 1, -1}},
    {"_scaled_dot_product_cudnn_attention_backward",
     read_attention,
     kAttention,
     {1, kHeadsFirst, 14, 1, -1}},
    {"_cudnn_attention_backward", read_attention, kAttention, {1, kHeadsFirst, 14, 1, -1}},
    {"_flash_attention_backward",
     read_attention,
     kAttention,
     {1, kSequenceFirst, 11, 1, 6, 7, 8, 9}},
    {"_efficient_attention_backward",
     read_attention,
     kAttention,
     {1, kSequenceFirst, 14, 1, 6, 7, 8, 9}},
    {"flash_attn::_flash_attn_forward", read_attention, kAttention, {0, kSequenceFirst, 5, 0, -1}},
    {"flash_attn::_flash_attn_varlen_forward",
     read_attention,
     kAttention,
     {0, kSequenceFirst, 9, 0, 3, 4, 5, 6}},
    {"flash_attn::_flash_attn_backward",
     read_attention,
     kAttention,
     {1, kSequenceFirst, 11, 1, -1}},
    {"flash_attn::_flash_attn_varlen_backward",
     read_attention,
     kAttention,
     {1, kSequenceFirst, 15, 1, 9, 10, 11, 12}},
    {"FlashAttnFunc", read_attention, kAttention, {0, kSequenceFirst, 5, 0, -1}},
    {"FlashAttnVarlenFunc", read_attention, kAttention, {0, kSequenceFirst, 9, 0, 3, 4, 5, 6}},
    {"xformers::efficient_attention_forward_cutlass",
     read_attention,
     kAttention,
     {0, kSequenceFirst, 9, 0, 4, 5, 6, -1}},
    {"xformers_flash::flash_fwd",
     read_attention,
     kAttention,
     {0, kSequenceFirst, 10, 0, 3, 4, 6, 7}},

    // input, kind, normalised size or groups, weight, bias, backward, tensors written
    {"layer_norm", read_norm, kNorm, {0, kLayerNorm, 1, 2, 3, 0}},
    {"native_layer_norm", read_norm, kNorm, {0, kLayerNorm, 1, 2, 3, 0}},
    {"native_layer_norm_backward", read_norm, kNorm, {1, kLayerNorm, 2, 5, 6, 1}},
    {"rms_norm", read_norm, kNorm, {0, kRmsNorm, 1, 2, -1, 0}},
    {"_fused_rms_norm", read_norm, kNorm, {0, kRmsNorm, 1, 2, -1, 0}},
    {"_fused_rms_norm_backward", read_norm, kNorm, {1, kRmsNorm, 2, 4, -1, 1}},
    {"_C::rms_norm", read_norm, kNorm, {1, kRmsNorm, -1, 2, -1, 0}},
    {"_C::fused_add_rms_norm", read_norm, kNorm, {0, kRmsNorm, -1, 2, -1, 0, 2}},
    {"batch_norm", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"native_batch_norm", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"_native_batch_norm_legit", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"_batch_norm_with_update", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"_batch_norm_impl_index", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"cudnn_batch_norm", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"miopen_batch_norm", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"instance_norm", read_norm, kNorm, {0, kBatchNorm, -1, 1, 2, 0}},
    {"native_batch_norm_backward", read_norm, kNorm, {1, kBatchNorm, -1, 2, -1, 1}},
    {"cudnn_batch_norm_backward", read_norm, kNorm, {0, kBatchNorm, -1, 2, -1, 1}},
    {"miopen_batch_norm_backward", read_norm, kNorm, {0, kBatchNorm, -1, 2, -1, 1}},
    {"batch_norm_backward", read_norm, kNorm, {1, kBatchNorm, -1, 2, -1, 1}},
    {"group_norm", read_norm, kNorm, {0, kGroupNorm, 1, 2, 3, 0}},
    {"native_group_norm", read_norm, kNorm, {0, kNativeGroupNorm, 6, 1, 2, 0}},
    {"native_group_norm_backward", read_norm, kNorm, {1, kNativeGroupNorm, 8, 4, -1, 1}},

    // input, dimension, backward
    {"softmax", read_softmax, kSoftmax, {0, 1, 0}},
    {"_softmax", read_softmax, kSoftmax, {0, 1, 0}},
    {"_safe_softmax", read_softmax, kSoftmax, {0, 1, 0}},
    {"log_softmax", read_softmax, kSoftmax, {0, 1, 0}},
    {"_log_softmax", read_softmax, kSoftmax, {0, 1, 0}},
    {"_softmax_backward_data", read_softmax, kSoftmax, {0, 2, 1}},
    {"_log_softmax_backward_data", read_softmax, kSoftmax, {0, 2, 1}},

    // input, dimensions: -1 all of them, -2 a scan
    {"sum", read_reduction, kReduction, {0, 1}},
    {"mean", read_reduction, kReduction, {0, 1}},
    {"nansum", read_reduction, kReduction, {0, 1}},
    {"amax", read_reduction, kReduction, {0, 1}},
    {"amin", read_reduction, kReduction, {0, 1}},
    {"max", read_reduction, kReduction, {0, 1}},
    {"min", read_reduction, kReduction, {0, 1}},
    {"prod", read_reduction, kReduction, {0, 1}},
    {"any", read_reduction, kReduction, {0, 1}},
    {"all", read_reduction, kReduction, {0, 1}},
    {"argmax", read_reduction, kReduction, {0, 1}},
    {"argmin", read_reduction, kReduction, {0, 1}},
    {"std", read_reduction, kReduction, {0, 1}},
    {"var", read_reduction, kReduction, {0, 1}},
    {"std_mean", read_reduction, kReduction, {0, 1}},
    {"var_mean", read_reduction, kReduction, {0, 1}},
    {"logsumexp", read_reduction, kReduction, {0, 1}},
    {"norm", read_reduction, kReduction, {0, 2}},
    {"linalg_vector_norm", read_reduction, kReduction, {0, 2}},
    {"count_nonzero", read_reduction, kReduction, {0, 1}},
    {"nll_loss_forward", read_reduction, kReduction, {0, -1}},
    {"nll_loss2d_forward", read_reduction, kReduction, {0, -1}},
    {"cumsum", read_reduction, kReduction, {0, -2}},
    {"cumprod", read_reduction, kReduction, {0, -2}},
    {"logcumsumexp", read_reduction, kReduction, {0, -2}},

    // input, dimensions, length of the last one where the result is real, real on one side
    {"_fft_r2c", read_transform, kTransform, {0, 1, -1, 1}},
    {"_fft_c2r", read_transform, kTransform, {0, 1, 3, 1}},
    {"_fft_c2c", read_transform, kTransform, {0, 1, -1, 0}},

    // input, kernel, stride, padding, kind
    {"max_pool2d", read_pooling, kReduction, {0, 1, 2, 3, kMaxPool}},
    {"max_pool2d_with_indices", read_pooling, kReduction, {0, 1, 2, 3, kMaxPool}},
    {"max_pool3d_with_indices", read_pooling, kReduction, {0, 1, 2, 3, kMaxPool}},
    {"avg_pool2d", read_pooling, kReduction, {0, 1, 2, 3, kAveragePool}},
    {"avg_pool3d", read_pooling, kReduction, {0, 1, 2, 3, kAveragePool}},
    {"adaptive_avg_pool2d", read_pooling, kReduction, {0, 1, -1, -1, kAdaptivePool}},
    {"_adaptive_avg_pool2d", read_pooling, kReduction, {0, 1, -1, -1, kAdaptivePool}},

    {"embedding", read_embedding, kEmbedding, {kLookup}},
    {"embedding_dense_backward", read_embedding, kEmbedding, {kLookupBackward}},
    {"_embedding_bag", read_embedding, kEmbedding, {kBag}},
    {"_embedding_bag_forward_only", read_embedding, kEmbedding, {kBag}},
    {"index_select", read_embedding, kEmbedding, {kIndexSelect}},
    {"gather", read_embedding, kEmbedding, {kGather}},
    {"scatter", read_embedding, kEmbedding, {kGather}},
    {"scatter_add", read_embedding, kEmbedding, {kGather}},
    {"take_along_dim", read_embedding, kEmbedding, {kGather}},

    // lists read, lists written; 0 = as many as are there
    {"_fused_adam", read_lists, kOptimizer, {4, 3}},
    {"_fused_adamw", read_lists, kOptimizer, {4, 3}},
    {"_fused_adagrad", read_lists, kOptimizer, {3, 2}},
    {"_fused_sgd", read_lists, kOptimizer, {0, 2}},
    {"_amp_foreach_non_finite_check_and_unscale", read_lists, kOptimizer, {1, 1}},
    {"cat", read_concatenation, kLayout, {}},
    {"_cat", read_concatenation, kLayout, {}},
    {"stack", read_concatenation, kLayout, {}},
    {"_foreach_copy", read_lists, kCopy, {1, 1}},

    // sent, received
    {"c10d::allreduce", read_collective, kCommunication, {0, 0}},
    {"c10d::broadcast", read_collective, kCommunication, {0, 0}},
    {"c10d::reduce", read_collective, kCommunication, {0, 0}},
    {"c10d::_allgather_base", read_collective, kCommunication, {1, 0}},
    {"c10d::_reduce_scatter_base", read_collective, kCommunication, {1, 0}},
    {"c10d::allgather", read_collective, kCommunication, {1, 0}},
    {"c10d::reduce_scatter", read_collective, kCommunication, {1, 0}},
    {"c10d::alltoall_base", read_collective, kCommunication, {1, 0}},
    {"c10d::alltoall", read_collective, kCommunication, {1, 0}},
    {"c10d::send", read_collective, kCommunication, {0, -1}},
    {"c10d::recv", read_collective, kCommunication, {-1, 0}},
    {"_c10d_functional::all_reduce", read_collective, kCommunication, {0, 0}},
    {"_c10d_functional::broadcast", read_collective, kCommunication, {0, 0}},
    {"_c10d_functional::all_gather_into_tensor", read_collective, kCommunication, {0, -1}},
    {"_c10d_functional::reduce_scatter_tensor", read_collective, kCommunication, {0, -1}},
    {"_c10d_functional::all_to_all_single", read_collective, kCommunication, {0, 0}},
    {"nccl:all_reduce", read_collective, kCommunication, {0, 0}},
    {"nccl:broadcast", read_collective, kCommunication, {0, 0}},
    {"nccl:_all_gather_base", read_collective, kCommunication, {0, -1}},
    {"nccl:all_gather", read_collective, kCommunication, {0, -1}},
    {"nccl:_reduce_scatter_base", read_collective, kCommunication, {0, -1}},
    {"nccl:reduce_scatter", read_collective, kCommunication, {0, -1}},
    {"nccl:all_to_all", read_collective, kCommunication, {0, -1}},

    {"_C::silu_and_mul", read_elementwise, kElementwise, {kOverwrites}},
    {"_C::gelu_and_mul", read_elementwise, kElementwise, {kOverwrites}},
    {"copy", read_elementwise, kCopy, {kOverwrites}},
    {"_to_copy", read_elementwise, kCopy, {kPlain}},
    {"to", read_elementwise, kCopy, {kPlain}},
    {"clone", read_elementwise, kCopy, {kPlain}},
    {"contiguous", read_elementwise, kCopy, {kPlain}},
    {"transpose", read_elementwise, kLayout, {kPlain}},
    {"permute", read_elementwise, kLayout, {kPlain}},
    {"flip", read_elementwise, kLayout, {kPlain}},
    {"roll", read_elementwise, kLayout, {kPlain}},
    {"native_dropout", read_elementwise, kElementwise, {kWithMask}},
    {"fill", read_elementwise, kElementwise, {kOverwrites}},
    {"zero", read_elementwise, kElementwise, {kOverwrites}},
    {"uniform", read_elementwise, kElementwise, {kOverwrites}},
    {"normal", read_elementwise, kElementwise, {kOverwrites}},
    {"bernoulli", read_elementwise, kElementwise, {kOverwrites}},
    {"random", read_elementwise, kElementwise, {kOverwrites}},
    {"exponential", read_elementwise, kElementwise, {kOverwrites}},
};

// Of any number of inputs: arithmetic and its gradients.
constexpr std::string_view kArithmetic[] = {"abs",
                                            "acos",
                                            "add",
                                            "addcdiv",
                                            "addcmul",
                                            "asin",
                                            "atan",
                                            "atan2",
                                            "bitwise_and",
                                            "bitwise_not",
                                            "bitwise_or",
                                            "bitwise_xor",
                                            "ceil",
                                            "celu",
                                            "clamp",
                                            "clamp_max",
                                            "clamp_min",
                                            "copysign",
                                            "cos",
                                            "cosh",
                                            "div",
                                            "elu",
                                            "elu_backward",
                                            "erf",
                                            "erfc",
                                            "erfinv",
                                            "exp",
                                            "exp2",
                                            "expm1",
                                            "floor",
                                            "floor_divide",
                                            "fmax",
                                            "fmin",
                                            "fmod",
                                            "frac",
                                            "gelu",
                                            "gelu_backward",
                                            "glu",
                                            "glu_backward",
                                            "hardsigmoid",
                                            "hardsigmoid_backward",
                                            "hardswish",
                                            "hardswish_backward",
                                            "hardtanh",
                                            "hardtanh_backward",
                                            "hypot",
                                            "leaky_relu",
                                            "leaky_relu_backward",
                                            "lerp",
                                            "log",
                                            "log10",
                                            "log1p",
                                            "log2",
                                            "log_sigmoid_forward",
                                            "log_sigmoid_backward",
                                            "logaddexp",
                                            "masked_fill",
                                            "maximum",
                                            "minimum",
                                            "mish",
                                            "mish_backward",
                                            "mul",
                                            "nan_to_num",
                                            "native_dropout_backward",
                                            "_masked_scale",
                                            "neg",
                                            "polar",
                                            "pow",
                                            "prelu",
                                            "_prelu_kernel",
                                            "reciprocal",
                                            "relu",
                                            "relu6",
                                            "remainder",
                                            "round",
                                            "rsqrt",
                                            "rsub",
                                            "sigmoid",
                                            "sigmoid_backward",
                                            "sign",
                                            "silu",
                                            "silu_backward",
                                            "sin",
                                            "sinh",
                                            "softplus",
                                            "softplus_backward",
                                            "sqrt",
                                            "square",
                                            "sub",
                                            "tan",
                                            "tanh",
                                            "tanh_backward",
                                            "threshold",
                                            "threshold_backward",
                                            "tril",
                                            "triu",
                                            "true_divide",
                                            "trunc",
                                            "where",
                                            "xlogy",
                                            "mse_loss_backward",
                                            "binary_cross_entropy",
                                            "binary_cross_entropy_backward",
                                            "binary_cross_entropy_with_logits",
                                            "_fused_dropout",
                                            "complex",
                                            "real",
                                            "imag"};
constexpr std::string_view kComparisons[] = {
    "eq",    "ne",       "lt",          "le",          "gt",         "ge",          "isnan",
    "isinf", "isfinite", "logical_and", "logical_not", "logical_or", "logical_xor", "signbit"};

// What Inductor calls its kernels, recorded as ops with their arguments.
struct PrefixRule {
  std::string_view prefix;
  OpRule rule;
};
constexpr PrefixRule kPrefixes[] = {
    {"triton_poi_", {"", read_elementwise, kElementwise, {kTritonKernel}}},
    {"triton_red_", {"", read_elementwise, kReduction, {kTritonKernel}}},
    {"triton_per_", {"", read_elementwise, kReduction, {kTritonKernel}}},
    {"_foreach_", {"", read_lists, kOptimizer, {0, 1}}},
};

// Primitives of JAX whose names differ: "jit(step)/jvp()/dot_general". XLA makes one kernel of
// several, so what is not here goes over its elements.
struct Alias {
  std::string_view primitive, op;
};
constexpr Alias kPrimitives[] = {
    {"dot_general", "mm"},
    {"conv_general_dilated", "convolution"},
    {"reduce_sum", "sum"},
    {"reduce_max", "amax"},
    {"reduce_min", "amin"},
    {"reduce_prod", "prod"},
    {"reduce_and", "all"},
    {"reduce_or", "any"},
    {"argmax", "argmax"},
    {"argmin", "argmin"},
    {"transpose", "permute"},
    {"convert_element_type", "to"},
    {"copy", "copy"},
    {"psum", ""},
    {"custom-call", ""},
    {"pallas_call", ""},
    {"sort", ""},
    {"fft", ""},
    {"ffi_call", ""},
};

using Index = std::unordered_map<std::string_view, const OpRule*>;

Index make_index() {
  static constexpr OpRule kPlainRule = {"", read_elementwise, kElementwise, {kPlain}};
  static constexpr OpRule kTruthRule = {"", read_elementwise, kElementwise, {kTruth}};
  Index index;
  for (std::string_view op : kArithmetic) index.emplace(op, &kPlainRule);
  for (std::string_view op : kComparisons) index.emplace(op, &kTruthRule);
  for (const OpRule& rule : kRules) index.emplace(rule.op, &rule);
  return index;
}

}  // namespace

const OpRule* rule_of(std::string_view op) {
  static const Index kIndex = make_index();
  if (starts_with(op, "jit(")) {
    const std::string_view primitive = op.substr(op.rfind('/') + 1);
    op = "add";
    for (const Alias& alias : kPrimitives)
      if (alias.primitive == primitive) op = alias.op;
  }
  if (starts_with(op, "aten::")) op.remove_prefix(6);
  if (const std::size_t dot = op.find('.'); dot != std::string_view::npos) op = op.substr(0, dot);
  if (op.size() > 1 && ends_with(op, "_")) op.remove_suffix(1);
  if (const auto found = kIndex.find(op); found != kIndex.end()) return found->second;
  for (const PrefixRule& prefix : kPrefixes)
    if (starts_with(op, prefix.prefix)) return &prefix.rule;
  return nullptr;
}

Problem problem_of(std::string_view op, const std::vector<OpInput>& inputs) {
  const OpRule* rule = rule_of(op);
  return rule != nullptr ? rule->read(OpInputs(inputs), *rule) : Problem{};
}

}  // namespace purlin
