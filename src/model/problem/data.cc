// SPDX-License-Identifier: Apache-2.0
// Look-ups by index, work on lists of tensors (optimizers, concatenation) and collectives.
#include "model/problem/rules.h"

#include <algorithm>

namespace purlin {
namespace {

std::optional<std::int64_t> total_of(const std::vector<Shape>& members) {
  std::int64_t out = 0;
  for (const Shape& member : members) {
    const auto elements = elements_of(member);
    if (!elements || !elements_of({out + *elements})) return std::nullopt;
    out += *elements;
  }
  return out;
}

// Indices are 64-bit unless their type says otherwise.
void add_index_size(Problem& out, std::string_view dtype) {
  const double size = bytes_per_element(dtype);
  if (size > 0 && size != 8)
    out.dimensions.push_back({"index_bytes", static_cast<std::int64_t>(size)});
}

}  // namespace

Problem read_embedding(const OpInputs& inputs, const OpRule& rule) {
  Problem out;
  out.op_class = rule.op_class;
  const int kind = rule.at[0];
  out.dtype = inputs.dtype(0);
  const Shape& table = inputs.shape(0);
  if (!inputs.elements(0)) return out;
  switch (kind) {
    case kLookup:
    case kBag: {
      const auto indices = elements_of(inputs.shape(1));
      if (table.size() != 2 || !indices || (!inputs.is_tensor(1))) return out;
      out.dimensions = {{"indices", *indices}, {"cols", table[1]}, {"rows", table[0]}};
      if (kind == kBag && inputs.elements(2))
        out.dimensions.push_back({"bags", *inputs.elements(2)});
      add_index_size(out, inputs.dtype(1));
      return out;
    }
    case kLookupBackward: {
      const auto indices = inputs.elements(1);
      if (!indices) return out;
      out.dimensions = {{"indices", *indices}, {"cols", table.back()}};
      if (const auto rows = inputs.integer(2); rows && *rows > 0)
        out.dimensions.push_back({"rows", *rows});
      add_index_size(out, inputs.dtype(1));
      out.dimensions.push_back({"backward", 1});
      return out;
    }
    case kIndexSelect: {
      const auto indices = inputs.elements(2);
      const auto axis = inputs.integer(1);
      const auto rank = static_cast<std::int64_t>(table.size());
      if (!indices || !axis || *axis < -rank || *axis >= rank) return out;
      const std::int64_t rows = table[static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis)];
      if (rows < 1) return out;
      out.dimensions = {
          {"indices", *indices}, {"cols", *inputs.elements(0) / rows}, {"rows", rows}};
      add_index_size(out, inputs.dtype(2));
      return out;
    }
    default: {  // kGather: an index for every element
      const auto indices = inputs.elements(2);
      if (!indices) return out;
      out.dimensions = {{"indices", *indices}, {"cols", 1}, {"rows", *inputs.elements(0)}};
      add_index_size(out, inputs.dtype(2));
      return out;
    }
  }
}

Problem read_lists(const OpInputs& inputs, const OpRule& rule) {
  Problem out;
  out.op_class = rule.op_class;
  // Only where all members were recorded: the first member's extents are not the list's.
  const std::vector<Shape>& first = inputs.members(0);
  const auto total = total_of(first);
  if (first.empty() || !total) return out;
  out.dtype = inputs.dtype(0);
  int read = 0, lists = 0;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i)
    if (inputs.members(i).size() == first.size() && total_of(inputs.members(i)) == total) ++lists;
  read = rule.at[0] > 0 ? std::min(rule.at[0], lists) : lists;
  // With a maximum of second moments (amsgrad) there is a list more to read and write.
  const bool more = rule.at[0] > 0 && lists > rule.at[0];
  out.dimensions = {{"n", *total},
                    {"inputs", read + (more ? 1 : 0)},
                    {"outputs", rule.at[1] + (more ? 1 : 0)},
                    {"tensors", static_cast<std::int64_t>(first.size())}};
  return out;
}

Problem read_concatenation(const OpInputs& inputs, const OpRule& rule) {
  Problem out;
  out.op_class = rule.op_class;
  out.dtype = inputs.dtype(0);
  const auto total = total_of(inputs.members(0));
  if (inputs.members(0).empty() || !total) return out;
  out.dimensions = {{"n", *total}, {"inputs", 1}};
  return out;
}

Problem communication_problem(std::int64_t sent, std::int64_t received, std::int64_t ranks,
                              std::string_view framework_dtype) {
  Problem out;
  out.op_class = "communication";
  out.dtype = dtype_of(framework_dtype);
  if (!elements_of({sent}) || !elements_of({received}) || (sent == 0 && received == 0)) return out;
  out.dimensions = {{"in", sent}, {"out", received}};
  if (ranks > 0) out.dimensions.push_back({"ranks", ranks});
  return out;
}

Problem read_collective(const OpInputs& inputs, const OpRule& rule) {
  Problem out;
  out.op_class = rule.op_class;
  const auto size_at = [&](int at) -> std::int64_t {
    if (at < 0) return 0;
    if (!inputs.members(at).empty()) return total_of(inputs.members(at)).value_or(0);
    return inputs.elements(at).value_or(0);
  };
  const std::int64_t sent = size_at(rule.at[0]), received = size_at(rule.at[1]);
  if (sent == 0 && received == 0) return out;
  out.dtype = inputs.dtype(rule.at[0]);
  out.dimensions = {{"in", sent}, {"out", received}};
  return out;
}

}  // namespace purlin
