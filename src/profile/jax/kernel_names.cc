// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/kernel_names.h"

#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

namespace purlin::profile {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

}  // namespace

bool is_library_kernel(std::string_view name) {
  if (has_any(name, {"gemm_fusion", "stream_executor"})) return false;
  return has_any(name, {"nvjet", "cublas", "cudnn", "cutlass", "xmma", "gemm", "Gemm", "conv",
                        "Conv", "nhwc", "nchw", "splitK", "wgrad", "dgrad", "fprop"});
}

bool is_helper(std::string_view name) {
  return has_any(name, {"splitK", "execute_split_k", "ReduceSplit", "educe_kernel", "workspace",
                        "Padding", "ToNhwc", "ToNchw", "transpose_readWrite", "offset"});
}

// nvjet names operands by letters.
std::string_view dtype_by_name(std::string_view name) {
  const std::size_t nvjet = name.find("nvjet_");
  if (nvjet != std::string_view::npos) {
    const std::size_t at = name.find('_', nvjet + 6);
    if (at == std::string_view::npos || at + 1 >= name.size()) return "";
    const char operand = name[at + 1];
    return operand == 't' ? "bf16" : operand == 'h' ? "f16" : operand == 's' ? "f32" : "";
  }
  if (has_any(name, {"bf16", "bfloat16"})) return "bf16";
  return "";
}

bool is_mark(std::string_view op) {
  return starts_with(op, "Thunk:#") || starts_with(op, "XlaModule:#");
}

std::string_view marked(std::string_view op, std::string_view key) {
  const std::size_t at = is_mark(op) ? op.find(key) : std::string_view::npos;
  if (at == std::string_view::npos) return "";
  const std::string_view value = op.substr(at + key.size());
  return value.substr(0, std::min(value.find_first_of(",#"), value.size()));
}

}  // namespace purlin::profile
