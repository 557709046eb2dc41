// SPDX-License-Identifier: Apache-2.0
// Pricing: what a rule wants changed, turned into the saving of one unit. Every interval here is
// written low saving first: a duration's low is its longest. Pure functions over values.
#pragma once

#include "analyze/advise/rules/walk.h"
#include "analyze/timeline/intervals.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

inline constexpr double kShortLaunch = 5'000;  // ns; below it a launch mostly starts and drains
inline constexpr double kLeastLaunch = 2'000;  // ns that even an empty kernel takes
inline constexpr double kSmallestRow = 0.002;  // of the unit; smaller rows cannot matter

// Roofs of a device for an estimate, in FLOP/s and B/s; 0 where not known.
struct Peaks {
  double flops = 0, bandwidth = 0, l2_bytes = 0;
};
Peaks peaks_of(const Facts& facts, const KernelStat& kernel, std::string_view dtype);
// Time at shares of the two roofs, with a floor that even an empty launch takes; ns.
double roof_ns(const Peaks& peaks, double flops, double bytes, double compute, double memory);

// What a launch takes the host, without the recorder, ns: as the profile's calls show it, where
// they were recorded: low is the shortest.
Interval3 launch_cost(const Facts& facts);
// Each occurrence of a chain becomes `launches` launches that take `after_ns` in all.
void become(const Facts& facts, const Chain& chain, Interval3 after_ns, double launches,
            Intervention& out);
void replace_quietly(const Facts& facts, const Chain& chain, Interval3 after_ns, double launches,
                     Intervention& out);  // without evidence
// A chain of which `after_ns` is left, at most its present time: its saving, its kernels, what the
// rule assumes and how sure it is; it joins the advice.
void put_chain(const Facts& facts, const Chain& chain, Interval3 after_ns, double launches,
               const char* assumes, const char* confidence, Intervention out, Advice& advice);
// One estimate in each of the three scenarios: `estimate(of)`, where of(interval) is its end.
template <class Estimate>
Interval3 each_scenario(const Estimate& estimate) {
  const auto of = [&](Scenario scenario) {
    return estimate([scenario](const Interval3& interval) { return at(interval, scenario); });
  };
  return {of(Scenario::kLow), of(Scenario::kMid), of(Scenario::kHigh)};
}
// All of the host's time, but not in these intervals, nor while it loads or prepares input: other
// rules are for that.
void scale_host(const Facts& facts, Interval3 factor, std::span<const Interval> without,
                Change& change);
// Some launches, the host's part included, go: the share `gone` of each.
void remove_launches(const Walk& walk, const Launches& work, Interval3 gone, Intervention& out);
// Some launches take `factor` of their time; the host's part stays.
void shrink_launches(const Walk& walk, const Launches& work, Interval3 factor, Intervention& out);
// The launches of some report rows take `factor` of their time; `least` as edit::Scale has it.
void scale_row(const Facts& facts, std::size_t row, Interval3 factor, Intervention& out,
               double least = 0);
edit::Scale scale_of(const Facts& facts, std::size_t row, Interval3 factor);

// Labels of the kernels of some rows, each once.
void name_kernels(const Facts& facts, const std::vector<std::uint32_t>& rows, Intervention& out);
void name_kernel(const KernelStat& kernel, Intervention& out);
void name_label(const std::string& label, Intervention& out);
// A launch that mostly starts and drains; and the most that tuning can save of a kernel's time, as
// even an empty launch takes some.
bool is_short_launch(const KernelStat& kernel);
double most_by_tuning(const KernelStat& kernel);
bool from_library(const KernelStat& kernel);
bool is_of_program(const KernelStat& kernel);  // not a library's or framework's
bool of_framework(const KernelStat& kernel);   // its source is PyTorch's, or of what that calls
double threads_of(const KernelStat& kernel);   // of a launch
// Of an embedding bag: the threads at work, one for each bag and column; 0 where they are many.
double few_threads_of_bags(const Facts& facts, const KernelStat& kernel);
// Waves of blocks that a launch takes, by the occupancy that it permits; 0: not known.
double waves_of(const Facts& facts, const KernelStat& kernel);
// Sectors of a load from global memory: 4 with 4 bytes a thread, 16 with 16; 0: not counted.
double sectors_per_load(const KernelStat& kernel);
int architecture_number(std::string_view arch);  // "sm_90" -> 90, 0 for what is none
std::string a_unit(const Facts& facts);          // " a step", ""
double in_one_unit(const Facts& facts, double total);
// "3 launches a step, 0.9 ms of 1.3 ms (68%)".
std::string launches_in_words(const Walk& walk, const Launches& work);

}  // namespace purlin::analyze
