// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/cells.h"

#include "fleet/api/query_api.h"

namespace purlin::fleet {
namespace {

using store::Dimension;

const std::vector<Dimension>& all_dimensions() {
  static const std::vector<Dimension> kAll = {
      Dimension::kKernel,  Dimension::kShape, Dimension::kDtype, Dimension::kModel,
      Dimension::kOp,      Dimension::kRole,  Dimension::kBuild, Dimension::kDriver,
      Dimension::kRuntime, Dimension::kNode,  Dimension::kGpu};
  return kAll;
}

// Both questions begin with the same six dimensions.
void take_problem(std::vector<std::string>& values, analysis::Cell& cell) {
  cell.kernel = std::move(values[0]);
  cell.shape = std::move(values[1]);
  cell.dtype = std::move(values[2]);
  cell.gpu = std::move(values[3]);
  cell.op = std::move(values[4]);
  cell.role = std::move(values[5]);
}

template <class Rest>
Result<std::vector<analysis::Cell>> to_cells(std::vector<store::Cell> from, std::size_t dimensions,
                                             const Rest& take_rest) {
  if (from.size() > kMaxCells)
    return error(Code::kInvalid,
                 "this selects {} cells, over {}: give a shorter time, or a kernel, model or job",
                 from.size(), kMaxCells);
  std::vector<analysis::Cell> cells;
  cells.reserve(from.size());
  for (store::Cell& one : from) {
    if (one.values.size() != dimensions)
      return error(Code::kCorrupt, "the store gave another number of dimensions than was asked");
    analysis::Cell& cell = cells.emplace_back();
    take_problem(one.values, cell);
    take_rest(one, cell);
    cell.time = std::move(one.duration);
  }
  return cells;
}

}  // namespace

Result<std::vector<analysis::Cell>> read_cells(store::Reader& reader, const store::Filter& filter,
                                               store::Step step) {
  PURLIN_ASSIGN(std::vector<store::Cell> from, reader.cells(filter, all_dimensions(), step));
  return to_cells(std::move(from), all_dimensions().size(),
                  [](store::Cell& one, analysis::Cell& cell) {
                    cell.build = std::move(one.values[6]);
                    cell.driver = std::move(one.values[7]);
                    cell.runtime = std::move(one.values[8]);
                    cell.node = std::move(one.values[9]);
                    cell.device = std::move(one.values[10]);
                    cell.begin_ns = one.begin_ns;
                  });
}

Result<std::vector<analysis::Cell>> read_totals(store::Reader& reader,
                                                const store::Filter& filter) {
  static const std::vector<Dimension> kBy = {
      Dimension::kKernel, Dimension::kShape, Dimension::kDtype, Dimension::kModel,
      Dimension::kOp,     Dimension::kRole,  Dimension::kRaw};
  PURLIN_ASSIGN(std::vector<store::Cell> from, reader.cells(filter, kBy));
  return to_cells(std::move(from), kBy.size(), [](store::Cell& one, analysis::Cell& cell) {
    cell.raw = std::move(one.values[6]);
  });
}

Result<std::vector<analysis::CoverageCell>> read_coverage(store::Reader& reader,
                                                          const store::Filter& filter) {
  PURLIN_ASSIGN(std::vector<store::CoverageCell> from, reader.coverage(filter, store::Step::kHour));
  std::vector<analysis::CoverageCell> cells;
  cells.reserve(from.size());
  for (store::CoverageCell& one : from)
    cells.push_back({.node = std::move(one.node),
                     .device = std::move(one.gpu),
                     .begin_ns = one.begin_ns,
                     .busy_ns = one.busy_ns,
                     .seen_ns = one.seen_ns,
                     .launches_seen = one.launches_seen,
                     .launches_lost = one.launches_lost,
                     .overhead_ns = one.overhead_ns,
                     .bad_timestamps = one.bad_timestamps,
                     .why = std::move(one.why)});
  return cells;
}

}  // namespace purlin::fleet
