// SPDX-License-Identifier: Apache-2.0
// Library kernels that carry their configuration as C++ template arguments: CUTLASS,
// FlashAttention, DeepGEMM, cuDNN's older convolutions.
#include "analyze/kernel_name/dialects.h"
#include "base/text.h"

#include <fmt/format.h>

#include <cctype>

namespace purlin::analyze {
namespace {

constexpr std::string_view kShapes[] = {"cute::C", "C"};

int argument_number(std::string_view argument) {
  argument = without_cast(argument);
  while (!argument.empty() && (argument.back() == 'u' || argument.back() == 'l'))
    argument.remove_suffix(1);
  const auto value = parse_int(argument);
  return value && *value > 0 && *value < 1'000'000 ? static_cast<int>(*value) : 0;
}

std::string_view argument_at(const std::vector<std::string_view>& arguments, std::size_t at) {
  return at < arguments.size() ? arguments[at] : std::string_view();
}

// "cute::tuple<cute::C<128>, cute::C<256>, cute::C<64> >" -> "128x256x64"
std::string cute_shape(std::string_view text) {
  std::string out;
  for (std::string_view part : arguments_of(text, "tuple")) {
    int extent = 0;
    for (std::string_view name : kShapes)
      if (extent == 0) extent = argument_number(argument_at(arguments_of(part, name), 0));
    if (extent == 0) return "";
    out += (out.empty() ? "" : "x") + std::to_string(extent);
  }
  return out;
}

// "cutlass::arch::Sm90" -> "sm_90": the first place in the text that names one.
std::string arch_in(std::string_view text) {
  for (std::size_t at = 0; (at = text.find("Sm", at)) != std::string_view::npos; at += 2) {
    std::size_t end = at + 2;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end - at >= 4 && end - at <= 5)
      return fmt::format("sm_{}", text.substr(at + 2, end - at - 2));
  }
  return "";
}

std::string_view first_element_type(const std::vector<std::string_view>& arguments) {
  for (std::string_view argument : arguments) {
    const std::string name = without_namespaces(take_apart(argument).name);
    const std::string_view type = element_type(name);
    if (!type.empty()) return type;
  }
  return "";
}

std::string with_details(std::string_view head, const KernelName& name) {
  std::string out(head);
  if (!name.dtype.empty()) out += fmt::format(" {}", name.dtype);
  if (!name.tile.empty()) out += " " + name.tile;
  return out;
}

// FlashAttention 2: Flash_fwd_kernel_traits<head size, tile M, tile N, warps, …, type, …>; backward
// has the same first three.
bool read_flash_traits(const NameParts& parts, KernelName& out) {
  for (std::string_view traits :
       {"Flash_fwd_kernel_traits", "Flash_bwd_kernel_traits", "Flash_kernel_traits"}) {
    const auto arguments = arguments_of(parts.arguments, traits);
    if (arguments.size() < 4) continue;
    const int depth = argument_number(arguments[0]), m = argument_number(arguments[1]),
              n = argument_number(arguments[2]);
    if (depth == 0 || m == 0 || n == 0) continue;
    out.tile = fmt::format("{}x{}x{}", m, n, depth);
    out.dtype = first_element_type(arguments);
    out.accumulator = "f32";
    out.tensor = TensorCores::kYes;
    out.brief = with_details(without_namespaces(parts.name), out);
    return true;
  }
  return false;
}

// FlashAttention 3 and what follows its style: a collective main loop with the tile as a cute
// tuple.
bool read_flash_collective(std::string_view whole, KernelName& out) {
  struct Form {
    std::string_view kernel, mainloop;
  };
  constexpr Form kForms[] = {{"FlashAttnFwdSm90", "CollectiveMainloopFwdSm90"},
                             {"FlashAttnFwdSm80", "CollectiveMainloopFwdSm80"},
                             {"FlashAttnBwdSm90", "CollectiveMainloopBwdSm90"},
                             {"FlashAttnBwdSm80", "CollectiveMainloopBwdSm80"}};
  for (const Form& form : kForms) {
    if (whole.find(form.kernel) == std::string_view::npos) continue;
    const auto arguments = arguments_of(whole, form.mainloop);
    if (arguments.empty()) return false;
    out.stages = argument_number(arguments[0]);
    for (std::string_view argument : arguments) {
      const std::string shape = cute_shape(argument);
      if (!shape.empty() && shape != "1x1x1" && shape != "2x1x1") {
        out.tile = shape;
        break;
      }
    }
    out.dtype = first_element_type(arguments);
    out.accumulator = "f32";
    out.tensor = TensorCores::kYes;
    out.arch = arch_in(form.kernel);
    out.brief = with_details(form.kernel, out);
    return true;
  }
  return false;
}

// CUTLASS 3: CollectiveMma<MainloopSm90TmaGmma…<stages, cluster, …>, tile, type A, stride A, type
// B…>
bool read_collective_mma(std::string_view whole, KernelName& out) {
  for (std::string_view name : {"CollectiveMma", "CollectiveConv"}) {
    const auto arguments = arguments_of(whole, name);
    if (arguments.size() < 3) continue;
    const NameParts policy = take_apart(arguments[0]);
    out.stages = argument_number(argument_at(split_arguments(policy.arguments), 0));
    out.tile = cute_shape(arguments[1]);
    out.dtype = first_element_type({arguments[2]});
    if (out.dtype.empty() && starts_with(arguments[2], "cute::tuple"))
      out.dtype = first_element_type(arguments_of(arguments[2], "cute::tuple"));
    if (out.dtype == "f32") out.dtype = "tf32";
    out.arch = arch_in(policy.name);
    const bool matrix = policy.name.find("Gmma") != std::string::npos ||
                        policy.name.find("Umma") != std::string::npos ||
                        policy.name.find("UMMA") != std::string::npos;
    out.tensor = matrix ? TensorCores::kYes : TensorCores::kUnknown;
    out.split_k = whole.find("StreamK") != std::string_view::npos ||
                  whole.find("SplitK") != std::string_view::npos;
    const std::string head =
        out.arch.empty() ? std::string("cutlass gemm") : "cutlass gemm " + out.arch;
    out.brief = with_details(name == "CollectiveConv" ? "cutlass conv" : head, out);
    return true;
  }
  return false;
}

// CUTLASS 2: …MmaMultistage<GemmShape<128, 128, 32>, …half_t…>, stages last among the numbers.
bool read_gemm_shape(const NameParts& parts, KernelName& out) {
  const std::string_view whole = parts.whole;
  if (!starts_with(parts.name, "cutlass")) return false;
  const auto shape = arguments_of(whole, "GemmShape");
  if (shape.size() != 3) return false;
  for (std::string_view extent : shape) {
    if (argument_number(extent) == 0) return false;
    out.tile += fmt::format("{}{}", out.tile.empty() ? "" : "x", argument_number(extent));
  }
  // The first operand's type is the first one that the iterators name.
  struct Spelling {
    std::string_view word;
    std::string_view dtype;
  };
  constexpr Spelling kTypes[] = {{"cutlass::half_t", "f16"},
                                 {"cutlass::bfloat16_t", "bf16"},
                                 {"cutlass::tfloat32_t", "tf32"},
                                 {"cutlass::float_e4m3_t", "f8e4m3"}};
  std::size_t first = std::string_view::npos;
  for (const Spelling& type : kTypes) {
    const std::size_t at = whole.find(type.word);
    if (at < first) first = at, out.dtype = type.dtype;
  }
  const bool simt = whole.find("MmaSimt") != std::string_view::npos ||
                    whole.find("OpClassSimt") != std::string_view::npos;
  const bool tensor = whole.find("TensorOp") != std::string_view::npos;
  out.tensor = simt ? TensorCores::kNo : tensor ? TensorCores::kYes : TensorCores::kUnknown;
  out.arch = arch_in(whole);
  const std::string inner = without_namespaces(take_apart(trim(parts.arguments)).name);
  out.split_k = whole.find("SplitK") != std::string_view::npos;
  out.brief = with_details("cutlass " + (inner.empty() ? std::string("gemm") : inner), out);
  return true;
}

// deep_gemm::fp8_gemm_kernel<N, K, tile M, tile N, tile K, groups, …, stages, …>
bool read_deep_gemm(const NameParts& parts, KernelName& out) {
  if (!starts_with(parts.name, "deep_gemm::")) return false;
  if (parts.name.find("gemm", 11) == std::string::npos) return false;
  const std::string head = without_namespaces(parts.name);
  if (head.find("fp8") != std::string::npos) out.dtype = "f8e4m3";
  if (head.find("bf16") != std::string::npos) out.dtype = "bf16";
  if (head.find("fp4") != std::string::npos) out.dtype = "f4e2m1";
  out.accumulator = "f32";
  out.tensor = TensorCores::kYes;
  const auto arguments = split_arguments(parts.arguments);
  if (starts_with(head, "fp8_gemm_kernel") && arguments.size() >= 5 &&
      argument_number(arguments[2]) > 0)
    out.tile = fmt::format("{}x{}x{}", argument_number(arguments[2]), argument_number(arguments[3]),
                           argument_number(arguments[4]));
  out.brief = with_details("deep_gemm " + head, out);
  if (starts_with(head, "sm") && head.size() > 4)
    out.arch = "sm_" + head.substr(2, head.find('_') - 2);
  return true;
}

// ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm…<…>>: matrix instructions are "xdl" and "wmma".
bool read_composable_kernel(const NameParts& parts, KernelName& out) {
  if (!starts_with(parts.name, "ck::") && !starts_with(parts.name, "ck_tile::")) return false;
  for (std::string_view word : {"xdl", "Xdl", "wmma", "Wmma", "mxgemm"})
    if (parts.whole.find(word) != std::string_view::npos) out.tensor = TensorCores::kYes;
  struct Spelling {
    std::string_view word, dtype;
  };
  constexpr Spelling kTypes[] = {
      {"f8_fnuz_t", "f8e4m3"},      {"_Float16", "f16"},          {"__bf16", "bf16"},
      {"bhalf_t", "bf16"},          {"ck_tile::bf16_t", "bf16"},  {"ck_tile::fp16_t", "f16"},
      {"ck_tile::fp8_t", "f8e4m3"}, {"ck_tile::bf8_t", "f8e5m2"}, {"half_t", "f16"}};
  std::size_t first = std::string_view::npos;
  for (const Spelling& type : kTypes) {
    const std::size_t at = parts.whole.find(type.word);
    if (at < first) first = at, out.dtype = type.dtype;
  }
  std::string head = without_namespaces(parts.name);
  if (head == "kentry") {  // ck_tile's one entry: the argument says which kernel it is
    const auto arguments = split_arguments(parts.arguments);
    for (std::string_view argument : arguments)
      if (argument_number(argument) == 0) {
        head = without_namespaces(take_apart(argument).name);
        break;
      }
  }
  out.brief = with_details("ck " + head, out);
  return true;
}

// SageAttention: Q and K as 8-bit integers, P and V in a wider type.
bool read_sage(const NameParts& parts, KernelName& out) {
  if (parts.name.find("qk_int") == std::string::npos) return false;
  out.dtype = "i8";
  out.accumulator = "i32";
  out.tensor = TensorCores::kYes;
  out.brief = without_namespaces(parts.name);
  return true;
}

using TemplateReader = bool (*)(const NameParts& parts, KernelName& out);
constexpr TemplateReader kTemplateReaders[] = {
    read_flash_traits,
    [](const NameParts& parts, KernelName& out) { return read_flash_collective(parts.whole, out); },
    [](const NameParts& parts, KernelName& out) {
      return starts_with(parts.name, "cutlass") && read_collective_mma(parts.whole, out);
    },
    read_gemm_shape,
    read_deep_gemm,
    read_composable_kernel,
    read_sage,
};

}  // namespace

bool read_template_dialect(const NameParts& parts, KernelName& out) {
  for (TemplateReader reader : kTemplateReaders) {
    KernelName attempt = out;
    if (reader(parts, attempt)) {
      out = std::move(attempt);
      return true;
    }
  }
  return false;
}

bool read_dialect(const NameParts& parts, KernelName& out) {
  // cutlass::Kernel2<cutlass_80_tensorop_…>, cutlass__5x_cudnn::Kernel<…>: the argument is the
  // name.
  const bool wrapper =
      parts.name.find("::Kernel") != std::string::npos || ends_with(parts.name, "::device_kernel");
  if (starts_with(parts.name, "cutlass") && wrapper) {
    const std::string inner = without_namespaces(take_apart(parts.arguments).name);
    if (read_token_dialect(inner, out)) return true;
  }
  if (!parts.arguments.empty()) return read_template_dialect(parts, out);
  return read_token_dialect(without_namespaces(parts.name), out);
}

}  // namespace purlin::analyze
