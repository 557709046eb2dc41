// SPDX-License-Identifier: Apache-2.0
// Many matrices of 2 to 4 rows, inverted or factorised by a library: each takes a block or a warp,
// and several kernels. Their formulas are pointwise over the batch.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kFormulas = {
    "Write the formulas for many small matrices", "hours",
    "PyTorch: inverse and determinant of 3x3 by torch.linalg.cross of the columns; 2x2 directly|"
    "PyTorch: eigenvalues of symmetric 3x3 by the angle of the cubic, in one torch.compile region|"
    "CUDA: one thread for each matrix, its elements in registers",
    "the formulas lose digits where a matrix is nearly singular or eigenvalues are close: compare"};

struct SmallSolver {
  std::string_view op;
  double launches;  // of its formula, op by op
};
constexpr SmallSolver kSmallSolvers[] = {{"aten::linalg_inv", 12},
                                         {"aten::linalg_inv_ex", 12},
                                         {"aten::inverse", 12},
                                         {"aten::linalg_solve", 14},
                                         {"aten::linalg_solve_ex", 14},
                                         {"aten::linalg_pinv", 16},
                                         {"aten::linalg_det", 3},
                                         {"aten::det", 3},
                                         {"aten::linalg_slogdet", 8},
                                         {"aten::logdet", 8},
                                         {"aten::linalg_cholesky", 10},
                                         {"aten::cholesky", 10},
                                         {"aten::linalg_cholesky_ex", 10},
                                         {"aten::linalg_eigvalsh", 25},
                                         {"aten::linalg_eigh", 40},
                                         {"aten::_linalg_eigh", 40}};
constexpr double kMostSmallRows = 4, kLeastMatrices = 1024;
// Of the bandwidth, what a pass reaches; ns that a launch takes at least. High: one kernel.
constexpr Interval3 kFormulaMemory = {0.2, 0.4, 0.7}, kFormulaLeast = {16'000, 10'000, 5'000};
constexpr double kOneKernel = 2;  // launches of a compiled formula

class SmallMatrices {
 public:
  SmallMatrices(Walk& walk, Advice& advice)
      : walk_(walk), facts_(walk.facts()), advice_(advice), chains_(walk) {
    for (const SmallSolver& one : kSmallSolvers) names_.push_back(one.op);
  }

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t begin = 0; begin < run.size();) {
        const Op* op = outermost_op(timeline(), walk_.at(run[begin]), names_);
        std::size_t end = begin + 1;
        while (end < run.size() && op != nullptr &&
               outermost_op(timeline(), walk_.at(run[end]), names_) == op)
          ++end;
        if (op != nullptr) keep(*op, {run.data() + begin, end - begin});
        begin = end;
      }
    for (const Chain* chain : chains_.all()) estimate(*chain);
  }

 private:
  struct Batch {
    std::string op;
    double matrices = 0, rows = 0;
  };
  const Timeline& timeline() const { return facts_.profile->timeline; }

  void keep(const Op& op, std::span<const std::uint32_t> launches) {
    const auto inputs = input_extents(timeline(), op);
    if (inputs.empty() || inputs.front().size() < 3) return;
    const std::vector<double>& extents = inputs.front();
    const double rows = extents.back(), matrices = elements_of(extents) / (rows * rows);
    if (rows < 2 || rows > kMostSmallRows || extents[extents.size() - 2] != rows ||
        matrices < kLeastMatrices)
      return;
    if (std::any_of(launches.begin(), launches.end(),
                    [&](std::uint32_t one) { return walk_.taken(one); }))
      return;
    walk_.take(launches);
    chains_.add(launches);
    batches_[facts_.row_of[walk_.at(launches.front()).row]] = {
        std::string(name_in(timeline(), op.name)), matrices, rows};
  }

  void estimate(const Chain& chain) {
    const Batch& batch = batches_[facts_.row_of[chain.rows.front()]];
    const KernelStat& kernel = facts_.rows.kernels[facts_.row_of[chain.rows.front()]];
    const double bandwidth = facts_.bandwidth_of(kernel);
    const auto* solver = std::find_if(std::begin(kSmallSolvers), std::end(kSmallSolvers),
                                      [&](const SmallSolver& one) { return one.op == batch.op; });
    if (bandwidth <= 0 || solver == std::end(kSmallSolvers)) return;
    const double bytes = 2 * 4 * batch.matrices * batch.rows * batch.rows;
    const auto after = [&](double launches, double memory, double least) {
      return launches * std::max(least, bytes / (bandwidth * memory) * 1e9);
    };
    Intervention out = from_remedy(kReduceRemedy, kFormulas);
    out.evidence.push_back(
        {fmt::format("{} of {} matrices of {:.0f} rows", batch.op, si(batch.matrices, ""),
                     batch.rows),
         fmt::format("{}, {}", counted(static_cast<double>(chain.rows.size()), "kernel"),
                     of_total(in_one_unit(facts_, chain.ns), facts_.unit.baseline_ns.mid)),
         "timeline and shapes"});
    put_chain(facts_, chain,
              {after(solver->launches, kFormulaMemory.low, kFormulaLeast.low),
               after(solver->launches, kFormulaMemory.mid, kFormulaLeast.mid),
               after(kOneKernel, kFormulaMemory.high, kFormulaLeast.high)},
              1,
              "the formula is written op by op, or, high, compiled to one kernel; its result is "
              "exact enough",
              "C", std::move(out), advice_);
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  Chains chains_;
  std::vector<std::string_view> names_;
  std::map<std::size_t, Batch> batches_;  // by report row
};

}  // namespace

const Rule kSmallMatricesRule = {
    {}, [](Walk& walk, Advice& advice) { SmallMatrices(walk, advice).run(); }};

}  // namespace purlin::analyze
