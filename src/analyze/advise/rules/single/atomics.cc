// SPDX-License-Identifier: Apache-2.0
// A reduction to one value that takes far longer than a pass over the data by another kernel: most
// often one atomic for each thread. Seen from the launches alone: a few bytes are set, one kernel
// runs, and as many bytes go to the host.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr Remedy kBlocks = {
    "reduce_in_blocks",
    "Add up within a block before the atomic",
    Pillar::kMemoryEfficiency,
    Level::kTuning,
    "latency",
    "hours",
    "low",
    "cuda",
    "kernel",
    "CUDA: sum in registers, then __shfl_down_sync within a warp, shared memory within a block, "
    "and one atomicAdd for each block|"
    "CUB: DeviceReduce, or BlockReduce in the kernel|"
    "or sum where the values are made: in the kernel that writes them, without another pass",
    "the order of the additions changes the last bits of a floating-point sum"};

constexpr std::uint64_t kFewBytes = 64;
constexpr double kLongPass = 20'000, kTimesSlower = 4;  // ns; against the pass of another kernel
constexpr double kMoreThreads = 4;                      // that kernel has, so it sees as much data
constexpr double kLeastReduction = 0.03;                // of the unit

constexpr double kThreadsForEach = 16;       // element that a fill set
constexpr std::uint32_t kFewRegisters = 40;  // of a thread that reads and adds
constexpr double kLongWave = 50'000;         // ns, of blocks that run at a time
constexpr double kShortWave = 2'000;         // ns, of blocks that read and sum a little

class Atomics {
 public:
  Atomics(Walk& walk, Advice& advice) : walk_(walk), facts_(walk.facts()), advice_(advice) {}

  void run() {
    const auto& activities = facts_.profile->timeline.activities;
    std::uint32_t last[3] = {kNone, kNone, kNone};  // the three latest of one device and stream
    for (std::uint32_t i = 0; i < activities.size(); ++i) {
      if (last[2] != kNone && activities[last[2]].stream != activities[i].stream) continue;
      last[0] = last[1];
      last[1] = last[2];
      last[2] = i;
      if (last[0] != kNone && reduces(activities[last[0]], activities[last[1]], activities[i]))
        found_[facts_.row_of[activities[last[1]].row]].push_back(last[1]);
    }
    for (const auto& [row, work] : found_) judge(row, work);
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 1; i < run.size(); ++i)
        if (sums_by_thread(run[i - 1], run[i]))
          by_thread_[facts_.row_of[walk_.at(run[i]).row]] += 1;
    for (const auto& [row, count] : by_thread_) judge_own(row, count);
  }

 private:
  bool reduces(const Activity& set, const Activity& kernel, const Activity& copy) const {
    return set.kind == ActivityKind::kSet && kernel.kind == ActivityKind::kKernel &&
           copy.kind == ActivityKind::kCopy && set.bytes > 0 && set.bytes <= kFewBytes &&
           copy.bytes == set.bytes && copy.row < facts_.profile->copies.size() &&
           copy_direction(facts_.profile->copies[copy.row].kind) == "d2h" &&
           kernel.row < facts_.row_of.size();
  }
  // An own kernel, right after a fill of far fewer elements than it has threads, whose blocks take
  // far longer than to read what they may hold.
  bool sums_by_thread(std::uint32_t fill, std::uint32_t index) const {
    const KernelStat& kernel = walk_.stat(index);
    if (!is_of_program(kernel) || kernel.roof.utilization > 0 || walk_.taken(index) ||
        kernel.registers > kFewRegisters ||
        walk_.stat(fill).name.full.find("FillFunctor") == std::string::npos)
      return false;
    const double filled = walk_.touch(fill).n, waves = waves_of(facts_, kernel);
    return filled > 0 && threads_of(kernel) >= kThreadsForEach * filled && waves >= 1 &&
           kernel.duration.mean_ns() >= kLongWave * waves;
  }
  void judge_own(std::size_t row, double count) {
    const KernelStat& kernel = facts_.rows.kernels[row];
    const double own = kernel.duration.mean_ns(), waves = waves_of(facts_, kernel);
    if (in_one_unit(facts_, own * count) < kLeastReduction * facts_.unit.baseline_ns.mid) return;
    Intervention out = from_remedy(kBlocks);
    scale_row(facts_, row, {1, 0.5, std::min(0.5, kShortWave * waves / own)}, out);
    name_kernel(kernel, out);
    out.evidence.push_back(
        {"an own kernel right after a fill of far fewer elements than it has threads",
         fmt::format("{}, {} threads, {} a launch, {} a wave of blocks", short_label(kernel),
                     si(threads_of(kernel), ""), short_ns(own), short_ns(own / waves)),
         "launch"});
    out.assumptions.emplace_back(
        "its threads add to what was filled, one atomic each: a guess, for the kernel may compute "
        "as long; without atomics a wave of blocks takes some microseconds");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  // The kernel with the most threads: it passes over the data, one value for each thread or more.
  const KernelStat* widest() const {
    const auto& kernels = facts_.rows.kernels;
    const auto most = std::max_element(
        kernels.begin(), kernels.end(),
        [](const KernelStat& a, const KernelStat& b) { return threads_of(a) < threads_of(b); });
    return most == kernels.end() ? nullptr : &*most;
  }

  void judge(std::size_t row, const Launches& work) {
    const KernelStat& kernel = facts_.rows.kernels[row];
    const KernelStat* pass = widest();
    if (pass == nullptr || pass == &kernel || kernel.roof.utilization > 0) return;
    const double own = kernel.duration.mean_ns(), other = pass->duration.mean_ns();
    if (own < kLongPass || own < kTimesSlower * other || from_library(kernel) ||
        threads_of(*pass) < kMoreThreads * threads_of(kernel))
      return;
    if (in_one_unit(facts_, walk_.duration(work)) < kLeastReduction * facts_.unit.baseline_ns.mid)
      return;
    const double left = other / own;
    Intervention out = from_remedy(kBlocks);
    scale_row(facts_, row, {0.5, std::min(0.5, 2 * left), left}, out, 0.5 * left);
    name_kernel(kernel, out);
    out.evidence.push_back(
        {"a kernel between setting a few bytes and copying as many to the host: a reduction",
         fmt::format(
             "{}, {} a launch, {}", short_label(kernel), short_ns(own),
             of_total(in_one_unit(facts_, walk_.duration(work)), facts_.unit.baseline_ns.mid)),
         "timeline"});
    out.evidence.push_back(
        {"a pass by the kernel with the most threads",
         fmt::format("{}, {} a launch, {} threads against {}", short_label(*pass), short_ns(other),
                     si(threads_of(*pass), ""), si(threads_of(kernel), "")),
         "launch"});
    out.assumptions.emplace_back(
        "the reduction reads as much data as that kernel does; it takes one to two of its passes, "
        "at worst half of its present time");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  std::map<std::size_t, Launches> found_;
  std::map<std::size_t, double> by_thread_;
};

}  // namespace

const Rule kAtomicsRule = {{&kBlocks, 1},
                           [](Walk& walk, Advice& advice) { Atomics(walk, advice).run(); }};

}  // namespace purlin::analyze
