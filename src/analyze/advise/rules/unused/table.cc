// SPDX-License-Identifier: Apache-2.0
// The gradient of an embedding table, made for all of its rows though a step looks few of them up:
// the table is cleared, and the optimizer passes over all of it.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kSparse = {
    "Update only the rows of the table that a step reads", "hours",
    "PyTorch: nn.Embedding(..., sparse=True) with torch.optim.SparseAdam, SGD or Adagrad|"
    "a library for large tables: TorchRec, HugeCTR",
    "an optimizer with momentum or weight decay changes rows that a step does not read: compare "
    "the loss"};

constexpr double kMostRead = 0.25;    // of the rows in a step
constexpr double kLargeTable = 64e6;  // bytes: smaller ones cost little
constexpr double kPassShare = 0.7;    // of the time that one pass over the table takes at the roof
constexpr Interval3 kPassGone = {0.5, 0.9, 1};

class TableGradients {
 public:
  TableGradients(Walk& walk, Advice& advice) : walk_(walk), facts_(walk.facts()), advice_(advice) {}

  void run() {
    for (std::size_t i = 0; i < facts_.rows.kernels.size(); ++i) look_at(i);
    if (pass_ns_ <= 0) return;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t activity : run)
        if (passes(activity)) work_.push_back(activity);
    if (!work_.empty()) add();
  }

 private:
  void look_at(std::size_t row) {
    const KernelStat& kernel = facts_.rows.kernels[row];
    if (kernel.op != "aten::embedding_dense_backward") return;
    Problem problem;
    problem.dimensions = dimensions_from_text(kernel.shape);
    const auto indices = static_cast<double>(problem["indices"]),
               rows = static_cast<double>(problem["rows"]);
    const double bytes = rows * static_cast<double>(problem["cols"]) *
                         std::max(2.0, bytes_per_element(kernel.dtype));
    const double bandwidth = facts_.bandwidth_of(kernel);
    if (rows <= 0 || indices > kMostRead * rows || bytes < kLargeTable || bandwidth <= 0) return;
    if (bytes <= bytes_ || is_multiplied(bytes / std::max(2.0, bytes_per_element(kernel.dtype))))
      return;
    bytes_ = bytes;
    share_ = indices / rows;
    pass_ns_ = bytes / bandwidth * 1e9;
    shape_ = problem_text(kernel);
  }

  // A language model's head may share the table: then its gradient is of all rows.
  bool is_multiplied(double elements) const {
    for (std::size_t i = 0; i < facts_.rows.kernels.size(); ++i) {
      const Touch& touch = walk_.report_touch(i);
      if (touch.kind == TouchKind::kProduct && touch.holds(elements)) return true;
    }
    return false;
  }

  // A fill, or a kernel of the optimizer, that takes as long as a pass over the table.
  bool passes(std::uint32_t activity) const {
    const KernelStat& kernel = walk_.stat(activity);
    const bool fill = kernel.name.full.find("FillFunctor") != std::string::npos;
    return (fill || kernel.name.op_class == "optimizer") && !walk_.taken(activity) &&
           walk_.duration(activity) >= kPassShare * pass_ns_;
  }

  void add() {
    Intervention out = from_remedy(kReduceRemedy, kSparse);
    remove_launches(walk_, work_, kPassGone, out);
    for (const std::uint32_t activity : work_) name_kernel(walk_.stat(activity), out);
    out.evidence.push_back(
        {"gradient of a table, made for all of its rows",
         fmt::format("{}: a step reads {:.2f}% of {}", shape_, 100 * share_, format_bytes(bytes_)),
         "shapes"});
    out.evidence.push_back(
        {"fills and updates that take as long as a pass over the table",
         fmt::format(
             "{}{}, {}", counted(in_one_unit(facts_, static_cast<double>(work_.size())), "launch"),
             a_unit(facts_),
             of_total(in_one_unit(facts_, walk_.duration(work_)), facts_.unit.baseline_ns.mid)),
         "timeline"});
    out.assumptions.emplace_back("these passes are over the table, as their time suggests");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  Launches work_;
  double bytes_ = 0, share_ = 0, pass_ns_ = 0;
  std::string shape_;
};

}  // namespace

const Rule kTableRule = {{},
                         [](Walk& walk, Advice& advice) { TableGradients(walk, advice).run(); }};

}  // namespace purlin::analyze
