// SPDX-License-Identifier: Apache-2.0
// Pointwise kernels right behind a product, over its result: its epilogue can do them before the
// result leaves the registers. The product stays, so the time goes down by less than the
// traffic.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr Remedy kEpilogue = {
    "fuse_epilogue",
    "Compute bias and activation in the product's kernel",
    Pillar::kArithmeticIntensity,
    Level::kMemory,
    "memory",
    "hours",
    "low",
    "api-independent",
    "framework",
    "PyTorch: nn.Linear or torch.addmm instead of a product and an addition, "
    "torch._addmm_activation, torch.compile(mode=\"max-autotune\")|"
    "cuBLASLt: CUBLASLT_EPILOGUE_RELU_BIAS, _GELU_BIAS; CUTLASS: epilogue visitor trees",
    "rounding may differ where the product's result was stored in 16 bits"};

constexpr RemedyCase kFold = {
    "Fold the batch norms into the convolutions", "hours",
    "PyTorch: torch.nn.utils.fuse_conv_bn_eval(conv, norm), or torch.fx.experimental.optimization."
    "fuse, once before inference|"
    "scale the filters by weight / sqrt(variance + eps), put the rest into the bias",
    "for inference only: training needs the statistics of each batch"};

// Of the norm's time: PyTorch adds the bias by another kernel, a library's epilogue by none.
constexpr Interval3 kBiasInstead = {1.2, 0.7, 0};
constexpr double kLaunchesFolded = 2;
constexpr std::size_t kMostHelpers = 3;    // kernels that prepare a norm's statistics
constexpr double kFewStatistics = 65'536;  // elements
constexpr std::size_t kMostFused = 4;
// The time of the product with its epilogue: another variant may be chosen for it.
constexpr Interval3 kProductAfter = {1.2, 1.06, 0.97};

struct EpilogueBytes {
  double now = 0, fused = 0;
};

class Epilogue {
 public:
  Epilogue(Walk& walk, Advice& advice)
      : walk_(walk), advice_(advice), chains_(walk), folded_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i + 1 < run.size(); ++i) {
        norm_behind(run, i);
        behind(run, i);
      }
    fold();
    Intervention out = from_remedy(kEpilogue);
    for (const Chain* chain : chains_.all()) estimate(*chain, out);
    if (out.evidence.empty()) return;
    out.assumptions.push_back(fmt::format(
        "each kernel reads the previous kernel's result and no other kernel needs it; the product "
        "takes {:.2f} to {:.2f} of its time with the epilogue",
        kProductAfter.high, kProductAfter.low));
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

 private:
  // The norm of a convolution's result by statistics that are known: of inference.
  void norm_behind(const Launches& run, std::size_t at) {
    if (walk_.stat(run[at]).name.op_class != "conv" || walk_.taken(run[at]) || walk_.trains())
      return;
    const double n = walk_.touch(run[at]).n;
    for (std::size_t i = at + 1; i < run.size() && i <= at + 1 + kMostHelpers; ++i) {
      const KernelStat& kernel = walk_.stat(run[i]);
      const Touch& touch = walk_.touch(run[i]);
      if (walk_.taken(run[i])) return;
      if (normalises_only(kernel) && touch.n == n) {
        const std::span<const std::uint32_t> group{run.data() + at, i + 1 - at};
        walk_.take(group);
        folded_.add(group);
        return;
      }
      const bool helper = kernel.name.full.find("batch_norm_calc_invstd") != std::string::npos ||
                          (touch.light() && touch.n <= kFewStatistics);
      if (!helper) return;
    }
  }
  static bool normalises_only(const KernelStat& kernel) {
    const std::string& name = kernel.name.full;
    return name.find("batch_norm_transform_input") != std::string::npos ||
           name.find("batch_norm_elemt") != std::string::npos ||
           name.find("bn_fw_inf") != std::string::npos;
  }
  void fold() {
    Intervention out = from_remedy(kEpilogue, kFold);
    const Facts& facts = walk_.facts();
    double norms = 0, all = 0;
    for (const Chain* chain : folded_.all()) {
      double one = 0, norm = 0;
      for (const Launches& group : chain->groups) {
        one += walk_.duration(group.front());
        norm += walk_.duration(group.back());
        all += static_cast<double>(group.size() - 1);
      }
      norms += chain->ns - one;
      const auto after = [&](double bias) {
        return std::min(chain->each_ns(), (one + bias * norm) / chain->count());
      };
      become(facts, *chain,
             {after(kBiasInstead.low), after(kBiasInstead.mid), after(kBiasInstead.high)},
             kLaunchesFolded, out);
      name_kernels(facts, chain->rows, out);
    }
    if (norms <= 0) return;
    out.evidence.push_back(
        {"batch norms of inference behind convolutions, with what prepares them",
         fmt::format("{}{}, {}", counted(in_one_unit(facts, all), "launch"), a_unit(facts),
                     of_total(in_one_unit(facts, norms), facts.unit.baseline_ns.mid)),
         "kernel name"});
    out.assumptions.push_back(
        fmt::format("a kernel that adds the bias takes {:.1f} to {:.1f} of the norm's time; no "
                    "other kernel reads the convolution's result",
                    kBiasInstead.high, kBiasInstead.low));
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  void behind(const Launches& run, std::size_t at) {
    const Touch& product = walk_.touch(run[at]);
    if (!product.multiplies() || walk_.taken(run[at])) return;
    std::size_t end = at + 1;
    while (end < run.size() && end - at <= kMostFused && !walk_.taken(run[end]) &&
           walk_.touch(run[end]).kind == TouchKind::kPointwise &&
           walk_.touch(run[end]).n == product.n && walk_.touch(run[end]).inputs >= 1 &&
           walk_.touch(run[end]).inputs <= 2)
      ++end;
    if (end == at + 1 || !pays(run, at, end)) return;
    const std::span<const std::uint32_t> group{run.data() + at, end - at};
    walk_.take(group);
    chains_.add(group);
  }

  // The pointwise kernels take more than the epilogue costs the product. Else they stay for a
  // separate chain.
  bool pays(const Launches& run, std::size_t product, std::size_t end) const {
    const auto mean = [&](std::size_t i) { return walk_.stat(run[i]).duration.mean_ns(); };
    double pointwise = 0;
    for (std::size_t i = product + 1; i < end; ++i) pointwise += mean(i);
    return pointwise > (kProductAfter.mid - 1) * mean(product);
  }

  EpilogueBytes bytes_of(const Chain& chain) const {
    EpilogueBytes out;
    const Touch& product = walk_.row_touch(chain.rows.front());
    out.now = out.fused = product.bytes();
    for (std::size_t i = 1; i < chain.rows.size(); ++i) {
      const Touch& touch = walk_.row_touch(chain.rows[i]);
      out.now += touch.bytes();
      out.fused += touch.read - touch.n * touch.in_size;
    }
    out.fused += walk_.row_touch(chain.rows.back()).written - product.written;
    return out;
  }

  void estimate(const Chain& chain, Intervention& out) {
    const Facts& facts = walk_.facts();
    double product_ns = 0;
    for (const Launches& group : chain.groups) product_ns += walk_.duration(group.front());
    const double one = product_ns / chain.count();
    become(facts, chain, kProductAfter * one, 1, out);
    name_kernels(facts, chain.rows, out);
    if (out.evidence.size() > 5) return;
    const Touch& product = walk_.row_touch(chain.rows.front());
    const EpilogueBytes bytes = bytes_of(chain);
    out.evidence.push_back(
        {fmt::format("a product and {} over its {} results",
                     counted(chain.rows.size() - 1, "pointwise kernel"), si(product.n, "")),
         fmt::format("{}, {} each, of which the product takes {}", counted(chain.count(), "time"),
                     short_ns(chain.each_ns()), short_ns(one)),
         "timeline and shapes"});
    out.evidence.push_back(
        {"bytes moved",
         fmt::format("{:.3f} MB now, {:.3f} MB fused: {:.0f}% less", bytes.now / 1e6,
                     bytes.fused / 1e6, 100 * (1 - bytes.fused / bytes.now)),
         "shape model"});
    put_roofs(chain, bytes, out);
  }

  // All kernels at their roofs, now and fused: what the traffic is worth in time.
  void put_roofs(const Chain& chain, const EpilogueBytes& bytes, Intervention& out) const {
    const Facts& facts = walk_.facts();
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    const Touch& product = walk_.row_touch(chain.rows.front());
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0) return;
    double now = 0;
    for (const std::uint32_t row : chain.rows)
      now += roof_ns(peaks, walk_.row_touch(row).flops(), walk_.row_touch(row).bytes(), 1, 1);
    const double fused = roof_ns(peaks, product.flops(), bytes.fused, 1, 1);
    const double ridge = peaks.flops / peaks.bandwidth;
    const double before = product.flops() / bytes.now, after = product.flops() / bytes.fused;
    out.evidence.push_back(
        {"every kernel at its roof",
         fmt::format("{:.1f} us now, {:.1f} us fused; {:.0f} and {:.0f} FLOP/B, the ridge is at "
                     "{:.0f}{}",
                     now / 1e3, fused / 1e3, before, after, ridge,
                     before < ridge && after >= ridge
                         ? ": memory-bound in all now, compute-bound fused"
                         : ""),
         "shape model"});
  }

  Walk& walk_;
  Advice& advice_;
  Chains chains_, folded_;
};

}  // namespace

const Rule kEpilogueRule = {{&kEpilogue, 1},
                            [](Walk& walk, Advice& advice) { Epilogue(walk, advice).run(); }};

}  // namespace purlin::analyze
