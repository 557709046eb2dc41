// SPDX-License-Identifier: Apache-2.0
// An inverse that is computed only to be multiplied by: solving with the factors takes less. And
// one matrix that several ops of a step factorise.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/streams.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kSolve = {
    "Solve with the factors instead of the inverse", "hours",
    "PyTorch: torch.linalg.solve(a, b) for torch.linalg.inv(a) @ b; torch.linalg.lstsq for pinv|"
    "symmetric and positive: torch.linalg.cholesky_ex once, then torch.cholesky_solve|"
    "many right-hand sides over time: torch.linalg.lu_factor once, then torch.linalg.lu_solve",
    "where the inverse itself is needed as well, nothing is saved"};

constexpr std::string_view kInverting[] = {"aten::linalg_inv", "aten::inverse",
                                           "aten::linalg_inv_ex", "aten::linalg_pinv",
                                           "aten::cholesky_inverse"};
// The factors are needed either way.
constexpr std::string_view kFactors[] = {"aten::linalg_lu_factor",   "aten::linalg_lu_factor_ex",
                                         "aten::linalg_lu",          "aten::linalg_cholesky",
                                         "aten::linalg_cholesky_ex", "aten::linalg_svd",
                                         "aten::_linalg_svd",        "aten::linalg_qr"};
// What goes of the rest: it starts as many kernels for a few right-hand sides, with less work.
constexpr Interval3 kFewSides = {0.2, 0.6, 0.9}, kManySides = {0, 0.25, 0.5};
constexpr double kFewOfRows = 0.125;  // right-hand sides, of the rows

// Matrices of one size that are factorised in several ops of a step: by ops of different names they
// are one matrix more likely, as by a determinant and a solution.
constexpr RemedyCase kFactorOnce = {
    "Factorise the matrix once", "hours",
    "PyTorch: lu, pivots = torch.linalg.lu_factor(a), then torch.linalg.lu_solve for each "
    "solution; "
    "the determinant is the product of lu's diagonal, with the sign of the pivots|"
    "symmetric and positive: torch.linalg.cholesky once; 2 * L.diagonal().log().sum() is log det",
    "another matrix of the same size needs its own factors"};
constexpr std::string_view kFactorising[] = {"aten::linalg_det",       "aten::det",
                                             "aten::_linalg_det",      "aten::linalg_slogdet",
                                             "aten::slogdet",          "aten::_linalg_slogdet",
                                             "aten::logdet",           "aten::linalg_inv",
                                             "aten::linalg_inv_ex",    "aten::linalg_solve",
                                             "aten::inverse",          "aten::linalg_solve_ex",
                                             "aten::linalg_lu_factor", "aten::linalg_lu",
                                             "aten::linalg_cholesky",  "aten::linalg_lu_factor_ex"};
constexpr std::string_view kOfFactors[] = {"getrf", "potrf", "lu_", "_lu", "trsm_lu", "cholesky"};
constexpr double kLargeMatrix = 128;     // rows
constexpr std::size_t kMostFactors = 7;  // of one size in a step; more are a batch
constexpr Interval3 kSameMatrix = {0.2, 0.9, 1}, kMaybeSame = {0, 0.5, 1};

class FactorOnce {
 public:
  FactorOnce(Walk& walk, Advice& advice)
      : walk_(walk), timeline_(walk.facts().profile->timeline), advice_(advice) {}

  void run() {
    const Streams streams(timeline_);
    for (const StreamWork& stream : streams.all())
      for (const std::uint32_t index : stream.activities) place(index);
    for (const auto& [key, ops] : found_) judge(key.second, ops);
    add();
  }

 private:
  void place(std::uint32_t index) {
    const Activity& one = walk_.at(index);
    const Op* op = outermost_op(timeline_, one, kFactorising);
    if (op == nullptr || one.kind != ActivityKind::kKernel) return;
    const auto extents = input_extents(timeline_, *op);
    if (extents.empty() || extents[0].size() < 2 || extents[0].back() < kLargeMatrix ||
        extents[0].back() != extents[0][extents[0].size() - 2])
      return;
    auto& ops = found_[{walk_.step_of(one), extents[0]}];
    if (ops.empty() || ops.back().first != op) ops.push_back({op, {}});
    const std::string& name = walk_.stat(index).name.full;
    const bool factors =
        outermost_op(timeline_, one, kFactors) != nullptr ||
        std::any_of(std::begin(kOfFactors), std::end(kOfFactors),
                    [&](std::string_view word) { return name.find(word) != std::string::npos; });
    if (factors) ops.back().second.push_back(index);
  }
  using Ops = std::vector<std::pair<const Op*, Launches>>;
  void judge(const std::vector<double>& extents, const Ops& ops) {
    if (ops.size() < 2 || ops.size() > kMostFactors) return;
    const bool differ = std::any_of(ops.begin(), ops.end(), [&](const auto& one) {
      return one.first->name != ops.front().first->name;
    });
    if (!differ && walk_.known().repeats) return;  // one op of one matrix would be known
    for (std::size_t i = 1; i < ops.size(); ++i)
      spare_.insert(spare_.end(), ops[i].second.begin(), ops[i].second.end());
    differ_ = differ_ && differ;
    rows_ = extents.back(), count_ = static_cast<double>(ops.size());
  }
  void add() {
    if (spare_.empty()) return;
    const Facts& facts = walk_.facts();
    Intervention out = reuse_result();
    out.title = kFactorOnce.title;
    out.how = split(kFactorOnce.how, '|');
    out.guard = kFactorOnce.guard;
    remove_launches(walk_, spare_, differ_ ? kSameMatrix : kMaybeSame, out);
    for (const std::uint32_t one : spare_) name_kernel(walk_.stat(one), out);
    out.evidence.push_back(
        {"matrices of one size that several ops of a step factorise",
         fmt::format(
             "{:.0f} ops, {:.0f} rows; the factors but the first take {}", count_, rows_,
             of_total(in_one_unit(facts, walk_.duration(spare_)), facts.unit.baseline_ns.mid)),
         "timeline and ops of the host"});
    out.assumptions.emplace_back("the ops factorise one matrix: sizes and names suggest this");
    out.confidence = differ_ ? "C" : "D";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Timeline& timeline_;
  Advice& advice_;
  std::map<std::pair<int, std::vector<double>>, Ops> found_;  // by step and extents
  Launches spare_;
  double rows_ = 0, count_ = 0;
  bool differ_ = true;
};

class Solve {
 public:
  Solve(Walk& walk, Advice& advice)
      : walk_(walk), timeline_(walk.facts().profile->timeline), advice_(advice) {}

  void run() {
    const Streams streams(timeline_);
    for (const StreamWork& stream : streams.all()) {
      Launches inverse;
      const Op* op = nullptr;
      for (const std::uint32_t index : stream.activities) {
        const Activity& one = walk_.at(index);
        const Op* its = outermost_op(timeline_, one, kInverting);
        if (its != nullptr) {
          if (its != op) inverse.clear();
          op = its;
          inverse.push_back(index);
        } else if (op != nullptr && one.kind == ActivityKind::kKernel) {
          look_at(*op, inverse, index);
          op = nullptr;
        }
      }
    }
    add();
  }

 private:
  void look_at(const Op& op, const Launches& inverse, std::uint32_t next) {
    const Touch& product = walk_.touch(next);
    const auto extents = input_extents(timeline_, op);
    if (extents.empty() || extents[0].size() < 2 || product.kind != TouchKind::kProduct) return;
    const double rows = extents[0].back(), matrix = elements_of(extents[0]);
    const bool left = product.batch * product.m * product.depth == matrix,
               right = product.batch * product.depth * product.columns == matrix;
    if (!left && !right) return;
    const double sides = left ? product.columns : product.m;
    few_ = few_ && sides <= kFewOfRows * rows;
    if (sides * rows > sides_ * rows_) sides_ = sides, rows_ = rows;
    for (const std::uint32_t one : inverse) {
      all_ns_ += walk_.duration(one);
      if (outermost_op(timeline_, walk_.at(one), kFactors) == nullptr) work_.push_back(one);
    }
    work_.push_back(next);
    all_ns_ += walk_.duration(next);
    op_ = name_in(timeline_, op.name);
    found_ += 1;
  }
  void add() {
    if (work_.empty()) return;
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kReduceRemedy, kSolve);
    remove_launches(walk_, work_, few_ ? kFewSides : kManySides, out);
    for (const std::uint32_t one : work_)
      if (walk_.at(one).kind == ActivityKind::kKernel) name_kernel(walk_.stat(one), out);
    out.evidence.push_back({"an inverse that the next product reads",
                            fmt::format("{}, {}; {:.0f} rows, {:.0f} right-hand sides at most", op_,
                                        counted(found_, "time"), rows_, sides_),
                            "timeline and ops of the host"});
    out.evidence.push_back(
        {"kernels of it and of the product, except the factors",
         of_total(in_one_unit(facts, walk_.duration(work_)), in_one_unit(facts, all_ns_)),
         "timeline"});
    out.assumptions.emplace_back("no other kernel reads the inverse");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Timeline& timeline_;
  Advice& advice_;
  Launches work_;
  std::string op_;
  double all_ns_ = 0, found_ = 0, rows_ = 0, sides_ = 0;  // rows and sides of the largest
  bool few_ = true;                                       // right-hand sides, of each inverse
};

}  // namespace

const Rule kSolveRule = {{}, [](Walk& walk, Advice& advice) {
                           Solve(walk, advice).run();
                           FactorOnce(walk, advice).run();
                         }};

}  // namespace purlin::analyze
