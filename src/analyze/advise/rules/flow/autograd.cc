// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/flow/autograd.h"

#include "analyze/advise/rules/op_facts.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::string_view kUpdating[] = {"Optimizer.step#", "aten::_foreach_", "aten::_fused_",
                                          "aten::addcdiv_", "aten::sub_"};

// "aten::nll_loss_forward" and "NllLossBackward0" -> "nllloss"
std::string kind_of(std::string_view name) {
  if (starts_with(name, "aten::")) name.remove_prefix(6);
  if (starts_with(name, kBackwardNode)) name.remove_prefix(kBackwardNode.size());
  for (const std::string_view end : {"Backward", "_forward"})
    if (const std::size_t at = name.rfind(end); at != std::string_view::npos && at > 0)
      name = name.substr(0, at);
  std::string out;
  for (const char c : name)
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

class Counts {
 public:
  explicit Counts(const Timeline& timeline) : timeline_(timeline) {
    kinds_.reserve(timeline.names.size());
    for (const std::string& name : timeline.names) {
      const bool node = starts_with(name, kBackwardNode) &&
                        name.find("Backward", kBackwardNode.size()) != std::string::npos;
      const bool backward = starts_with(name, "autograd::engine");
      kinds_.push_back(
          {node || starts_with(name, "aten::") ? number_of(kind_of(name)) : kNone, node, backward});
    }
    count();
  }
  // The kind of the innermost op around this one that has nodes; kNone without one.
  std::uint32_t with_nodes(std::uint32_t op) const {
    int seen = 0;
    for (; op < timeline_.ops.size() && ++seen < kMostOpsAround; op = timeline_.ops[op].parent)
      if (const std::uint32_t found = kind(op); found != kNone && nodes_[found] > 0) return found;
    return kNone;
  }
  std::size_t without_nodes(std::uint32_t kind) const {
    return forward_[kind] > nodes_[kind] ? forward_[kind] - nodes_[kind] : 0;
  }

 private:
  struct Kind {
    std::uint32_t number = kNone;
    bool node = false, backward = false;
  };
  std::uint32_t number_of(std::string kind) {
    return numbers_.try_emplace(std::move(kind), static_cast<std::uint32_t>(numbers_.size()))
        .first->second;
  }
  const Kind& kind_at(std::uint32_t op) const {
    static constexpr Kind kOfNone;
    const std::uint32_t name = timeline_.ops[op].name;
    return name < kinds_.size() ? kinds_[name] : kOfNone;
  }
  std::uint32_t kind(std::uint32_t op) const { return kind_at(op).number; }
  void count() {
    nodes_.assign(numbers_.size(), 0);
    forward_.assign(numbers_.size(), 0);
    std::vector<bool> inside(timeline_.ops.size());  // a parent comes before its children
    for (std::uint32_t i = 0; i < timeline_.ops.size(); ++i) {
      const Kind& one = kind_at(i);
      const std::uint32_t parent = timeline_.ops[i].parent;
      inside[i] = one.backward || (parent < i && inside[parent]);
      if (one.number == kNone) continue;
      if (one.node)
        ++nodes_[one.number];
      else if (!inside[i] && !(parent < i && kind(parent) == one.number))
        ++forward_[one.number];
    }
  }

  const Timeline& timeline_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<Kind> kinds_;                   // by name
  std::vector<std::size_t> nodes_, forward_;  // by kind
};

}  // namespace

std::vector<const FlowWork*> with_backward_nodes(const Timeline& timeline,
                                                 const std::vector<const FlowWork*>& forward) {
  if (forward.empty()) return {};
  const Counts counts(timeline);
  std::map<std::uint32_t, std::vector<const FlowWork*>> by_kind;
  for (const FlowWork* work : forward)
    if (const std::uint32_t kind = counts.with_nodes(work->ops.front()); kind != kNone)
      by_kind[kind].push_back(work);
  std::vector<const FlowWork*> out;
  for (const auto& [kind, works] : by_kind) {
    std::size_t ops = 0;
    for (const FlowWork* work : works) ops += work->ops.size();
    if (ops > counts.without_nodes(kind)) out.insert(out.end(), works.begin(), works.end());
  }
  return out;
}

bool updates_weights(const Timeline& timeline) {
  return std::any_of(timeline.names.begin(), timeline.names.end(), [](const std::string& name) {
    return std::any_of(std::begin(kUpdating), std::end(kUpdating),
                       [&](std::string_view prefix) { return starts_with(name, prefix); });
  });
}

}  // namespace purlin::analyze
