// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

// The first rule whose word occurs in the name decides. Words are lower-case; one that begins with
// ^ must stand at the beginning. Names are matched without their parameter lists, in lower case.
struct Rule {
  std::string_view word, answer;
};

constexpr Rule kFamilies[] = {
    {"^nccl", "nccl"},
    {"^rccl", "rccl"},
    {"nvshmem", "nvshmem"},
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
    {"winograd", "cudnn"},
    {"xmma_fprop", "cudnn"},
    {"xmma_dgrad", "cudnn"},
    {"xmma_wgrad", "cudnn"},
    {"cublas", "cublas"},
    {"nvjet", "cublas"},
    {"xmma_gemm", "cublas"},
    {"splitkreduce", "cublas"},
    {"^gemv2", "cublas"},
    {"^gemvns", "cublas"},
    {"^dot_kernel", "cublas"},
    {"^volta_", "cublas"},
    {"^turing_", "cublas"},
    {"^ampere_", "cublas"},
    {"^maxwell_", "cublas"},
    {"^pascal_", "cublas"},
    {"cutlass", "cutlass"},
    {"^cijk_", "rocblas"},
    {"miopen", "miopen"},
    {"transformer_engine", "transformer-engine"},
    {"vllm::", "vllm"},
    {"cub::", "cub"},
    {"thrust::", "thrust"},
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
    {"flash_", "attention"},
    {"flash::", "attention"},
    {"fmha", "attention"},
    {"attention", "attention"},
    {"sdpa", "attention"},
    {"attn", "attention"},
    {"compute_dot_do_o", "attention"},      // of cuDNN's attention backward
    {"convert_dq_to_16bits", "attention"},  //
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
    {"rowwisemoments", "norm"},
    {"welford", "norm"},
    {"bn_fw", "norm"},
    {"bn_bw", "norm"},
    {"ln_fwd", "norm"},
    {"ln_bwd", "norm"},
    {"softmax", "softmax"},
    {"embedding", "embedding"},
    {"convolve", "conv"},
    {"convolution", "conv"},
    {"conv1d", "conv"},
    {"conv2d", "conv"},
    {"conv3d", "conv"},
    {"_conv_", "conv"},
    {"::conv::", "conv"},
    {"depthwise", "conv"},
    {"scudnn", "conv"},
    {"hcudnn", "conv"},
    {"winograd", "conv"},
    {"im2col", "conv"},
    {"col2im", "conv"},
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
    {"^cijk_", "gemm"},
    {"triton_tem", "gemm"},
    {"_bmm", "gemm"},
    {"addmm", "gemm"},
    {"transpose", "layout"},
    {"permute", "layout"},
    {"nchwtonhwc", "layout"},
    {"nhwctonchw", "layout"},
    {"catarray", "layout"},
    {"im2patch", "layout"},
    {"copy", "copy"},
    {"memcpy", "copy"},
    {"memset", "copy"},
    {"triton_red", "reduction"},
    {"triton_per", "reduction"},
    {"reduce", "reduction"},
    {"reduction", "reduction"},
    {"nllcriterion", "reduction"},
    {"nll_loss", "reduction"},
    {"cumsum", "reduction"},
    {"scan", "reduction"},
    {"argmax", "reduction"},
    {"elementwise", "elementwise"},
    {"pointwise", "elementwise"},
    {"triton_poi", "elementwise"},
    {"scalepackedtensor", "elementwise"},
    {"dropout", "elementwise"},
    {"axpy", "elementwise"},
    {"vector_add", "elementwise"},
    {"vec_add", "elementwise"},
    {"vectoradd", "elementwise"},
    {"vecadd", "elementwise"},
    {"gelu", "elementwise"},
    {"relu", "elementwise"},
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

constexpr std::string_view kAnonymous = "(anonymous namespace)";

// The end of what opens at `at`, one past its closing bracket; the text's end where none closes it.
std::size_t skip_brackets(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
    const bool arrow = c == '>' && at > 0 && text[at - 1] == '-';
    if ((c == ')' || c == '>' || c == '}' || c == ']') && !arrow && --depth == 0) return at + 1;
  }
  return text.size();
}

struct Parts {
  std::string name;        // "at::native::reduce_kernel"
  std::string arguments;   // between the last component's < and >
  std::string_view whole;  // name and arguments, without return type and parameters
};

// Takes "void a::b<c>(d)" apart. Also used for template arguments such as "f(x)::{lambda()#1}",
// which then stop at the first parameter list: the function the lambda stands in.
Parts take_apart(std::string_view text) {
  Parts parts;
  std::string enclosing;  // arguments of the class that the last component belongs to
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '(') {
      if (!starts_with(text.substr(at), kAnonymous)) break;
      parts.name += kAnonymous;
      at += kAnonymous.size();
    } else if (c == '<') {
      const std::size_t end = skip_brackets(text, at);
      parts.arguments =
          text.substr(at + 1, end - at - (end < text.size() || text.back() == '>' ? 2 : 1));
      at = end;
    } else if (c == ' ') {  // what stood before was a return type
      parts.name.clear();
      parts.arguments.clear();
      begin = ++at;
    } else {
      if (c == ':' && !parts.arguments.empty()) enclosing = std::exchange(parts.arguments, "");
      parts.name += c;
      ++at;
    }
  }
  parts.whole = text.substr(begin, at - begin);
  // A call operator is named for the class it belongs to.
  if (constexpr std::string_view kCall = "::operator"; ends_with(parts.name, kCall)) {
    parts.name.erase(parts.name.size() - kCall.size());
    parts.arguments = enclosing;
  }
  return parts;
}

std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    if (text[at] == ',') {
      out.push_back(trim(text.substr(begin, at - begin)));
      begin = ++at;
    } else if (text[at] == '<' || text[at] == '(' || text[at] == '{') {
      at = skip_brackets(text, at);
    } else {
      ++at;
    }
  }
  out.push_back(trim(text.substr(begin)));
  return out;
}

std::string without_namespaces(std::string_view name) {
  const std::size_t colons = name.rfind("::");
  return std::string(colons == std::string_view::npos ? name : name.substr(colons + 2));
}

std::string type_name(std::string_view type) {
  const std::string name = without_namespaces(take_apart(type).name);
  return name == "BFloat16" ? "bf16" : name == "Half" ? "f16" : name;
}

bool is_wrapper(std::string_view name) {
  constexpr std::string_view kWrappers[] = {
      "gpu_kernel_impl", "gpu_kernel_impl_nocast", "ReduceOp",     "func_wrapper_t",
      "BinaryFunctor",   "AUnaryFunctor",          "BUnaryFunctor"};
  return std::find(std::begin(kWrappers), std::end(kWrappers), name) != std::end(kWrappers);
}

// Whether a template argument is the operation rather than a type, a number or an accessor.
bool is_operation(std::string_view argument) {
  if (argument.empty() || std::isalpha(static_cast<unsigned char>(argument[0])) == 0) return false;
  const std::string name = without_namespaces(take_apart(argument).name);
  if (is_wrapper(name)) return true;
  for (std::string_view word : {"Functor", "functor", "kernel", "Kernel", "Ops", "impl", "lambda"})
    if (name.find(word) != std::string::npos) return true;
  return argument.find("{lambda") != std::string_view::npos;
}

// "CUDAFunctor_add", "MulFunctor", "direct_copy_kernel_cuda", "GeluCUDAKernelImpl", "MeanOps": what
// they do, without how they are built.
std::string plain_operation(std::string name) {
  for (std::string_view prefix : {"CUDAFunctor_", "CUDAFunctor"})
    if (starts_with(name, prefix) && name.size() > prefix.size()) name.erase(0, prefix.size());
  for (std::string_view suffix : {"CUDAKernelImpl", "_kernel_impl", "_kernel_cuda", "_functor",
                                  "MathFunctor", "Functor", "_kernel", "Ops"}) {
    if (!ends_with(name, suffix) || name.size() == suffix.size()) continue;
    name.erase(name.size() - suffix.size());
    break;
  }
  // MulScalar -> mul_scalar, as PyTorch's own functions are called.
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool begins = std::isupper(c) != 0 && i > 0 &&
                        std::isupper(static_cast<unsigned char>(name[i - 1])) == 0 &&
                        name[i - 1] != '_';
    if (begins) words += '_';
    words += static_cast<char>(std::tolower(c));
  }
  return words;
}

// What a PyTorch elementwise, reduction or multi-tensor kernel applies: "add<float>". The
// bound is against names made to nest without end.
std::string operation_in(std::string_view arguments, int bound = 8) {
  for (std::string_view argument : split_arguments(arguments)) {
    if (!is_operation(argument)) continue;
    const Parts parts = take_apart(argument);
    const std::string name = without_namespaces(parts.name);
    if (is_wrapper(name) && bound > 0) {
      std::string inner = operation_in(parts.arguments, bound - 1);
      if (!inner.empty()) return inner;
    }
    // The element type: the first template argument if that is a type, else the innermost lambda's.
    std::string type;
    const std::size_t lambda = argument.rfind("{lambda(");
    if (!parts.arguments.empty()) {
      const std::string_view first = split_arguments(parts.arguments)[0];
      if (std::isalpha(static_cast<unsigned char>(first[0])) != 0) type = type_name(first);
    } else if (lambda != std::string_view::npos) {
      const std::size_t open = lambda + 7;
      const std::size_t close = skip_brackets(argument, open);
      type = type_name(split_arguments(argument.substr(open + 1, close - open - 2))[0]);
      if (type == "int") type.clear();  // an index, not an element
    }
    const std::string operation = plain_operation(name);
    return type.empty() ? operation : operation + "<" + type + ">";
  }
  return "";
}

// A template argument in a label: "c10::BFloat16" -> "bf16", "a::b<c::d, 4>" -> "b",
// "f()::{lambda…"
// -> "f", "(Kind)2" -> "2".
std::string short_argument(std::string_view argument) {
  if (starts_with(argument, "(") && !starts_with(argument, kAnonymous))
    argument = trim(argument.substr(skip_brackets(argument, 0)));
  const std::string name = type_name(argument);
  return name.empty() ? std::string(argument) : name;
}

std::string brief_name(const Parts& parts) {
  std::string name = parts.name;
  for (std::string_view prefix :
       {"at::native::", "at::cuda::", "cudnn::", "(anonymous namespace)::"})
    if (starts_with(name, prefix)) name.erase(0, prefix.size());
  for (std::size_t at; (at = name.find("(anonymous namespace)::")) != std::string::npos;)
    name.erase(at, std::string_view("(anonymous namespace)::").size());
  for (std::string_view generic : {"elementwise_kernel", "reduce_kernel", "multi_tensor_apply"}) {
    if (name.find(generic) == std::string::npos) continue;
    const std::string operation = operation_in(parts.arguments);
    if (operation.empty()) continue;
    if (ends_with(name, "_kernel")) name.erase(name.size() - std::string_view("_kernel").size());
    return name + " " + operation;
  }
  // cutlass::Kernel2<cutlass_80_tensorop_…>: the argument is the name.
  if (starts_with(name, "cutlass") && name.find("::Kernel") != std::string::npos) {
    const std::string inner = without_namespaces(take_apart(parts.arguments).name);
    if (inner.find("gemm") != std::string::npos || starts_with(inner, "cutlass")) return inner;
  }
  return name;
}

}  // namespace

KernelName describe_kernel(std::string_view recorded) {
  KernelName out;
  out.full = demangle(recorded);
  const Parts parts = take_apart(out.full);
  out.arguments = parts.arguments;
  out.brief = brief_name(parts);
  if (out.brief.empty()) out.brief = out.full;
  std::string lower(parts.whole);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  out.family = first_match(kFamilies, lower, "custom");
  out.op_class = first_match(kOpClasses, lower, "other");
  return out;
}

std::vector<std::string> tell_apart(const std::vector<const KernelName*>& namesakes) {
  std::vector<std::vector<std::string>> arguments;
  std::size_t most = 0;
  for (const KernelName* name : namesakes) {
    arguments.emplace_back();
    for (std::string_view argument : split_arguments(name->arguments))
      arguments.back().push_back(short_argument(argument));
    most = std::max(most, arguments.back().size());
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < namesakes.size(); ++i) {
    std::string kept;
    for (std::size_t at = 0; at < most; ++at) {
      const auto differs = [&](const std::vector<std::string>& other) {
        return (at < other.size() ? other[at] : "") !=
               (at < arguments[i].size() ? arguments[i][at] : "");
      };
      if (at >= arguments[i].size() || arguments[i][at].empty() ||
          std::none_of(arguments.begin(), arguments.end(), differs))
        continue;
      kept += (kept.empty() ? "" : ", ") + arguments[i][at];
    }
    const std::string& brief = namesakes[i]->brief;
    const bool apart = brief.find_first_of("< ") != std::string::npos;
    out.push_back(kept.empty() ? brief : brief + (apart ? " <" : "<") + kept + ">");
  }
  std::map<std::string, int> seen;
  for (std::string& label : out)
    if (const int number = ++seen[label]; number > 1) label += fmt::format(" #{}", number);
  return out;
}

}  // namespace purlin::analyze
