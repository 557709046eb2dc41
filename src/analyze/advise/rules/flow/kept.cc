// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/flow/kept.h"

#include "analyze/advise/rules/flow/place.h"
#include "base/text.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

// How a result is kept, by an op that makes it or is around it.
struct Kept {
  std::string_view ops;  // separated by '|'
  std::string_view how;
  bool in_step = true;  // also where only the step has it more than once
};
constexpr Kept kKept[] = {
    {"aten::_weight_norm|aten::_weight_norm_interface|aten::norm_except_dim",
     "PyTorch: torch.nn.utils.parametrize.remove_parametrizations(layer, \"weight\"), or "
     "torch.nn.utils.remove_weight_norm(layer), once before inference",
     false},
    {"aten::_to_copy|aten::to",
     "PyTorch: keep the weights in the type of the products, model.to(torch.bfloat16) once, "
     "instead of autocast or a cast for each use"},
    {"aten::contiguous|aten::clone",
     "PyTorch: store the tensor in the layout that is read: .t().contiguous() once, as a parameter "
     "or buffer",
     false},
    {"aten::cos|aten::sin|aten::arange|aten::linspace|aten::triu|aten::tril|aten::eye|"
     "aten::one_hot|aten::full|aten::ones|aten::zeros|aten::fill_|aten::zero_",
     "PyTorch: self.register_buffer(name, table, persistent=False) for tables, masks and "
     "constants"},
    {"aten::mm|aten::addmm|aten::bmm|aten::matmul|aten::addmm_",
     "a product of weights alone: merge it once, as merge_and_unload of PEFT does for adapters",
     false},
    {"aten::round|aten::clamp|aten::quantize_per_tensor|aten::quantize_per_channel|"
     "aten::fake_quantize_per_tensor_affine|aten::dequantize",
     "quantise or expand the weights once, and keep the result"},
    {"aten::embedding|aten::index_select|aten::index|aten::gather",
     "look the same rows up once, and keep them"},
};

}  // namespace

std::vector<std::string> ways_to_keep(const Walk& walk, const FlowWorks& works, bool in_step) {
  const Timeline& timeline = walk.facts().profile->timeline;
  std::map<std::string_view, double> ways;
  for (const FlowWork* work : works) {
    const std::vector<std::string_view> names = names_around(timeline, work->ops.front());
    for (const Kept& kept : kKept) {
      const auto ops = split(kept.ops, '|');
      if (in_step && !kept.in_step) continue;
      if (std::none_of(ops.begin(), ops.end(), [&](const std::string& op) {
            return std::find(names.begin(), names.end(), op) != names.end();
          }))
        continue;
      ways[kept.how] += time_of(walk, *work);
      break;
    }
  }
  std::vector<std::pair<double, std::string_view>> sorted;
  for (const auto& [how, ns] : ways) sorted.emplace_back(-ns, how);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> out;
  for (const auto& [ns, how] : sorted) out.emplace_back(how);
  return out;
}

}  // namespace purlin::analyze
