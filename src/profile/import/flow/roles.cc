// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/roles.h"

#include "base/text.h"
#include "profile/import/flow/op_kinds.h"

#include <utility>

namespace purlin::profile::flow {
namespace {

// Which nodes are units, from the innermost outwards.
class Roles {
 public:
  explicit Roles(const ExecutionTrace& trace) : trace_(trace), roles_(trace.nodes.size()) {}

  std::vector<Role> find() {
    const std::size_t count = trace_.nodes.size();
    first_child_.assign(count, kNoIndex);
    next_.assign(count, kNoIndex);
    for (std::size_t i = count; i-- > 0;) {  // children come out in the order of their start
      const std::uint32_t parent = trace_.nodes[i].parent;
      if (parent == i) continue;
      next_[i] = first_child_[parent];
      first_child_[parent] = static_cast<std::uint32_t>(i);
    }
    written_.resize(count);
    open_.resize(count);
    in_op_.assign(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const TraceNode& parent = trace_.nodes[trace_.nodes[i].parent];
      if (trace_.nodes[i].parent != i && (parent.is_op() || parent.scope == 0))
        in_op_[i] = parent.is_op() ? 1 : in_op_[trace_.nodes[i].parent];
    }
    for (std::size_t i = count; i-- > 0;) roles_[i] = role_of(static_cast<std::uint32_t>(i));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t parent = trace_.nodes[i].parent;
      if (parent != i && (roles_[parent] == Role::kUnit || roles_[parent] == Role::kInside ||
                          roles_[parent] == Role::kView || roles_[parent] == Role::kAllocation))
        roles_[i] = Role::kInside;
    }
    return std::move(roles_);
  }

 private:
  Role role_of(std::uint32_t index) {
    const TraceNode& node = trace_.nodes[index];
    const std::string_view name = trace_.name(node);
    gather(index);
    if (!node.is_op()) {
      if (name == kAccumulateNode) return Role::kAccumulate;
      if (is_python_function(index)) return Role::kReader;
      return is_unknown_work(index) ? unit(index) : Role::kFrame;
    }
    if (is_allocation(name) || (is_metadata(name) && moves(node))) {
      written_[index].clear();
      open_[index].clear();
      for (const TensorUse& output : trace_.outputs(node))
        if (output.storage != 0) open_[index].push_back(output.storage);
      std::sort(open_[index].begin(), open_[index].end());
      return Role::kAllocation;
    }
    if (!starts_with(name, "aten::")) return unit(index);
    if (is_metadata(name)) return Role::kView;
    if (gives_to_host(name) || is_batch_norm(name)) return unit(index);
    const std::vector<std::uint32_t> results = results_of(node);
    if (results.empty() && first_child_[index] == kNoIndex) return Role::kView;
    const bool done_inside =
        open_[index].empty() &&
        std::all_of(results.begin(), results.end(), [&](std::uint32_t storage) {
          return std::binary_search(written_[index].begin(), written_[index].end(), storage);
        });
    if (done_inside) return written_[index].empty() && results.empty() ? view(index) : Role::kFrame;
    return unit(index);
  }

  // Gives a tensor other memory, as resize_ does.
  bool moves(const TraceNode& node) const {
    const Storages given(trace_.inputs(node));
    const auto outputs = trace_.outputs(node);
    return std::any_of(outputs.begin(), outputs.end(), [&](const TensorUse& output) {
      return output.storage != 0 && !given.has(output);
    });
  }

  Role view(std::uint32_t index) {
    // Inside, the host may take a value.
    for (std::uint32_t child = first_child_[index]; child != kNoIndex; child = next_[child])
      if (roles_[child] != Role::kView) return Role::kFrame;
    return Role::kView;
  }

  Role unit(std::uint32_t index) {
    written_[index] = results_of(trace_.nodes[index]);
    std::sort(written_[index].begin(), written_[index].end());
    open_[index].clear();
    return Role::kUnit;
  }

  // A launch of a compiled kernel, or a node that says what it reads and is part of no op.
  bool is_unknown_work(std::uint32_t index) const {
    const TraceNode& node = trace_.nodes[index];
    if (node.kernel) return true;
    return node.scope == 0 && node.inputs + node.outputs > 0 && in_op_[index] == 0 &&
           first_child_[index] == kNoIndex;
  }

  // torch.autograd.Function, forward or backward, which may launch kernels of any origin. PyTorch's
  // own nodes have a number: MulBackward0.
  bool is_python_function(std::uint32_t index) const {
    const TraceNode& node = trace_.nodes[index];
    if (node.kernel || node.inputs == 0 || in_op_[index] != 0) return false;
    return node.scope == 0
               ? first_child_[index] != kNoIndex
               : node.scope == kBackwardScope && ends_with(trace_.name(node), "Backward");
  }

  // Storages that the op's own schema says it gives a value to.
  std::vector<std::uint32_t> results_of(const TraceNode& node) const {
    std::vector<std::uint32_t> results;
    const std::span<const TensorUse> inputs = trace_.inputs(node);
    for (const TensorUse& input : inputs)
      if (input.storage != 0 && trace_.schemas[node.schema].writes(input.argument))
        results.push_back(input.storage);
    const Storages given(inputs);
    for (const TensorUse& output : trace_.outputs(node))
      if (output.storage != 0 && !given.has(output)) results.push_back(output.storage);
    return results;
  }

  // What the children wrote, and memory of theirs that none of them wrote to. A parent takes it
  // over; ranges and threads ask for none of it.
  void gather(std::uint32_t index) {
    std::vector<std::uint32_t>&written = written_[index], &open = open_[index];
    const bool keep = trace_.nodes[index].is_op();
    for (std::uint32_t child = first_child_[index]; child != kNoIndex; child = next_[child]) {
      if (keep) {
        take(written_[child], written);
        take(open_[child], open);
      }
      written_[child] = {};
      open_[child] = {};
    }
    for (std::vector<std::uint32_t>* list : {&written, &open}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](std::uint32_t storage) {
                                return std::binary_search(written.begin(), written.end(), storage);
                              }),
               open.end());
  }

  static void take(std::vector<std::uint32_t>& from, std::vector<std::uint32_t>& into) {
    if (into.empty())
      into.swap(from);
    else
      into.insert(into.end(), from.begin(), from.end());
  }

  const ExecutionTrace& trace_;
  std::vector<Role> roles_;
  std::vector<std::uint32_t> first_child_, next_;
  std::vector<std::vector<std::uint32_t>> written_, open_;  // sorted
  std::vector<char> in_op_;
};

}  // namespace

std::vector<Role> find_roles(const ExecutionTrace& trace) { return Roles(trace).find(); }

}  // namespace purlin::profile::flow
