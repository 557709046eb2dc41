// SPDX-License-Identifier: Apache-2.0
// Fourier transforms that do more than their input needs, and filters that need one: the spectrum
// of real numbers has two equal halves, and a long filter costs less as a product of spectra.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kHalfSpectrum = {
    "Transform real numbers as such: half of the spectrum says all", "hours",
    "PyTorch: torch.fft.rfft and irfft (rfft2, irfft2) for fft and ifft(...).real; keep the first "
    "half of each filter's spectrum|"
    "CUDA: cuFFT's R2C and C2R for C2C",
    "a filter's spectrum must have the same symmetry; name the length in irfft where it is odd"};

constexpr RemedyCase kBySpectra = {
    "Filter with long filters by spectra", "hours",
    "PyTorch: torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(filters, n), n), padded to the "
    "length of both|"
    "transform filters that do not change once",
    "rounding differs; compare results within a tolerance"};

constexpr std::string_view kConjugates = "_fft_conjugate_copy";
// Of what follows a full spectrum: half of the bytes and transforms, at a part of the rate.
constexpr Interval3 kHalfLeft = {0.9, 0.6, 0.45};

constexpr double kLongFilter = 128;  // taps
constexpr double kFewerFlops = 8;    // times, before transforms are worth their passes
// Passes over both signals: padding, a transform in one or two passes each way, a product of
// complex numbers.
constexpr Interval3 kSignalPasses = {16, 10, 7}, kPassMemory = {0.2, 0.4, 0.7};
constexpr Interval3 kTransformCompute = {0.05, 0.15, 0.3};
constexpr double kTransformLaunches = 8;

class Spectra {
 public:
  Spectra(Walk& walk, Advice& advice)
      : walk_(walk), advice_(advice), facts_(walk.facts()), filters_(walk) {}

  void run() {
    const auto& names = facts_.profile->timeline.names;
    takes_real_part_ = std::find(names.begin(), names.end(), "aten::real") != names.end();
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) {
        full_spectrum(run, i);
        if (taps(run[i]) >= kLongFilter && !walk_.taken(run[i])) filters_.add({&run[i], 1});
      }
    if (!copies_.empty()) add_half();
    for (const Chain* chain : filters_.all()) by_spectra(*chain);
  }

 private:
  static bool is_complex(const KernelStat& kernel) {
    return kernel.dtype == "c64" || kernel.dtype == "c128";
  }
  // The second half of the spectrum of real numbers is written from the first, and then the real
  // part of what comes back is taken: all between has twice its size.
  void full_spectrum(const Launches& run, std::size_t at) {
    if (!takes_real_part_ || walk_.stat(run[at]).name.full.find(kConjugates) == std::string::npos)
      return;
    Launches after;
    bool returns = false;
    for (std::size_t i = at + 1; i < run.size(); ++i) {
      const KernelStat& kernel = walk_.stat(run[i]);
      const bool transform = kernel.op == "aten::_fft_c2c";
      if (!transform && !is_complex(kernel)) break;
      returns = returns || transform;
      after.push_back(run[i]);
    }
    if (!returns) return;
    copies_.push_back(run[at]);
    doubled_.insert(doubled_.end(), after.begin(), after.end());
  }
  void add_half() {
    Intervention out = from_remedy(kReduceRemedy, kHalfSpectrum);
    remove_launches(walk_, copies_, {1, 1, 1}, out);
    Chains chains(walk_);
    for (const std::uint32_t one : doubled_) chains.add({&one, 1});
    for (const Chain* chain : chains.all())
      replace_quietly(facts_, *chain, half_of(*chain), 1, out);
    for (const std::uint32_t one : copies_) name_kernel(walk_.stat(one), out);
    for (const std::uint32_t one : doubled_) name_kernel(walk_.stat(one), out);
    out.evidence.push_back({"spectra of real numbers whose second half is written from the first",
                            launches_in_words(walk_, copies_), "kernel name"});
    out.evidence.push_back({"work on both halves, before the real part is taken",
                            launches_in_words(walk_, doubled_), "timeline"});
    out.assumptions.push_back(fmt::format(
        "what is multiplied with the spectrum has its symmetry, so that the result is real; half "
        "of the spectrum takes {:.2f} to {:.2f} of the time",
        kHalfLeft.high, kHalfLeft.low));
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }
  static Interval3 half_of(const Chain& chain) {
    const double each = chain.each_ns(), least = std::min(each, kLeastLaunch);
    return {std::max(least, kHalfLeft.low * each), std::max(least, kHalfLeft.mid * each),
            std::max(least, kHalfLeft.high * each)};
  }

  // Of a convolution along one extent; 0 of others.
  double taps(std::uint32_t activity) const { return taps(walk_.stat(activity)); }
  static double taps(const KernelStat& kernel) {
    if (kernel.name.op_class != "conv") return 0;
    const Problem problem = problem_of(kernel);
    const auto r = static_cast<double>(std::max<std::int64_t>(1, problem["R"])),
               s = static_cast<double>(std::max<std::int64_t>(1, problem["S"]));
    return problem["T"] > 1 || std::min(r, s) > 1 ? 0 : std::max(r, s);
  }
  static Problem problem_of(const KernelStat& kernel) {
    Problem out;
    out.dimensions = dimensions_from_text(kernel.shape);
    return out;
  }
  void by_spectra(const Chain& chain) {
    const KernelStat& kernel = facts_.rows.kernels[facts_.row_of[chain.rows.front()]];
    const Touch& touch = walk_.row_touch(chain.rows.front());
    const Problem problem = problem_of(kernel);
    const Peaks peaks = peaks_of(facts_, kernel, "f32");
    const auto extent = [&](std::string_view name) {
      return static_cast<double>(std::max<std::int64_t>(1, problem[name]));
    };
    // A stride leaves out positions, and spectra do not.
    const double length = std::max(extent("H"), extent("W"));
    const double made = std::max(extent("P"), extent("Q"));
    if (touch.m <= 0 || peaks.flops <= 0 || peaks.bandwidth <= 0 || made < length / 2) return;
    const double padded = length + taps(kernel);
    const double images = extent("N"), in = extent("C"), out_channels = extent("K"),
                 depth = in / extent("groups");
    const double signals = images * (in + out_channels) + out_channels * depth;
    const double transforms = 2.5 * signals * padded * std::log2(padded);
    const double joined = 4 * images * out_channels * depth * padded;
    const double direct = 2 * touch.m * touch.columns * touch.depth;
    if (direct < kFewerFlops * (transforms + joined)) return;
    const double each = chain.each_ns(), bytes = 4 * signals * padded;
    const auto after = [&](double compute, double passes, double memory) {
      return std::min(each,
                      kTransformLaunches * kLeastLaunch / 2 +
                          roof_ns(peaks, transforms + joined, passes * bytes, compute, memory));
    };
    const Interval3 left = {after(kTransformCompute.low, kSignalPasses.low, kPassMemory.low),
                            after(kTransformCompute.mid, kSignalPasses.mid, kPassMemory.mid),
                            after(kTransformCompute.high, kSignalPasses.high, kPassMemory.high)};
    if (left.mid >= each) return;
    Intervention out = from_remedy(kReduceRemedy, kBySpectra);
    become(facts_, chain, left, kTransformLaunches, out);
    name_kernel(kernel, out);
    out.evidence.push_back(
        {problem_text(kernel),
         fmt::format("{} of {:.0f} taps, {} each", counted(chain.count(), "filter"), taps(kernel),
                     short_ns(each)),
         "timeline and shapes"});
    out.evidence.push_back({"work",
                            fmt::format("{} now, {} with transforms", si(direct, "FLOP"),
                                        si(transforms + joined, "FLOP")),
                            "shape model"});
    out.assumptions.push_back(
        fmt::format("transforms pass {:.0f} to {:.0f} times over the padded signals, at {:.1f} to "
                    "{:.1f} of the bandwidth, in {:.0f} launches",
                    kSignalPasses.high, kSignalPasses.low, kPassMemory.low, kPassMemory.high,
                    kTransformLaunches));
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  const Facts& facts_;
  Chains filters_;
  Launches copies_, doubled_;
  bool takes_real_part_ = false;
};

}  // namespace

const Rule kSpectraRule = {{}, [](Walk& walk, Advice& advice) { Spectra(walk, advice).run(); }};

}  // namespace purlin::analyze
