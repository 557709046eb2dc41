// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and singular values by a library. They are found by iteration, with many small
// launches, and take ten times as long as a factorisation and more. Much of what they are asked for
// follows from less.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kLessThanEigenvalues = {
    "Ask for less than all eigenvalues or singular values", "hours",
    "PyTorch: a log-determinant by torch.linalg.cholesky or slogdet; a rank, an inverse or a "
    "condition by a factorisation|"
    "PyTorch: the few largest by torch.lobpcg, torch.svd_lowrank, or some products with the matrix|"
    "PyTorch: singular values of a tall matrix by eigvalsh of a.mT @ a; values alone without "
    "vectors|"
    "PyTorch: torch.backends.cuda.preferred_linalg_library chooses another library",
    "a product a.mT @ a squares the condition: compare in float64"};

constexpr std::string_view kByIteration[] = {
    "aten::linalg_eigh", "aten::_linalg_eigh",   "aten::linalg_eigvalsh",
    "aten::linalg_eig",  "aten::linalg_eigvals", "aten::linalg_svd",
    "aten::_linalg_svd", "aten::linalg_svdvals", "aten::svd"};
constexpr double kLeastOfThem = 0.1;  // of the unit
// Whether less will do is not known. Where it did, 1/25 was left.
constexpr Interval3 kPerhapsLess = {0, 0.6, 0.97};

void add_decompositions(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  const Timeline& timeline = facts.profile->timeline;
  Launches work;
  std::string op;
  for (const Launches& run : walk.runs())
    for (const std::uint32_t one : run) {
      const Op* found =
          walk.taken(one) ? nullptr : outermost_op(timeline, walk.at(one), kByIteration);
      if (found == nullptr) continue;
      work.push_back(one);
      op = name_in(timeline, found->name);
    }
  const double ns = in_one_unit(facts, walk.duration(work));
  if (work.empty() || ns < kLeastOfThem * facts.unit.baseline_ns.mid) return;
  walk.take(work);
  Intervention out = from_remedy(kReduceRemedy, kLessThanEigenvalues);
  remove_launches(walk, work, kPerhapsLess, out);
  for (const std::uint32_t one : work) name_kernel(walk.stat(one), out);
  out.evidence.push_back({fmt::format("kernels of {}, found by iteration", clean(op)),
                          launches_in_words(walk, work), "timeline and ops of the host"});
  out.assumptions.emplace_back(
      "what is read of them follows from a cheaper factorisation: if not, the low estimate holds");
  out.confidence = "D";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kDecompositionsRule = {{}, add_decompositions};

}  // namespace purlin::analyze
