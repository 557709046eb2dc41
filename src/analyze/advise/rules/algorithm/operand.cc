// SPDX-License-Identifier: Apache-2.0
// Products with an operand that is nearly all zeros, as what made it tells: a diagonal matrix, and
// a mask of tokens by expert and place that is spread from one-hot matrices.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kScaleRows = {
    "Scale rows instead of multiplying by a diagonal matrix", "hours",
    "PyTorch: d[:, None] * a for torch.diag(d) @ a; a * d for a @ torch.diag(d)|"
    "powers and inverses of a diagonal matrix are those of its elements",
    "the diagonal matrix itself may be needed elsewhere"};
constexpr RemedyCase kMoveRows = {
    "Move rows by index instead of multiplying by one-hot masks", "hours",
    "mixtures of experts: x[order] by the tokens' places, and index_add_ for the way back|"
    "PyTorch: torch._grouped_mm over sorted tokens, or the padded form by index_copy_|"
    "libraries: MegaBlocks, Tutel, DeepSpeed-MoE",
    "with index_add_, sums are taken in any order"};

constexpr RemedyCase kSkipZeros = {
    "Skip the zeros of the operand", "hours",
    "a band: F.conv1d with the taps, or sums of shifted slices|"
    "blocks: torch.bmm over the blocks, without torch.block_diag|"
    "few values: torch.sparse_csr_tensor once, then torch.sparse.mm",
    "the values in between must be zeros: nothing else may write the operand"};

constexpr std::string_view kMakesDiagonal[] = {"aten::diag", "aten::diag_embed", "aten::diagflat"};
constexpr std::size_t kMostBefore = 5;  // kernels between what makes the operand and the product
constexpr double kSmallOperand = 1 << 16;
// Kernels that write a few of the zeros: of fewer, the zeros may be a result's.
constexpr double kFewestPieces = 3, kMostPieces = 128;
constexpr double kFewValues = 0.1;  // of an operand, that is not zero
constexpr Interval3 kMovedMemory = {0.2, 0.5, 0.9};

class SparseOperand {
 public:
  SparseOperand(Walk& walk, Advice& advice)
      : walk_(walk),
        timeline_(walk.facts().profile->timeline),
        advice_(advice),
        diagonals_(walk),
        masks_(walk),
        sparse_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) {
        if (!diagonal(run, i) && !zeros(run, i)) mask(run, i);
      }
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) reads_mask(run, i);
    for (const Chain* chain : diagonals_.all())
      estimate(*chain, kScaleRows, "a product with a diagonal matrix that the step makes");
    for (const Chain* chain : sparse_.all())
      estimate(*chain, kSkipZeros,
               "a product with an operand that is filled with zeros, and written in a few places");
    for (const Chain* chain : masks_.all())
      estimate(*chain, kMoveRows, "a product with a mask that is spread from one-hot matrices");
  }

 private:
  bool is_product(std::uint32_t one) const {
    return walk_.touch(one).kind == TouchKind::kProduct && !walk_.taken(one);
  }
  void keep(const Launches& run, std::size_t first, std::size_t product, Chains& out) {
    const std::span<const std::uint32_t> group{run.data() + first, product + 1 - first};
    walk_.take(group);
    out.add(group);
  }

  // An operand that an op of diagonals has filled: its zeros, its elements, perhaps a cast.
  bool diagonal(const Launches& run, std::size_t at) {
    if (!is_product(run[at])) return false;
    const Touch& product = walk_.touch(run[at]);
    for (std::size_t i = at; i-- > 0 && at - i <= kMostBefore && !walk_.taken(run[i]);) {
      const Touch& touch = walk_.touch(run[i]);
      const Op* op = outermost_op(timeline_, walk_.at(run[i]), kMakesDiagonal);
      if (op == nullptr && !(touch.kind == TouchKind::kPointwise && product.holds(touch.n)))
        return false;
      if (op == nullptr || !product.holds(touch.n) || touch.n < kSmallOperand) continue;
      // Square, and the operand, not the result.
      if (touch.n != product.batch * product.depth * product.depth) return false;
      keep(run, i, at, diagonals_);
      return true;
    }
    return false;
  }

  // Zeros of the operand's size, small kernels that write a few of them, and the product.
  bool zeros(const Launches& run, std::size_t at) {
    if (!is_product(run[at])) return false;
    const Touch& product = walk_.touch(run[at]);
    double written = 0, pieces = 0;
    for (std::size_t i = at; i-- > 0 && pieces <= kMostPieces && !walk_.taken(run[i]);) {
      const Touch& touch = walk_.touch(run[i]);
      const bool operand = touch.n == product.batch * product.m * product.depth ||
                           touch.n == product.batch * product.depth * product.columns;
      if (fills(run[i]) && operand && touch.n >= kSmallOperand) {
        if (pieces < kFewestPieces) return false;
        keep(run, i, at, sparse_);
        return true;
      }
      written += touch.out;
      pieces += 1;
      if (touch.kind != TouchKind::kPointwise ||
          written > kFewValues * std::max(product.m, product.columns) * product.depth)
        return false;
    }
    return false;
  }
  bool fills(std::uint32_t one) const {
    return walk_.stat(one).name.full.find("FillFunctor") != std::string::npos;
  }

  // A kernel that spreads smaller arrays to the operand's size, the last of which a scatter filled.
  void mask(const Launches& run, std::size_t at) {
    if (!is_product(run[at])) return;
    const Touch& product = walk_.touch(run[at]);
    const double spread_n = at > 0 ? walk_.touch(run[at - 1]).n : 0;
    if (at == 0 || walk_.taken(run[at - 1]) || !spreads(run[at - 1]) || !product.holds(spread_n) ||
        spread_n < kSmallOperand)
      return;
    for (std::size_t i = at - 1; i-- > 0 && at - i <= kMostBefore;) {
      if (!walk_.touch(run[i]).light() && !fills_places(run[i], product)) return;
      if (!fills_places(run[i], product)) continue;
      spread_.insert(spread_n);
      keep(run, at - 1, at, masks_);
      return;
    }
  }
  bool spreads(std::uint32_t one) const {
    const Touch& touch = walk_.touch(one);
    return touch.kind == TouchKind::kPointwise && touch.inputs < 1 && touch.read > 0;
  }
  // A scatter of one constant for each term or row of the product.
  bool fills_places(std::uint32_t one, const Touch& product) const {
    if (walk_.stat(one).op != "aten::scatter_") return false;
    Problem problem;
    problem.dimensions = dimensions_from_text(walk_.stat(one).shape);
    const auto entries = static_cast<double>(problem["indices"]);
    return problem["cols"] == 1 && entries > 1 &&
           (entries == product.depth || entries == product.m || entries == product.columns);
  }
  // The way back: the mask again, weighted or in another layout, as an operand.
  void reads_mask(const Launches& run, std::size_t at) {
    if (!is_product(run[at])) return;
    const Touch& product = walk_.touch(run[at]);
    std::size_t first = at;
    bool weighted = false;
    while (first > 0 && at - first < kMostBefore && !walk_.taken(run[first - 1])) {
      const Touch& touch = walk_.touch(run[first - 1]);
      if (touch.kind != TouchKind::kPointwise || !product.holds(touch.n)) break;
      weighted = weighted || (spread_.contains(touch.n) && touch.read > touch.n * touch.in_size);
      --first;
    }
    if (weighted) keep(run, first, at, masks_);
  }

  void estimate(const Chain& chain, const RemedyCase& words, const char* what) {
    const Facts& facts = walk_.facts();
    const Touch& product = walk_.row_touch(chain.rows.back());
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.back()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.bandwidth <= 0) return;
    const double bytes = 2 * product.written;
    const Interval3 after = each_scenario(
        [&](const auto& of) { return roof_ns(peaks, 0, bytes, 1, of(kMovedMemory)); });
    Intervention out = from_remedy(kReduceRemedy, words);
    out.evidence.push_back(
        {what, fmt::format("{}; {} of rows", problem_text(kernel), format_bytes(bytes)),
         "shapes and ops of the host"});
    put_chain(facts, chain, after, 1, "nothing else reads the operand", "B", std::move(out),
              advice_);
  }

  Walk& walk_;
  const Timeline& timeline_;
  Advice& advice_;
  std::set<double> spread_;  // elements of masks
  Chains diagonals_, masks_, sparse_;
};

}  // namespace

const Rule kOperandRule = {{},
                           [](Walk& walk, Advice& advice) { SparseOperand(walk, advice).run(); }};

}  // namespace purlin::analyze
