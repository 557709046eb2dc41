// SPDX-License-Identifier: Apache-2.0
// Sorts by radix of 64-bit integers, PyTorch's default: they pass over the data twice as often as
// sorts of 32-bit ones, and move more in each pass.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"

#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kShortKeys = {
    "Sort shorter keys", "hours",
    "PyTorch: torch.sort(keys.to(torch.int32)) where the keys fit in 31 bits; int16 for 15 bits|"
    "CUDA: CUB's begin_bit and end_bit name the bits that differ",
    "the keys must fit in the shorter type; make them in it, so that no conversion is needed"};

// Keys of an integer of 64 bits, with values that are sorted along: not a library's own segments.
constexpr std::string_view kOfLongKeys = "policy_hub<long, at::cuda::cub::detail::OpaqueType";
constexpr double kLeastOfSorts = 0.05;           // of the unit
constexpr Interval3 kSpared = {0.3, 0.6, 0.85};  // half of the passes, of three quarters; fewer

void add_long_keys(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Launches work;
  for (const Launches& run : walk.runs())
    for (const std::uint32_t one : run)
      if (!walk.taken(one) && walk.stat(one).name.full.find(kOfLongKeys) != std::string::npos)
        work.push_back(one);
  const double ns = in_one_unit(facts, walk.duration(work));
  if (work.empty() || ns < kLeastOfSorts * facts.unit.baseline_ns.mid) return;
  walk.take(work);
  Intervention out = from_remedy(kReduceRemedy, kShortKeys);
  remove_launches(walk, work, kSpared, out);
  for (const std::uint32_t one : work) name_kernel(walk.stat(one), out);
  out.evidence.push_back(
      {"passes of sorts of 64-bit integers", launches_in_words(walk, work), "kernel name"});
  out.assumptions.emplace_back("keys of 32 bits: half of the passes, each of 12 bytes for 16");
  out.confidence = "C";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kLongKeysRule = {{}, add_long_keys};

}  // namespace purlin::analyze
