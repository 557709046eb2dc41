// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/flow/part.h"

#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/pricing.h"
#include "base/text.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kRowsCase = {
    "Compute only the part of the result that is read", "hours",
    "index the input instead of the result: head(x[:, -1]) for head(x)[:, -1]; what works element "
    "by element or row by row gives the same on a part|"
    "PyTorch: with Hugging Face, logits_to_keep=1 when generating|"
    "a diagonal alone: (a * b.mT).sum(-1) for the diagonal of a @ b",
    "make sure that steps which were not recorded do not read the rest"};
constexpr RemedyCase kSortCase = {
    "Find the greatest few instead of sorting all", "hours",
    "PyTorch: torch.topk(x, k) for torch.sort(x)[:k]; max, min or kthvalue for one value|"
    "CUDA: CUB's DeviceTopK, or a selection by radix, for DeviceRadixSort",
    "equal values may come in another order"};
constexpr RemedyCase kScanCase = {
    "Take the sum instead of all running sums", "hours",
    "PyTorch: x.sum(dim) for x.cumsum(dim)[..., -1]; prod for cumprod, logsumexp for logcumsumexp|"
    "of a first part: x[..., :k].cumsum(-1)",
    "sums round in another order"};
constexpr RemedyCase kSpectrumCase = {
    "Transform only what is read of the spectrum", "hours",
    "PyTorch: torch.fft.rfft (rfft2) of real numbers: half of the spectrum says all|"
    "a few frequencies: a product with these columns of the transform",
    "the input must be real for the half; name the length in irfft where it is odd"};
constexpr RemedyCase kDecompositionCase = {
    "Ask only for the part of the decomposition that is read", "hours",
    "PyTorch: eigvalsh or svdvals where no vectors are read|"
    "PyTorch: the few largest by torch.lobpcg, torch.svd_lowrank, or some products with the matrix|"
    "PyTorch: a log-determinant by torch.linalg.cholesky or slogdet",
    "iterations stop at a tolerance: compare the results"};
constexpr RemedyCase kInverseCase = {
    "Solve for what is read instead of inverting", "hours",
    "PyTorch: torch.linalg.solve(a, b) for the columns b of the inverse that are read|"
    "PyTorch: torch.linalg.cholesky and torch.cholesky_solve where the matrix is symmetric and "
    "positive",
    "results round otherwise: compare within a tolerance"};

constexpr std::string_view kSorts[] = {"aten::sort", "aten::argsort", "aten::msort"};
constexpr std::string_view kScans[] = {"aten::cumsum",       "aten::cumsum_",
                                       "aten::cumprod",      "aten::cumprod_",
                                       "aten::logcumsumexp", "aten::_logcumsumexp"};
constexpr std::string_view kDecompositions[] = {
    "aten::linalg_eigh", "aten::_linalg_eigh", "aten::linalg_eig", "aten::_linalg_eigvals",
    "aten::linalg_svd",  "aten::_linalg_svd",  "aten::linalg_qr",  "aten::svd",
    "aten::geqrf",       "aten::linalg_schur", "aten::linalg_lu"};
constexpr std::string_view kInverses[] = {"aten::linalg_inv_ex", "aten::linalg_inv",
                                          "aten::inverse", "aten::linalg_pinv",
                                          "aten::cholesky_inverse"};
constexpr std::string_view kSpectra[] = {"aten::_fft_c2c", "aten::_fft_r2c", "aten::_fft_c2r"};
// What makes the last element needs all before it; statistics are of all rows.
constexpr std::string_view kRecurrent[] = {"rnn",      "lstm",      "gru",    "batch_norm",
                                           "ctc_loss", "_foreach_", "_fused_"};
constexpr std::string_view kRowwise[] = {"softmax", "norm", "attention"};

// Of a sort, a share beyond this may be one of its two results, as a whole.
constexpr double kMostOfSort = 0.34;
constexpr double kMostOfRows = 0.75, kMostOfSeveral = 0.45;
constexpr double kHalfRead = 0.4;
constexpr Interval3 kSortLeft = {0.7, 0.3, 0.1}, kScanLeft = {0.8, 0.45, 0.3};
constexpr Interval3 kHalfReadLeft = {0.9, 0.55, 0.45}, kFewLeft = {0.95, 0.5, 0.1};
constexpr Interval3 kDecompositionLeft = {0.9, 0.4, 0.05}, kInverseLeft = {0.9, 0.45, 0.15};
// Of the rest that is not read, what stays.
constexpr Interval3 kRestOfElements = {0.4, 0.05, 0}, kRestOfRows = {0.7, 0.4, 0},
                    kRestOfOthers = {0.8, 0.25, 0};
constexpr Interval3 kPartCompute = {0.25, 0.5, 0.8}, kPartMemory = {0.4, 0.7, 0.92};

bool speaks_of(std::string_view op, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [op](std::string_view word) {
    return op.find(word) != std::string_view::npos;
  });
}

Interval3 rest_stays(double share, Interval3 rest) {
  return each_scenario([&](const auto& of) { return share + of(rest) * (1 - share); });
}

// The part of a product: the rows, the columns or the diagonal of its result.
Interval3 product_left(const Walk& walk, const FlowFact& fact, std::uint32_t launch, double ns) {
  const Touch& product = walk.touch(launch);
  const KernelStat& kernel = walk.stat(launch);
  const Peaks peaks = peaks_of(walk.facts(), kernel, kernel.dtype);
  if (peaks.flops <= 0 || peaks.bandwidth <= 0 || ns <= 0)
    return rest_stays(fact.read_share, kRestOfElements);
  const double share = fact.read_share, size = product.in_size;
  const double left = size * product.batch * product.m * product.depth,
               right = size * product.batch * product.depth * product.columns,
               out = share * product.written;
  // A diagonal reads both operands; rows and columns read one of them in part, and which it is was
  // not recorded.
  const double rows = share * left + right, columns = left + share * right;
  const Interval3 bytes = {left + right + out, 0.5 * (rows + columns) + out,
                           std::min(rows, columns) + out};
  return each_scenario([&](const auto& of) {
    const double after =
        roof_ns(peaks, share * product.flops(), of(bytes), of(kPartCompute), of(kPartMemory));
    return std::min(1.0, after / ns);
  });
}

}  // namespace

PartOf part_of(const FlowFact& fact) {
  const std::string_view op = fact.op;
  if (named_in(kSorts, op)) return fact.read_share < kMostOfSort ? PartOf::kSort : PartOf::kNothing;
  if (named_in(kScans, op)) return PartOf::kScan;
  if (named_in(kDecompositions, op)) return PartOf::kDecomposition;
  if (named_in(kInverses, op)) return PartOf::kInverse;
  if (named_in(kSpectra, op)) return PartOf::kSpectrum;
  if (speaks_of(op, kRecurrent)) return PartOf::kNothing;
  // Of several results, one may be unread: the other is as large.
  const bool several = speaks_of(op, kRowwise) || ends_with(op, "dropout") ||
                       ends_with(op, "::max") || ends_with(op, "::min") || ends_with(op, "::topk");
  return fact.read_share < (several ? kMostOfSeveral : kMostOfRows) ? PartOf::kRows
                                                                    : PartOf::kNothing;
}

const RemedyCase& case_of(PartOf part) {
  switch (part) {
    case PartOf::kSort:
      return kSortCase;
    case PartOf::kScan:
      return kScanCase;
    case PartOf::kSpectrum:
      return kSpectrumCase;
    case PartOf::kDecomposition:
      return kDecompositionCase;
    case PartOf::kInverse:
      return kInverseCase;
    case PartOf::kNothing:
    case PartOf::kRows:
      break;
  }
  return kRowsCase;
}

const char* sure_of(PartOf part) {
  return part == PartOf::kRows || part == PartOf::kScan ? "B" : "C";
}

Interval3 left_of(const Walk& walk, const FlowFact& fact, const Launches& launches) {
  switch (part_of(fact)) {
    case PartOf::kNothing:
      return {1, 1, 1};
    case PartOf::kSort:
      return kSortLeft;
    case PartOf::kScan:
      return kScanLeft;
    case PartOf::kSpectrum:
      return fact.read_share >= kHalfRead ? kHalfReadLeft : kFewLeft;
    case PartOf::kDecomposition:
      return kDecompositionLeft;
    case PartOf::kInverse:
      return kInverseLeft;
    case PartOf::kRows:
      break;
  }
  const double ns = walk.duration(launches);
  bool light = true;
  for (const std::uint32_t launch : launches) {
    if (walk.at(launch).kind != ActivityKind::kKernel) continue;
    const Touch& touch = walk.touch(launch);
    if (touch.kind == TouchKind::kProduct) return product_left(walk, fact, launch, ns);
    light = light && (touch.light() || touch.multiplies());
  }
  const Interval3 rest = speaks_of(fact.op, kRowwise) ? kRestOfRows
                         : light                      ? kRestOfElements
                                                      : kRestOfOthers;
  const Interval3 left = rest_stays(fact.read_share, rest);
  // Each launch takes some time, however little it has to do.
  const double least =
      ns > 0 ? std::min(1.0, kLeastLaunch * static_cast<double>(launches.size()) / ns) : 1;
  return {std::max(least, left.low), std::max(least, left.mid), std::max(least, left.high)};
}

}  // namespace purlin::analyze
