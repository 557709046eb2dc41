// SPDX-License-Identifier: Apache-2.0
// What works along rows: normalisation, softmax, reduction, pooling.
#include "model/problem/rules.h"

#include <algorithm>

namespace purlin {
namespace {

Problem empty_problem(const OpInputs& inputs, const OpRule& rule) {
  Problem out;
  out.op_class = rule.op_class;
  out.dtype = inputs.dtype(rule.at[0]);
  return out;
}

std::optional<std::size_t> axis_of(std::int64_t index, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (index < -rank || index >= rank) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + rank : index);
}

}  // namespace

Problem read_norm(const OpInputs& inputs, const OpRule& rule) {
  const auto [input_at, kind, size_at, weight_at, bias_at, backward, written, u7, u8, u9] = rule.at;
  (void)u7, (void)u8, (void)u9;
  Problem out = empty_problem(inputs, rule);
  const Shape& shape = inputs.shape(input_at);
  const auto elements = inputs.elements(input_at);
  if (!elements || *elements < 1) return out;
  std::int64_t rows = 0;  // each with separate statistics
  if (kind == kBatchNorm) {
    rows = shape.size() > 1 ? shape[1] : shape[0];
  } else if (kind == kGroupNorm || kind == kNativeGroupNorm) {
    const auto groups = inputs.integer(size_at);
    rows = groups ? elements_of({shape[0], *groups}).value_or(0) : 0;
  } else {
    std::int64_t columns = shape.back();
    if (const auto size = inputs.list(size_at); size && !size->empty()) {
      columns = elements_of(*size).value_or(0);
    } else if (const auto weights = inputs.elements(weight_at)) {
      columns = *weights;
    }
    if (columns > 0 && *elements % columns == 0) rows = *elements / columns;
  }
  if (rows < 1 || *elements % rows != 0) return out;
  const std::int64_t parameters =
      inputs.elements(weight_at).value_or(0) + inputs.elements(bias_at).value_or(0);
  out.dimensions = {{"rows", rows}, {"cols", *elements / rows}};
  if (parameters > 0) out.dimensions.push_back({"params", parameters});
  if (kind == kRmsNorm) out.dimensions.push_back({"rms", 1});
  if (written == 2) {  // adds the residual in passing: two read, two written
    const double bytes = 2 * bytes_per_element(out.dtype) * static_cast<double>(*elements);
    if (bytes > 0) {
      out.dimensions.push_back({"read", static_cast<std::int64_t>(bytes)});
      out.dimensions.push_back({"write", static_cast<std::int64_t>(bytes)});
    }
  }
  if (backward != 0) out.dimensions.push_back({"backward", 1});
  return out;
}

Problem read_softmax(const OpInputs& inputs, const OpRule& rule) {
  Problem out = empty_problem(inputs, rule);
  const Shape& shape = inputs.shape(rule.at[0]);
  const auto elements = inputs.elements(rule.at[0]);
  if (!elements) return out;
  const auto index = inputs.integer(rule.at[1]);
  const auto axis = index ? axis_of(*index, shape) : std::nullopt;
  if (axis && shape[*axis] > 0) {
    out.dimensions = {{"rows", *elements / shape[*axis]}, {"cols", shape[*axis]}};
  } else {
    out.dimensions = {{"n", *elements}};  // along which axis was not recorded
  }
  if (rule.at[2] != 0) out.dimensions.push_back({"backward", 1});
  return out;
}

Problem read_reduction(const OpInputs& inputs, const OpRule& rule) {
  Problem out = empty_problem(inputs, rule);
  const Shape& shape = inputs.shape(rule.at[0]);
  const auto elements = inputs.elements(rule.at[0]);
  if (!elements) return out;
  out.dimensions = {{"n", *elements}};
  const int at = rule.at[1];
  std::optional<std::int64_t> results;
  if (at == -2) {
    results = elements;  // a scan: as many as there are inputs
  } else if (at == -1 || inputs.is_none(at) ||
             (static_cast<int>(inputs.size()) == 1 && !inputs.dtype(rule.at[0]).empty())) {
    results = 1;
  } else if (const auto axes = inputs.list(at)) {
    results = elements;
    if (axes->empty()) results = 1;
    std::vector<bool> reduced(shape.size(), false);
    for (std::int64_t index : *axes) {
      const auto axis = axis_of(index, shape);
      if (!axis || reduced[*axis] || shape[*axis] < 1) {
        results.reset();
        break;
      }
      reduced[*axis] = true;
      *results /= shape[*axis];
    }
  }
  if (results) out.dimensions.push_back({"out", *results});
  return out;
}

Problem read_transform(const OpInputs& inputs, const OpRule& rule) {
  Problem out = empty_problem(inputs, rule);
  const Shape& shape = inputs.shape(rule.at[0]);
  const auto elements = inputs.elements(rule.at[0]);
  const auto axes = inputs.list(rule.at[1]);
  if (!elements || *elements < 1 || !axes || axes->empty()) return out;
  std::vector<bool> used(shape.size(), false);
  std::int64_t length = 1, batch = *elements;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const auto axis = axis_of((*axes)[i], shape);
    if (!axis || used[*axis] || shape[*axis] < 1) return out;
    used[*axis] = true;
    batch /= shape[*axis];
    // Of a real result, the input has only half of the last extent.
    if (rule.at[2] >= 0 && i + 1 == axes->size()) {
      const auto last = inputs.integer(rule.at[2]);
      if (!last || *last < 1 || *last > 2 * shape[*axis]) return out;
      length *= *last;
    } else {
      length *= shape[*axis];
    }
  }
  if (batch > 1) out.dimensions.push_back({"B", batch});
  out.dimensions.push_back({"n", length});
  if (rule.at[3] != 0) out.dimensions.push_back({"real", 1});
  return out;
}

Problem read_pooling(const OpInputs& inputs, const OpRule& rule) {
  Problem out = empty_problem(inputs, rule);
  const Shape& shape = inputs.shape(rule.at[0]);
  const auto elements = inputs.elements(rule.at[0]);
  if (!elements) return out;
  out.dimensions = {{"n", *elements}};
  const auto kernel = inputs.list(rule.at[1]);
  const int kind = rule.at[4];
  if (!kernel || kernel->empty() || kernel->size() >= shape.size()) return out;
  const std::size_t axes = kernel->size();
  Shape result(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(axes));
  if (kind == kAdaptivePool) {
    result.insert(result.end(), kernel->begin(), kernel->end());
  } else {
    const auto padding = inputs.list(rule.at[3]);
    auto stride = inputs.list(rule.at[2]);
    if (stride && stride->empty()) stride = kernel;
    if (!padding || !stride || padding->size() != axes || stride->size() != axes) return out;
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t extent = shape[shape.size() - axes + i];
      const std::int64_t pad = (*padding)[i], step = (*stride)[i], window = (*kernel)[i];
      if (pad < 0 || pad > (1 << 20) || step < 1 || window < 1 || extent + 2 * pad < window)
        return out;
      result.push_back((extent + 2 * pad - window) / step + 1);
    }
  }
  if (const auto results = elements_of(result)) out.dimensions.push_back({"out", *results});
  return out;
}

}  // namespace purlin
