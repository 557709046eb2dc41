// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/op_kinds.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <span>

namespace purlin::profile::flow {
namespace {

using Names = std::span<const std::string_view>;

bool in(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_any(Names parts, std::string_view name) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

// "aten::relu_" -> "relu_"; "" of another library's op.
std::string_view plain(std::string_view op) {
  constexpr std::string_view kAten = "aten::";
  return starts_with(op, kAten) ? op.substr(kAten.size()) : std::string_view();
}

// "relu_" -> "relu"
std::string_view functional(std::string_view name) {
  if (name.size() > 1 && name.back() == '_') name.remove_suffix(1);
  return name;
}

constexpr std::array<std::string_view, 7> kAllocations = {
    "empty",          "empty_like",     "empty_strided", "new_empty", "new_empty_strided",
    "empty_permuted", "empty_quantized"};

constexpr std::array<std::string_view, 14> kMetadata = {
    "resize_",         "resize_as_",   "set_",        "detach_",
    "squeeze_",        "unsqueeze_",   "t_",          "transpose_",
    "swapaxes_",       "swapdims_",    "as_strided_", "requires_grad_",
    "_resize_output_", "record_stream"};

constexpr std::array<std::string_view, 13> kRandom = {
    "dropout", "rand",     "normal", "bernoulli", "multinomial", "uniform", "exponential",
    "poisson", "binomial", "gamma",  "dirichlet", "cauchy",      "rrelu"};

constexpr std::array<std::string_view, 14> kToHost = {
    "item",          "_local_scalar_dense", "is_nonzero",     "equal",    "allclose",
    "nonzero",       "nonzero_numpy",       "nonzero_static", "_unique2", "unique_dim",
    "masked_select", "unique_consecutive",  "_unique",        "argwhere"};

constexpr std::array<std::string_view, 12> kOverwrites = {
    "copy_",      "fill_",        "zero_",          "normal_",        "uniform_",    "random_",
    "bernoulli_", "exponential_", "_foreach_copy_", "_foreach_zero_", "log_normal_", "geometric_"};

// Work by element.
constexpr std::string_view kArithmetic[] = {
    "add",   "sub",   "mul",       "div",       "exp",       "exp2",       "expm1",      "log",
    "log2",  "log1p", "sqrt",      "rsqrt",     "pow",       "square",     "neg",        "abs",
    "sign",  "clamp", "clamp_min", "clamp_max", "addcmul",   "addcdiv",    "lerp",       "erf",
    "erfc",  "sin",   "cos",       "tan",       "atan",      "reciprocal", "maximum",    "minimum",
    "floor", "ceil",  "round",     "trunc",     "remainder", "fmod",       "nan_to_num", "rsub"};
constexpr std::string_view kActivations[] = {
    "relu", "gelu", "silu",     "sigmoid",   "tanh",        "hardtanh",       "leaky_relu",
    "elu",  "mish", "softplus", "hardswish", "hardsigmoid", "native_dropout", "threshold"};
constexpr std::string_view kGradients[] = {"gelu_backward", "silu_backward", "sigmoid_backward",
                                           "tanh_backward", "threshold_backward"};
constexpr std::string_view kComparisons[] = {
    "eq",          "ne",          "lt",          "le",          "gt",          "ge",
    "logical_and", "logical_or",  "logical_not", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_not", "bitwise_xor", "isnan",       "isinf"};
constexpr std::string_view kCopies[] = {"where", "copy", "clone", "_to_copy", "masked_fill"};

struct Known {
  std::string_view name;
  PartNeed need;
};
constexpr std::array<Known, 34> kKnown = {{
    {"mm", {PartKind::kProduct, 0}},
    {"addmm", {PartKind::kProduct, 1}},
    {"_addmm_activation", {PartKind::kProduct, 1}},
    {"bmm", {PartKind::kProduct, 0}},
    {"baddbmm", {PartKind::kProduct, 1}},
    {"linear", {PartKind::kProduct, 0}},
    {"_scaled_mm", {PartKind::kProduct, 0}},
    {"_softmax", {PartKind::kRows, 0}},
    {"_log_softmax", {PartKind::kRows, 0}},
    {"native_layer_norm", {PartKind::kRows, 0}},
    {"_fused_rms_norm", {PartKind::kRows, 0}},
    {"rms_norm", {PartKind::kRows, 0}},
    {"_scaled_dot_product_flash_attention", {PartKind::kRows, 0}},
    {"_scaled_dot_product_efficient_attention", {PartKind::kRows, 0}},
    {"_scaled_dot_product_cudnn_attention", {PartKind::kRows, 0}},
    {"_flash_attention_forward", {PartKind::kRows, 0}},
    {"_efficient_attention_forward", {PartKind::kRows, 0}},
    {"_cudnn_attention_forward", {PartKind::kRows, 0}},
    {"embedding", {PartKind::kSelection, 0}},
    {"index_select", {PartKind::kSelection, 0}},
    {"gather", {PartKind::kSelection, 0}},
    {"index", {PartKind::kSelection, 0}},
    {"take", {PartKind::kSelection, 0}},
    {"_unsafe_index", {PartKind::kSelection, 0}},
    {"cudnn_convolution", {PartKind::kPart, 0}},
    {"cudnn_convolution_relu", {PartKind::kPart, 0}},
    {"cudnn_convolution_add_relu", {PartKind::kPart, 0}},
    {"cudnn_convolution_transpose", {PartKind::kPart, 0}},
    {"_conv_depthwise2d", {PartKind::kPart, 0}},
    {"conv_depthwise3d", {PartKind::kPart, 0}},
    {"_slow_conv2d_forward", {PartKind::kPart, 0}},
    {"miopen_convolution", {PartKind::kPart, 0}},
    {"cat", {PartKind::kPart, 0}},
    {"stack", {PartKind::kPart, 0}},
}};

}  // namespace

bool is_allocation(std::string_view op) { return in(kAllocations, plain(op)); }
bool is_metadata(std::string_view op) { return in(kMetadata, plain(op)); }
bool is_random(std::string_view op) { return has_any(kRandom, op); }
bool gives_to_host(std::string_view op) { return in(kToHost, plain(op)); }
bool only_overwrites(std::string_view op) { return in(kOverwrites, plain(op)); }

bool is_batch_norm(std::string_view op) {
  return op.find("batch_norm") != std::string_view::npos &&
         op.find("backward") == std::string_view::npos;
}

bool is_collective(std::string_view op) {
  return starts_with(op, "c10d::") || starts_with(op, "record_param_comms") ||
         starts_with(op, "nccl:");
}

PartNeed part_need(std::string_view op) {
  const std::string_view name = functional(plain(op));
  for (const Names elementwise : {Names(kArithmetic), Names(kActivations), Names(kGradients),
                                  Names(kComparisons), Names(kCopies)})
    if (in(elementwise, name)) return {PartKind::kElements, 0};
  for (const Known& known : kKnown)
    if (known.name == name) return known.need;
  return {};
}

}  // namespace purlin::profile::flow
