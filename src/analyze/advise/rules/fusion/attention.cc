// SPDX-License-Identifier: Apache-2.0
// Attention written as product, softmax, product: each step moves the scores, S x S for each head,
// through the memory. A fused kernel computes as many FLOPs and never writes them.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace purlin::analyze {
namespace {

constexpr Remedy kFlash = {
    "flash_attention",
    "Compute attention in one kernel",
    Pillar::kArithmeticIntensity,
    Level::kAlgorithm,
    "memory",
    "hours",
    "medium",
    "api-independent",
    "framework",
    "PyTorch: torch.nn.functional.scaled_dot_product_attention (FlashAttention or cuDNN for 16 "
    "bits), FlexAttention for other masks|"
    "JAX: jax.nn.dot_product_attention(implementation=\"cudnn\")|"
    "CUDA: FlashAttention by Triton or CUTLASS",
    "the scores are no longer stored: check code that reads them, and compare the outputs"};

// Of the peak, what fused attention reaches; FlashAttention's authors: 0.5 to 0.75 forward.
constexpr Interval3 kFlashCompute = {0.2, 0.45, 0.75};
constexpr double kRecomputed = 1.25;  // backward: five products instead of four
constexpr std::size_t kMostBetween = 12;
// Of copies that make query, key, value or the result contiguous: fused kernels read and write
// heads where they lie.
constexpr Interval3 kOperandCopies = {0, 0.9, 1};
constexpr std::size_t kMostBeside = 5;  // launches before the first product and after the last
// The largest head dimension of fused kernels (DeepSeek's MLA). The products around the softmax of
// a classifier have the model's width there.
constexpr double kMaxHead = 576;

constexpr double kFullLength = 256;  // positions; with fewer, the fused kernel's tiles are not full

class Attention {
 public:
  Attention(Walk& walk, Advice& advice) : walk_(walk), advice_(advice), chains_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i)
        if (walk_.stat(run[i]).name.op_class == "softmax" &&
            walk_.touch(run[i]).kind == TouchKind::kNorm && !walk_.taken(run[i]))
          around(run, i);
    Intervention out = from_remedy(kFlash);
    for (const Chain* chain : chains_.all()) estimate(*chain, out);
    if (!out.evidence.empty()) finish(std::move(out));
  }

 private:
  bool in_scores(std::uint32_t activity, double scores) const {
    const Touch& touch = walk_.touch(activity);
    return touch.light() && touch.n == scores;
  }
  // From the softmax to the nearest product on one side, over kernels that touch the scores; the
  // position of the product, or run.size().
  std::size_t product(const Launches& run, std::size_t at, int side, double scores) const {
    for (std::size_t between = 0; between < kMostBetween; ++between) {
      if (side < 0 && at == 0) return run.size();
      at = side < 0 ? at - 1 : at + 1;
      if (at >= run.size() || walk_.taken(run[at])) return run.size();
      const Touch& touch = walk_.touch(run[at]);
      const bool written = touch.kind == TouchKind::kProduct && touch.n == scores;
      const bool read = touch.holds(scores) && !written;
      if (side < 0 ? written : read) return at;
      if (touch.kind == TouchKind::kProduct || (!in_scores(run[at], scores) && touch.n > scores))
        return run.size();
    }
    return run.size();
  }
  void around(const Launches& run, std::size_t at) {
    if (is_logarithm(walk_.stat(run[at]))) return;
    const double scores = walk_.touch(run[at]).n;
    std::size_t first = product(run, at, -1, scores), last = product(run, at, +1, scores);
    if (first == run.size() || last == run.size()) return;
    if (walk_.touch(run[first]).depth > kMaxHead || has_loss(run, first, last)) return;
    if (walk_.touch(run[at]).backward) {
      // The gradients of value and key: products with the scores, next to the other two.
      if (first > 0 && reads(run[first - 1], scores)) --first;
      if (last + 1 < run.size() && reads(run[last + 1], scores)) ++last;
    }
    Launches group;
    for (std::size_t i = first; i <= last; ++i)
      if (in_scores(run[i], scores) || walk_.touch(run[i]).kind == TouchKind::kProduct)
        group.push_back(run[i]);
    take_copies(run[first], run[last], scores * walk_.touch(run[at]).in_size);
    add_operands(run, first, last, scores);
    walk_.take(group);
    chains_.add(group);
  }
  // Masking out of place copies the scores first.
  void take_copies(std::uint32_t first, std::uint32_t last, double most_bytes) {
    const Profile& profile = *walk_.facts().profile;
    const Activity& begin = profile.timeline.activities[first];
    for (std::uint32_t i = first; i < last; ++i) {
      const Activity& one = profile.timeline.activities[i];
      if (one.stream != begin.stream || one.process != begin.process || walk_.taken(i) ||
          !within_device(profile, one) || 4 * static_cast<double>(one.bytes) < most_bytes)
        continue;
      copies_.push_back(i);
      walk_.take({&i, 1});
    }
  }
  // Copies of an operand before the products, or of the result. Other rules may name them as well.
  void add_operands(const Launches& run, std::size_t first, std::size_t last, double scores) {
    for (std::size_t i = first - std::min(first, kMostBeside);
         i < std::min(run.size(), last + 1 + kMostBeside); ++i) {
      const Touch& touch = walk_.touch(run[i]);
      const KernelStat& kernel = walk_.stat(run[i]);
      if (walk_.taken(run[i]) || kernel.op != "aten::copy_" ||
          touch.kind != TouchKind::kPointwise || touch.inputs > 1 ||
          touch.out_size() != touch.in_size || touch.n == scores)
        continue;
      const bool result = i > last && walk_.touch(run[last]).n == touch.n;
      const bool operand = i < last && (walk_.touch(run[first]).holds(touch.n) ||
                                        walk_.touch(run[last]).holds(touch.n));
      if ((result || operand) && seen_.insert(run[i]).second) operands_.push_back(run[i]);
    }
  }
  // Attention weighs values with a softmax. Its logarithm is of a loss, written manually or not.
  static bool is_logarithm(const KernelStat& softmax) {
    return softmax.op.find("log_softmax") != std::string::npos ||
           softmax.name.full.find("LogSoftMax") != std::string::npos;
  }
  // A loss between the products: the softmax is that of a classifier.
  bool has_loss(const Launches& run, std::size_t first, std::size_t last) const {
    const Profile& profile = *walk_.facts().profile;
    return std::any_of(run.begin() + static_cast<std::ptrdiff_t>(first),
                       run.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                       [&](std::uint32_t activity) {
                         const std::uint32_t row = profile.timeline.activities[activity].row;
                         return row < profile.kernels.size() &&
                                (profile.kernels[row].op.find("loss") != std::string::npos ||
                                 profile.kernels[row].name.find("loss") != std::string::npos);
                       });
  }
  bool reads(std::uint32_t activity, double scores) const {
    const Touch& touch = walk_.touch(activity);
    return touch.holds(scores) && touch.n != scores && !walk_.taken(activity);
  }

  // A bias or mask of fewer elements than the scores, broadcast to them.
  bool adds_bias(const Chain& chain, double scores) const {
    return std::any_of(chain.rows.begin(), chain.rows.end(), [&](std::uint32_t row) {
      const Touch& touch = walk_.row_touch(row);
      const double read = touch.in_size > 0 ? touch.read / touch.in_size : 0;
      return touch.kind == TouchKind::kPointwise && touch.n == scores && read > scores &&
             read < 2 * scores;
    });
  }

  void estimate(const Chain& chain, Intervention& out) {
    const Facts& facts = walk_.facts();
    double flops = 0, scores = 0, bytes = 0, outer = 0;
    bool backward = false;
    const Touch* first = nullptr;
    for (const std::uint32_t row : chain.rows) {
      const Touch& touch = walk_.row_touch(row);
      bytes += touch.bytes();
      if (touch.kind == TouchKind::kNorm) scores = touch.n;
      backward = backward || touch.backward;
      if (touch.kind == TouchKind::kProduct && first == nullptr) first = &touch;
    }
    for (const std::uint32_t row : chain.rows) {
      const Touch& touch = walk_.row_touch(row);
      if (touch.kind != TouchKind::kProduct) continue;
      flops += touch.flops();
      const double b = touch.batch;
      for (const double elements : {b * touch.m * touch.depth, b * touch.depth * touch.columns,
                                    b * touch.m * touch.columns})
        if (elements != scores) outer += elements * touch.in_size;
    }
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0 || first == nullptr) return;
    const double work = flops * (backward ? kRecomputed : 1);
    const double filled = std::min(1.0, std::min(first->m, first->columns) / kFullLength);
    const auto after = [&](double compute) {
      return roof_ns(peaks, work, outer, compute * filled, facts.targets.memory * filled);
    };
    const double each = chain.each_ns();
    // Fused kernels that take a bias are slow where their tiles are not full.
    const bool slow = filled < 1 && adds_bias(chain, scores);
    const Interval3 fused = {slow ? each : std::min(each, after(kFlashCompute.low)),
                             slow ? std::min(each, 0.5 * (each + after(kFlashCompute.mid)))
                                  : std::min(each, after(kFlashCompute.mid)),
                             std::min(each, after(slow ? kFlashCompute.mid : kFlashCompute.high))};
    become(facts, chain, fused, 1, out);
    name_kernels(facts, chain.rows, out);
    total_ += in_one_unit(facts, chain.ns);
    if (out.evidence.size() > 4) return;
    out.evidence.push_back({fmt::format("product, softmax, product over {} scores{}",
                                        si(scores, ""), backward ? ", backward" : ""),
                            fmt::format("{} of {}, {} each", counted(chain.count(), "time"),
                                        counted(chain.rows.size(), "kernel"), short_ns(each)),
                            "timeline and shapes"});
    out.evidence.push_back({"bytes moved, and bytes of query, key, value and result",
                            fmt::format("{} and {}; {} in both cases", format_bytes(bytes),
                                        format_bytes(outer), si(flops, "FLOP")),
                            "shape model"});
  }

  void finish(Intervention out) {
    if (!copies_.empty()) {
      remove_launches(walk_, copies_, {1, 1, 1}, out);
      total_ += in_one_unit(walk_.facts(), walk_.duration(copies_));
    }
    if (!operands_.empty()) {
      remove_launches(walk_, operands_, kOperandCopies, out);
      out.evidence.push_back(
          {"copies that make query, key, value or the result contiguous",
           short_ns(in_one_unit(walk_.facts(), walk_.duration(operands_))) + a_unit(walk_.facts()),
           "shapes"});
    }
    out.evidence.push_back({"time of these kernels",
                            of_total(total_, walk_.facts().unit.baseline_ns.mid), "timeline"});
    out.assumptions.push_back(
        fmt::format("the fused kernel reaches {:.2f} to {:.2f} of the peak; its backward pass "
                    "computes five products instead of four",
                    kFlashCompute.low, kFlashCompute.high));
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Chains chains_;
  Launches copies_;    // of scores, within the device
  Launches operands_;  // copies of query, key, value or the result
  std::set<std::uint32_t> seen_;
  double total_ = 0;
};

}  // namespace

const Rule kAttentionRule = {{&kFlash, 1},
                             [](Walk& walk, Advice& advice) { Attention(walk, advice).run(); }};

}  // namespace purlin::analyze
