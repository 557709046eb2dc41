// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/touch.h"

#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

double extent(const Problem& problem, std::string_view name) {
  return static_cast<double>(std::max<std::int64_t>(0, problem[name]));
}

void touch_product(const Problem& problem, Touch& out) {
  out.batch = std::max(1.0, extent(problem, "B"));
  out.m = extent(problem, "M");
  out.columns = extent(problem, "N");
  out.depth = extent(problem, "K");
  if (out.m <= 0 || out.columns <= 0 || out.depth <= 0) return;
  out.kind = TouchKind::kProduct;
  out.n = out.out = out.batch * out.m * out.columns;
  out.weights = out.batch * out.depth * out.columns;
  out.read = out.in_size * out.batch * out.depth * (out.m + out.columns);
  out.written = out.in_size * out.out;
}

void touch_convolution(const Problem& problem, Touch& out) {
  const auto factor = [&](std::string_view name) { return std::max(1.0, extent(problem, name)); };
  const double filter = factor("R") * factor("S") * factor("T");
  out.columns = extent(problem, "K");
  out.depth = extent(problem, "C") / factor("groups") * filter;
  out.weights = out.columns * out.depth;
  if (problem["gradients"] > 0 || problem["transposed"] > 0) return;
  out.m = extent(problem, "N") * factor("Z") * extent(problem, "P") * extent(problem, "Q");
  out.n = out.out = out.m * out.columns;
  const double image = extent(problem, "N") * extent(problem, "C") * factor("D") *
                       extent(problem, "H") * extent(problem, "W");
  out.read = out.in_size * (image + out.weights);
  out.written = out.in_size * out.out;
}

void touch_pointwise(const Problem& problem, Touch& out) {
  out.n = out.out = extent(problem, "n");
  const double in = extent(problem, "in");
  const double inputs = std::max(1.0, extent(problem, "inputs"));
  out.written = out.n * out.in_size;
  out.read = out.in_size * (in > 0 ? in : inputs * out.n);
  if (out.n <= 0 || problem["write"] > 0) out.written = extent(problem, "write");
  if (problem["read"] > 0) out.read = extent(problem, "read");
  // A broadcast input holds fewer elements; what it adds is not a whole one.
  out.inputs = out.n > 0 ? std::floor(out.read / (out.in_size * out.n)) : 0;
  if (out.n > 0) out.kind = TouchKind::kPointwise;
}

void touch_reduction(const Problem& problem, Touch& out) {
  out.n = extent(problem, "n");
  out.out = std::max(1.0, extent(problem, "out"));
  if (out.n <= 0) return;
  out.kind = TouchKind::kReduction;
  out.read = problem["read"] > 0 ? extent(problem, "read") : out.n * out.in_size;
  out.written = problem["write"] > 0 ? extent(problem, "write") : out.out * out.in_size;
}

void touch_norm(const Problem& problem, Touch& out) {
  out.n = extent(problem, "n");
  if (out.n <= 0) out.n = extent(problem, "rows") * extent(problem, "cols");
  if (out.n <= 0) return;
  out.kind = TouchKind::kNorm;
  out.out = out.n;
  out.backward = problem["backward"] > 0;
  out.read =
      problem["read"] > 0 ? extent(problem, "read") : out.n * out.in_size * (out.backward ? 2 : 1);
  out.written = problem["write"] > 0 ? extent(problem, "write") : out.n * out.in_size;
}

// Of an op whose inputs' extents alone are known, "4194304x4,0": elements of the largest, and how
// many inputs have as many. An output that is passed along, not yet allocated, has none.
Problem by_extents(std::string_view shape) {
  std::int64_t most = 0, inputs = 0;
  for (const std::string& input : split(std::string(shape), ',')) {
    std::int64_t elements = 1;
    for (const std::string& extent : split(input, 'x')) {
      const auto number = parse_int(extent);
      if (!number || *number < 0) return {};
      elements *= *number;
    }
    if (elements > most) most = elements, inputs = 0;
    inputs += elements == most ? 1 : 0;
  }
  Problem out;
  if (most > 1) out.dimensions = {{"n", most}, {"inputs", inputs}};
  return out;
}

constexpr std::string_view kOrderingOps[] = {"aten::sort",    "aten::argsort", "aten::topk",
                                             "aten::cumsum",  "aten::cumprod", "aten::bincount",
                                             "aten::unique2", "aten::kthvalue"};
constexpr std::string_view kOrderingNames[] = {
    "RadixSort", "radix_sort", "bitonic", "DeviceScan", "scan_innermost", "scan_outer", "TopK"};

}  // namespace

bool orders_elements(const KernelStat& stat) {
  return std::find(std::begin(kOrderingOps), std::end(kOrderingOps), stat.op) !=
             std::end(kOrderingOps) ||
         std::any_of(
             std::begin(kOrderingNames), std::end(kOrderingNames),
             [&](std::string_view word) { return stat.name.full.find(word) != std::string::npos; });
}

Touch touch_of(const KernelRow& row, const KernelStat& stat) {
  Touch out;
  Problem problem;
  problem.dimensions = dimensions_from_text(row.shape);
  const std::string_view c = stat.name.op_class;
  // Nsight Systems records shapes without types. The name of a conversion has one of its two.
  const std::string_view named =
      stat.name.dtype == "tf32" ? "f32" : std::string_view(stat.name.dtype);
  out.in_size = bytes_per_element(!row.dtype.empty() || c == "copy" ? row.dtype : named);
  if (problem.empty() && c == "elementwise" &&
      stat.name.full.find("FillFunctor") == std::string::npos)
    problem = by_extents(row.shape);
  if (problem.empty() || out.in_size <= 0) return out;
  if (c == "gemm" && problem["R"] > 0) {  // a convolution that is computed as a product
    out.kind = TouchKind::kOther;
    touch_convolution(problem, out);
  } else if (c == "gemm") {
    touch_product(problem, out);
  } else if (c == "elementwise" || c == "copy") {
    touch_pointwise(problem, out);
  } else if (stat.name.full.find("roll_cuda_kernel") != std::string::npos) {
    touch_pointwise(problem, out);  // a compiler reads at the moved index
  } else if (orders_elements(stat)) {
    out.kind = TouchKind::kOther;
  } else if (c == "reduction") {
    touch_reduction(problem, out);
  } else if (c == "softmax" || c == "norm") {
    touch_norm(problem, out);
  } else {
    out.kind = TouchKind::kOther;
    if (c == "conv") touch_convolution(problem, out);
  }
  out.compares = out.kind == TouchKind::kPointwise && out.out_size() < out.in_size;
  return out;
}

double padded_extent(double extent, const Touch& product, double bytes) {
  const double step = product.in_size > 0 ? bytes / product.in_size : 1;
  return std::ceil(extent / step) * step;
}

double tile_intensity(double rows, double columns, double element_bytes) {
  return 2 / (element_bytes * (1 / rows + 1 / columns));
}

std::string misaligned_extent(const Touch& product, double bytes) {
  if (product.kind != TouchKind::kProduct) return "";
  for (const auto& [name, extent] :
       {std::pair{"K", product.depth}, std::pair{"N", product.columns}, std::pair{"M", product.m}})
    if (padded_extent(extent, product, bytes) != extent)
      return fmt::format("{}={:.0f} is not a multiple of {:.0f}", name, extent,
                         bytes / product.in_size);
  return "";
}

}  // namespace purlin::analyze
