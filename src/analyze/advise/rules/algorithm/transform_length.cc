// SPDX-License-Identifier: Apache-2.0
// Fourier transforms whose length has a large prime factor. Libraries compute them by Bluestein's
// algorithm: a convolution of at least twice the length, by two transforms of small primes.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kGoodLength = {
    "Transform at a length of small primes", "hours",
    "the next length whose primes are 2, 3, 5 and 7: scipy.fft.next_fast_len gives it|"
    "PyTorch: torch.fft.rfft(x, n=length), and the same n for irfft and the other factor|"
    "a filter by spectra may be longer than both signals; cut the result after it",
    "a longer transform moves the bins of a spectrum that is read itself: there, choose the number "
    "of samples"};

constexpr std::string_view kByConvolution = "bluestein";
constexpr double kLeastOfTransforms = 0.05;  // of the unit
// Of the time: one transform for two of twice the length and more, and no products in between.
constexpr Interval3 kLeftOfIt = {0.5, 0.22, 0.1};

// A pass of such a transform, or a conversion around it: not a pass of another transform.
bool belongs(const KernelStat& kernel) {
  const std::string& name = kernel.name.full;
  return kernel.name.op_class == "fft" &&
         (name.find(kByConvolution) != std::string::npos || name.find("_fft") == std::string::npos);
}

void add_transform_length(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Launches work;
  for (const Launches& run : walk.runs())
    for (std::size_t begin = 0; begin < run.size();) {
      std::size_t end = begin;
      bool by_convolution = false;
      while (end < run.size() && belongs(walk.stat(run[end]))) {
        by_convolution = by_convolution ||
                         walk.stat(run[end]).name.full.find(kByConvolution) != std::string::npos;
        ++end;
      }
      if (by_convolution)
        for (std::size_t i = begin; i < end; ++i)
          if (!walk.taken(run[i])) work.push_back(run[i]);
      begin = std::max(end, begin + 1);
    }
  const double ns = in_one_unit(facts, walk.duration(work));
  if (work.empty() || ns < kLeastOfTransforms * facts.unit.baseline_ns.mid) return;
  walk.take(work);
  Intervention out = from_remedy(kReduceRemedy, kGoodLength);
  shrink_launches(walk, work, kLeftOfIt, out);
  for (const std::uint32_t one : work) name_kernel(walk.stat(one), out);
  out.evidence.push_back(
      {"transforms by Bluestein's algorithm: their length has a prime factor above 127",
       launches_in_words(walk, work), "kernel name"});
  out.assumptions.push_back(
      fmt::format("one transform for two of at least twice the length: {:.2f} to {:.2f} of the "
                  "time is left",
                  kLeftOfIt.high, kLeftOfIt.low));
  out.confidence = "C";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kLengthsRule = {{}, add_transform_length};

}  // namespace purlin::analyze
