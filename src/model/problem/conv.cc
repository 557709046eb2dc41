// SPDX-License-Identifier: Apache-2.0
// Convolutions in one, two and three dimensions, forward, backward and transposed.
#include "model/problem/rules.h"

#include <algorithm>

namespace purlin {
namespace {

constexpr std::size_t kMaxSpatial = 3;

// Names of the extents, innermost last: image, filter, result. As cuDNN's and CUTLASS's NDHWC,
// KTRSC, NZPQK.
struct Axis {
  const char *image, *filter, *result;
};
constexpr Axis kAxes[kMaxSpatial] = {{"D", "T", "Z"}, {"H", "R", "P"}, {"W", "S", "Q"}};

struct Spatial {
  std::optional<Shape> stride, padding, dilation;
};

// One number per spatial extent; one for all is repeated.
std::optional<Shape> per_axis(std::optional<Shape> values, std::size_t axes) {
  if (!values || values->empty()) return std::nullopt;
  if (values->size() == 1) values->resize(axes, values->front());
  if (values->size() != axes) return std::nullopt;
  for (std::int64_t value : *values)
    if (value < 0 || value > (1 << 20)) return std::nullopt;
  return values;
}

std::optional<Shape> result_shape(const Shape& image, const Shape& filter, const Spatial& how) {
  if (!how.stride || !how.padding || !how.dilation) return std::nullopt;
  Shape out;
  for (std::size_t i = 0; i < image.size(); ++i) {
    const std::int64_t reach = (*how.dilation)[i] * (filter[i] - 1) + 1;
    const std::int64_t room = image[i] + 2 * (*how.padding)[i] - reach;
    if ((*how.stride)[i] < 1 || room < 0) return std::nullopt;
    out.push_back(room / (*how.stride)[i] + 1);
  }
  return out;
}

// The other way round: what a transposed convolution makes of its input.
std::optional<Shape> image_shape(const Shape& result, const Shape& filter, const Spatial& how,
                                 const std::optional<Shape>& output_padding) {
  if (!how.stride || !how.padding || !how.dilation || !output_padding) return std::nullopt;
  Shape out;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto steps = elements_of({std::max<std::int64_t>(0, result[i] - 1), (*how.stride)[i]});
    if (!steps) return std::nullopt;
    out.push_back(*steps - 2 * (*how.padding)[i] + (*how.dilation)[i] * (filter[i] - 1) +
                  (*output_padding)[i] + 1);
    if (out.back() < 1) return std::nullopt;
  }
  return out;
}

bool plausible(const Shape& shape) { return elements_of(shape).value_or(0) > 0 || shape.empty(); }

// "stride=2", or "stride_H=2,stride_W=1" where the axes differ; the default is not mentioned.
void add_settings(Problem& out, const char* name, const std::optional<Shape>& values,
                  std::int64_t usual) {
  if (!values) return;
  bool same = true;
  for (std::int64_t value : *values) same = same && value == values->front();
  if (same) {
    if (values->front() != usual) out.dimensions.push_back({name, values->front()});
    return;
  }
  for (std::size_t i = 0; i < values->size(); ++i)
    out.dimensions.push_back(
        {std::string(name) + "_" + kAxes[kMaxSpatial - values->size() + i].image, (*values)[i]});
}

void add_extents(Problem& out, const Shape& extents, const char* Axis::*name) {
  // A 1-D convolution is a 2-D one of height 1.
  if (extents.size() == 1) out.dimensions.push_back({kAxes[1].*name, 1});
  for (std::size_t i = 0; i < extents.size(); ++i)
    out.dimensions.push_back({kAxes[kMaxSpatial - extents.size() + i].*name, extents[i]});
}

}  // namespace

Problem read_convolution(const OpInputs& inputs, const OpRule& rule) {
  const auto [input_at, weight_at, gradient_at, stride_at, padding_at, dilation_at, groups_at,
              transposed_at, mask_at, kind] = rule.at;
  Problem out;
  out.op_class = "conv";
  out.dtype = inputs.dtype(gradient_at >= 0 ? gradient_at : input_at);
  Shape input = inputs.shape(input_at), gradient = inputs.shape(gradient_at);
  const Shape& weight = inputs.shape(weight_at);
  if (input.size() + 1 == weight.size()) input.insert(input.begin(), 1);  // no batch
  const std::size_t rank = weight.size();
  if (rank < 3 || rank > kMaxSpatial + 2 || !plausible(weight) || !plausible(input) ||
      !plausible(gradient))
    return out;
  const bool has_input = input.size() == rank, has_gradient = gradient.size() == rank;
  if (!has_input && !has_gradient) return out;
  const std::size_t axes = rank - 2;
  const std::optional<std::int64_t> recorded_groups = inputs.integer(groups_at);
  const std::int64_t groups = std::max<std::int64_t>(1, recorded_groups.value_or(1));
  if (!elements_of({weight[1], groups})) return out;
  const bool transposed = kind == kTransposedOp || inputs.flag(transposed_at).value_or(false);
  Spatial how;
  how.stride = per_axis(inputs.list(stride_at), axes);
  how.padding = per_axis(inputs.list(padding_at), axes);
  how.dilation = per_axis(inputs.list(dilation_at), axes);
  const Shape filter(weight.begin() + 2, weight.end());
  const auto spatial = [](const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); };

  // A transposed convolution is the gradient of the convolution in the other direction: its input
  // is that convolution's result.
  Shape image, result;
  if (!transposed) {
    if (has_input) image = spatial(input);
    if (has_gradient) {
      result = spatial(gradient);
    } else {
      result = result_shape(image, filter, how).value_or(Shape{});
    }
  } else {
    if (has_input) result = spatial(input);
    if (has_gradient) {
      image = spatial(gradient);
    } else {
      const int at = transposed_at >= 0 ? transposed_at + 1 : mask_at;
      image = image_shape(result, filter, how, per_axis(inputs.list(at), axes)).value_or(Shape{});
    }
  }
  const std::int64_t batch = has_input ? input[0] : gradient[0];
  const std::int64_t channels = weight[1] * groups;
  if (has_input && (transposed ? weight[0] : channels) != input[1] && recorded_groups) return out;
  // Where groups were not recorded the input's channels tell them.
  std::int64_t known_groups = groups;
  if (!recorded_groups && has_input && !transposed && weight[1] > 0 && input[1] % weight[1] == 0)
    known_groups = input[1] / weight[1];

  out.dimensions.push_back({"N", batch});
  out.dimensions.push_back({"C", weight[1] * known_groups});
  add_extents(out, image, &Axis::image);
  out.dimensions.push_back({"K", weight[0]});
  add_extents(out, filter, &Axis::filter);
  add_extents(out, result, &Axis::result);
  if (known_groups != 1) out.dimensions.push_back({"groups", known_groups});
  add_settings(out, "stride", how.stride, 1);
  add_settings(out, "padding", how.padding, 0);
  add_settings(out, "dilation", how.dilation, 1);
  if (transposed) out.dimensions.push_back({"transposed", 1});
  if (kind == kBackward || kind == kOneGradient) {
    // Of input and weight; that of the bias is a small reduction.
    std::int64_t gradients = kind == kBackward ? 2 : 1;
    if (const auto mask = inputs.list(mask_at); mask && mask->size() >= 2)
      gradients = ((*mask)[0] != 0) + ((*mask)[1] != 0);
    out.dimensions.push_back({"gradients", gradients});
  }
  return out;
}

}  // namespace purlin
