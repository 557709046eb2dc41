// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name/kernel_name.h"

#include "analyze/kernel_name/compilers.h"
#include "analyze/kernel_name/dialects.h"
#include "analyze/kernel_name/rules.h"
#include "analyze/kernel_name/text.h"
#include "base/replace.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace purlin::analyze {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Nsight writes "<unnamed>" for a namespace and "(int)4", "(bool)0" for arguments.
std::string plainly(std::string text) {
  text = replace_all(std::move(text), "<unnamed>::", "(anonymous namespace)::");
  for (std::string_view cast : {"(int)", "(bool)", "(long)", "(unsigned int)", "(unsigned long)"})
    for (std::string_view before : {"<", ", "})
      text = replace_all(std::move(text), fmt::format("{}{}", before, cast), before);
  return text;
}

std::string brief_name(const NameParts& parts) {
  std::string name = parts.name;
  for (std::string_view prefix : {"at::native::", "at::cuda::", "cudnn::", "pytorch_flash::",
                                  "cudapy::__main__::", "(anonymous namespace)::"})
    if (starts_with(name, prefix)) name.erase(0, prefix.size());
  for (std::size_t at; (at = name.find("(anonymous namespace)::")) != std::string::npos;)
    name.erase(at, std::string_view("(anonymous namespace)::").size());
  for (std::string_view generic : {"elementwise_kernel", "reduce_kernel", "multi_tensor_apply"}) {
    if (name.find(generic) == std::string::npos) continue;
    const Operation operation = operation_in(parts.arguments);
    if (operation.name.empty()) continue;
    if (ends_with(name, "_kernel")) name.erase(name.size() - std::string_view("_kernel").size());
    name += " " + operation.name;
    return operation.type.empty() ? name : name + "<" + operation.type + ">";
  }
  return name;
}

// Of a list of properties that is one argument: "Selective_Scan_fwd_kernel_traits<128, c10::Half>",
// or CK's "GridwiseGemm<…, unsigned short, …>", which is its bf16.
std::string_view type_in_traits(const std::vector<std::string_view>& arguments) {
  for (std::string_view argument : arguments) {
    const NameParts parts = take_apart(argument);
    const std::string lower = lower_case(parts.name);
    const bool gridwise = lower.find("gridwise") != std::string::npos;
    if (parts.arguments.empty() || (!gridwise && lower.find("traits") == std::string::npos))
      continue;
    for (std::string_view inner : split_arguments(parts.arguments)) {
      const std::string name = type_name(inner);
      if (gridwise && (inner == "unsigned short" || name == "bf16_t" || name == "bhalf_t"))
        return "bf16";
      const std::string_view type = element_type(name == "_Float16" ? "half" : name);
      if (type.find('f') != std::string_view::npos) return type;
    }
  }
  return "";
}

// The element type of kernels that take it as a template argument: the operation's, else the first
// floating type, else the first type. Other integer arguments are usually indices.
std::string_view type_in(const NameParts& parts) {
  const Operation operation = operation_in(parts.arguments);
  const std::vector<std::string_view> arguments = split_arguments(parts.arguments);
  if (!operation.name.empty() && !operation.type.empty()) return element_type(operation.type);
  if (const std::string_view type = type_in_traits(arguments); !type.empty()) return type;
  if (!operation.name.empty()) return "";
  for (std::string_view argument : arguments) {
    const std::string_view type = element_type(type_name(argument));
    if (type.find('f') != std::string_view::npos) return type;
  }
  // 16 bits without a sign are how some libraries hold f16 and bf16.
  if (arguments[0] == "unsigned short") return "";
  return element_type(type_name(arguments[0]));
}

// What a kernel's pointers and arrays hold: the first floating type, else the first type.
std::string_view type_of_parameters(std::string_view text, const NameParts& parts) {
  const std::size_t open =
      static_cast<std::size_t>(parts.whole.data() - text.data()) + parts.whole.size();
  if (open >= text.size() || text[open] != '(') return "";
  const std::size_t end = skip_brackets(text, open);
  std::string_view first;
  bool any_type = false;
  for (std::string_view parameter : split_arguments(text.substr(open + 1, end - open - 2))) {
    const std::size_t star = parameter.find('*');
    if (starts_with(parameter, "Array<"))  // Numba's
      parameter = split_arguments(parameter.substr(6))[0];
    else if (star == std::string_view::npos)
      continue;
    else
      parameter = trim(parameter.substr(0, star));
    for (const std::string_view word : {" const", " volatile"})
      if (ends_with(parameter, word)) parameter.remove_suffix(word.size());
    if (starts_with(parameter, "const ")) parameter.remove_prefix(6);
    any_type = any_type || parameter == "char" || parameter == "void" ||
               parameter == "unsigned char" ||  // bytes of any type
               parameter == "unsigned short";   // or two
    const std::string_view type = element_type(type_name(parameter));
    const std::string_view spelled = type.empty() ? element_type(parameter) : type;
    if (spelled.find('f') != std::string_view::npos) return spelled;
    if (first.empty()) first = spelled;
  }
  return any_type ? std::string_view() : first;  // integers next to it are indices
}

// Of names without parameters: "foo_kernel_f16". Two types that differ tell nothing.
std::string_view type_of_words(std::string_view lower) {
  constexpr std::string_view kWords[] = {
      "bf16", "f16",  "fp16",     "f32",     "fp32",    "f64",     "fp64",      "fp8",
      "int8", "half", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"};
  // Kernels of triton_kernels that count and route by index.
  if (lower.find("qk_int8") != std::string_view::npos)
    return "i8";  // SageAttention names its sum's type too
  // CuTe's DSL: "…tensorptrbf16gmemalign16…" of its first tensor.
  constexpr std::string_view kPointer = "tensorptr";
  if (const std::size_t at = lower.find(kPointer); at != std::string_view::npos) {
    const std::string_view rest = lower.substr(at + kPointer.size());
    return element_type(rest.substr(0, rest.find("gmem")));
  }
  constexpr std::string_view kRouting[] = {"_combined_routing_", "_sum_bitmatrix_rows", "_routing_",
                                           "_expt_data_"};
  std::string_view found;
  for (const std::string& token : split(std::string(lower), '_'))
    for (const std::string_view word : kWords)
      if (token == word) {
        const std::string_view type = word == "fp8"          ? "f8e4m3"
                                      : word == "complex64"  ? "c64"
                                      : word == "complex128" ? "c128"
                                                             : element_type(word);
        if (!found.empty() && found != type) return "";
        found = type;
      }
  for (const std::string_view routing : kRouting)
    if (found.empty() && starts_with(lower, routing)) return "i32";
  return found;
}

// Work that has no use for tensor cores, and matrix products too narrow for them.
bool never_on_tensor_cores(const KernelName& name, std::string_view lower) {
  for (std::string_view word :
       {"gemv", "splitkreduce", "gemmk1", "dot_kernel", "gemmsn", "convolve_sgemm", "winograd",
        "wgrad_alg0_engine", "dgrad_engine", "dgrad2d", "im2col", "offsetskernel", "conv_depthwise",
        "scalepackedtensor", "quantize", "routing", "finalize"})
    if (lower.find(word) != std::string_view::npos) return true;
  if (name.family == "custom") return false;
  for (std::string_view op_class : {"norm", "softmax", "elementwise", "reduction", "copy", "layout",
                                    "optimizer", "embedding", "communication"})
    if (name.op_class == op_class) return true;
  return false;
}

// Without an answer of a dialect: words for their instructions in the names of matrix kernels.
bool speaks_of_tensor_cores(const KernelName& name, std::string_view lower) {
  if (name.op_class != "gemm" && name.op_class != "conv" && name.op_class != "attention")
    return false;
  for (std::string_view word :
       {"hmma", "imma", "wmma", "wgmma", "tcgen05", "tensorop", "tensor_op", "tensorcore",
        "tensor_core", "_mma_", "mfma", "xdlops", "flash_fwd_kernel", "flash_fwd_splitkv_kernel",
        "flash_bwd_dq_dk_dv"})
    if (lower.find(word) != std::string_view::npos) return true;
  return false;
}

}  // namespace

std::string_view to_text(TensorCores use) {
  return use == TensorCores::kYes ? "yes" : use == TensorCores::kNo ? "no" : "unknown";
}

KernelName describe_kernel(std::string_view recorded) {
  KernelName out;
  out.full = readable_symbol(recorded);
  std::string text = plainly(out.full);
  const bool numba = remove_numba_tags(text);
  const NameParts parts = take_apart(text);
  out.arguments = parts.arguments;
  out.brief = brief_name(parts);
  if (out.brief.empty()) out.brief = out.full;
  const std::string lower = lower_case(parts.whole);
  out.family = numba ? "numba" : family_of(lower);
  out.op_class = op_class_of(lower);
  // A symbol cut short still has the names of its arguments, if not their order.
  const bool cut = starts_with(recorded, "_Z") && out.full.find_first_of("<(") == std::string::npos;
  if (cut && out.op_class == "other") out.op_class = op_class_of(lower_case(recorded));
  if (!read_outlined(recorded, out)) read_dialect(parts, out);
  if (out.dtype.empty() && out.family != "nccl") out.dtype = type_in(parts);
  // Of a collective, parameters are scales and flags next to bytes of any type.
  if (out.dtype.empty() && out.op_class != "communication")
    out.dtype = type_of_parameters(text, parts);
  // Of libraries, the dialects know better: cuDNN's "f16" is of bf16 too.
  constexpr std::string_view kOwnWords[] = {"custom", "triton", "sage-attention", "flash-attention",
                                            "aiter",  "cupy",   "onednn"};
  const bool own_words =
      std::find(std::begin(kOwnWords), std::end(kOwnWords), out.family) != std::end(kOwnWords);
  if (out.dtype.empty() && own_words) out.dtype = type_of_words(lower_case(parts.name));
  if (out.dtype.empty() && starts_with(lower, "__amd_rocclr_")) out.dtype = "bytes";  // of any type
  if (out.tensor == TensorCores::kUnknown) {
    if (never_on_tensor_cores(out, lower)) {
      out.tensor = TensorCores::kNo;
    } else if (speaks_of_tensor_cores(out, lower)) {
      out.tensor = TensorCores::kYes;
    }
  }
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
