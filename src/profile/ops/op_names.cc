// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/op_names.h"

#include "base/text.h"
#include "model/problem/problem.h"
#include "profile/ops/host_links.h"
#include "profile/ops/range_ops.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::profile {
namespace {

constexpr char kInside = '\x1f';                     // between the names of ops, outermost first
constexpr std::string_view kProduct = ", shape = ";  // what a library was asked for

struct Named {
  std::string op, shape, dtype;
};

// The op that says what is computed is the innermost whose inputs were recorded and are a problem;
// as importers have it (chrome/rows.cc).
std::optional<Named> problem_in(const std::vector<std::string>& chain) {
  for (std::size_t i = chain.size(); i-- > 0;) {
    const NvtxOp read = op_from_nvtx(chain[i]);
    if (read.inputs.empty()) continue;
    const Problem problem = problem_of(read.op, read.inputs);
    if (!problem.empty()) return Named{read.op, to_text(problem.dimensions), problem.dtype};
    // A part of its parent, such as aten::cudnn_convolution_backward_weight.
    if (i == 0 || !starts_with(read.op, op_from_nvtx(chain[i - 1]).op)) break;
  }
  return std::nullopt;
}

Named name_of(const std::string& captured, const std::string& shape, const std::string& dtype) {
  const std::vector<std::string> chain = split(captured, kInside);
  Named named{op_from_nvtx(chain.back()).op, shape, dtype};
  if (std::optional<Named> found = problem_in(chain)) {
    // The op's own view of the problem; its types are the library's to say.
    if (found->dtype.empty()) found->dtype = dtype;
    return *std::move(found);
  }
  if (shape.empty() || problem_of(named.op, {}).op_class == "gemm") return named;
  named.op = "gemm";  // part of an op that is known by its name alone
  return named;
}

void name_rows(Profile& profile) {
  for (KernelRow& row : profile.kernels) {
    if (row.op.empty()) continue;
    Named named = name_of(row.op, row.shape, row.dtype);
    row.op = std::move(named.op);
    row.shape = std::move(named.shape);
    row.dtype = std::move(named.dtype);
  }
}

// "cublasGemmEx, shape = M=8,N=4,K=2, dtype = bf16, layout = nn, ld = 2,4,4": the name is the rest.
std::optional<RangeOp> product_of(std::string_view name) {
  const std::size_t shape = name.find(kProduct);
  if (shape == std::string_view::npos || !starts_with(name, "cublas")) return std::nullopt;
  RangeOp op;
  op.name = name.substr(0, shape);
  std::string_view rest = name.substr(shape + kProduct.size());
  op.shape = rest.substr(0, rest.find(", "));
  if (dimensions_from_text(op.shape).empty()) return std::nullopt;
  rest.remove_prefix(op.shape.size());
  if (constexpr std::string_view kDtype = ", dtype = "; starts_with(rest, kDtype)) {
    rest.remove_prefix(kDtype.size());
    op.dtype = rest.substr(0, rest.find(", "));
    rest.remove_prefix(op.dtype.size());
  }
  op.name += rest;
  return op;
}

void name_ranges(Timeline& timeline) {
  std::unordered_map<std::string, std::uint32_t> known;
  for (std::size_t i = 0; i < timeline.names.size(); ++i)
    known.emplace(timeline.names[i], static_cast<std::uint32_t>(i));
  const auto text = [&](const std::string& name) {
    const auto [position, added] =
        known.try_emplace(name, static_cast<std::uint32_t>(timeline.names.size()));
    if (added) timeline.names.push_back(name);
    return position->second;
  };
  struct Reading {
    bool is_op = false;
    RangeKind kind = RangeKind::kUser;
    std::uint32_t name = 0, shape = 0, dtype = 0;
  };
  std::unordered_map<std::uint32_t, Reading> readings;  // by name
  const auto read = [&](std::uint32_t name) {
    const std::string captured = timeline.names[name];
    Reading reading;
    std::optional<RangeOp> op = product_of(captured);
    if (!op) op = op_of_range(captured);
    if (op) {
      reading = {true, RangeKind::kUser, text(op->name), text(op->shape), text(op->dtype)};
    } else {
      reading.kind = kind_of_range(captured, "");
    }
    return reading;
  };
  std::vector<Range> ranges;
  for (Range& range : timeline.ranges) {
    auto position = readings.find(range.name);
    if (position == readings.end()) position = readings.emplace(range.name, read(range.name)).first;
    const Reading& reading = position->second;
    if (!reading.is_op || range.thread == kNone) {  // across threads nothing nests
      range.kind = reading.kind;
      ranges.push_back(range);
      continue;
    }
    Op op;
    op.start_ns = range.start_ns;
    op.duration_ns = range.duration_ns;
    op.process = range.process;
    op.thread = range.thread;
    op.name = reading.name;
    op.shape = reading.shape;
    op.dtype = reading.dtype;
    timeline.ops.push_back(op);
  }
  timeline.ranges = std::move(ranges);
  link_host(timeline);
}

}  // namespace

void name_ops(Profile& profile) {
  name_rows(profile);
  if (!profile.timeline.ranges.empty()) name_ranges(profile.timeline);
}

}  // namespace purlin::profile
