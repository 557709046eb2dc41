// SPDX-License-Identifier: Apache-2.0
// An inverse that is computed only to be multiplied by: solving with the factors takes less.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/streams.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

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

const Rule kSolveRule = {{}, [](Walk& walk, Advice& advice) { Solve(walk, advice).run(); }};

}  // namespace purlin::analyze
