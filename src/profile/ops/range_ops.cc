// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/range_ops.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxShape = 256;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "aten::mm": two names and the colons of an operator's schema, in a namespace PyTorch dispatches.
bool is_operator(std::string_view text) {
  const std::size_t colons = text.find("::");
  if (colons == 0 || colons == std::string_view::npos || colons + 2 >= text.size()) return false;
  const std::string_view space = text.substr(0, colons), rest = text.substr(colons + 2);
  constexpr std::array<std::string_view, 6> kSpaces = {"aten",  "prims",     "c10d",
                                                       "torch", "quantized", "torchvision"};
  return std::find(kSpaces.begin(), kSpaces.end(), space) != kSpaces.end() &&
         std::all_of(rest.begin(), rest.end(), [](char c) { return is_name(c) || c == '.'; });
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "step 12", "Iteration:3", "iter_7": a word for a step, and a number.
bool is_step(std::string_view text) {
  if (starts_with(text, "ProfilerStep#")) return true;
  if (text.size() > 64) return false;
  std::size_t digits = text.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(text[digits - 1])) != 0) --digits;
  if (digits == text.size()) return false;
  std::string_view word = text.substr(0, digits);
  while (!word.empty() && !is_name(word.back())) word.remove_suffix(1);
  while (!word.empty() && word.back() == '_') word.remove_suffix(1);
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 8> kWords = {
      "step",          "iteration",  "iter",          "train_step",
      "training_step", "train step", "training step", "batch"};
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

}  // namespace

std::optional<RangeOp> op_of_range(std::string_view name) {
  const bool marked =
      contains(name, ", seq = ") || contains(name, ", sizes = [") || contains(name, ", op_id = ");
  if (!marked && !is_operator(name)) return std::nullopt;
  const NvtxOp read = op_from_nvtx(name);
  RangeOp op;
  op.name = read.op;
  const Problem problem = problem_of(read.op, read.inputs);
  op.dtype = problem.dtype;
  op.shape = to_text(problem.dimensions);
  if (constexpr std::string_view kSizes = ", sizes = "; op.shape.empty()) {
    const std::size_t sizes = name.find(kSizes);
    if (sizes != std::string_view::npos) {
      std::string_view list = name.substr(sizes + kSizes.size());
      list = list.substr(0, list.find("]], "));
      if (list.size() <= kMaxShape && list.find_first_of("0123456789") != std::string_view::npos)
        op.shape = std::string(list) + (ends_with(list, "]]") ? "" : "]]");
    }
  }
  return op;
}

RangeKind kind_of_range(std::string_view name, std::string_view domain) {
  if (is_step(name)) return RangeKind::kStep;
  if (contains(name, "DataLoader") || contains(name, "dataloader")) return RangeKind::kDataLoader;
  if (domain == "NCCL" || starts_with(name, "nccl:") || starts_with(name, "ncclAll") ||
      starts_with(name, "c10d::"))
    return RangeKind::kCommunication;
  return RangeKind::kUser;
}

}  // namespace purlin::profile
