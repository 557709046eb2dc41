// SPDX-License-Identifier: Apache-2.0
// Sums or maxima over sliding windows, each window read as a whole. Neighbouring windows share all
// but one element: doubled widths or a running sum need a few passes, however long a window is.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kSharedWindows = {
    "Let neighbouring windows share their work", "hours",
    "PyTorch: a maximum by doubling: y = torch.maximum(y[..., :-w], y[..., w:]) for w = 1, 2, 4, …|"
    "PyTorch: a sum or mean by torch.cumsum and one difference, in float32 or more|"
    "CUDA: a block scans its part of the row in shared memory; two axes one after the other",
    "a running sum loses digits where the values are much greater than the window's sum"};

constexpr std::string_view kViews[] = {"aten::unfold"};
constexpr double kWindowsOverlap = 4;   // times that an element is read
constexpr double kFarFromRoof = 8;      // times the memory's roof: the window sets the time
constexpr double kWindowDoublings = 8;  // where the window's width is not known
// Of the memory's bandwidth, what a pass reaches; ns that a pass takes at least: a host launches
// it op by op. High: a running sum, or one written for it.
constexpr Interval3 kWindowMemory = {0.25, 0.5, 0.8}, kPassLeast = {20'000, 12'000, 5'000};
constexpr double kPassesMore = 1.5, kPassesOfOne = 3;

class Windows {
 public:
  Windows(Walk& walk, Advice& advice)
      : walk_(walk), facts_(walk.facts()), advice_(advice), chains_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t launch : run)
        if (!walk_.taken(launch) && (pools(launch) || reads_views(launch))) {
          walk_.take({&launch, 1});
          chains_.add({&launch, 1});
        }
    for (const Chain* chain : chains_.all()) estimate(*chain);
  }

 private:
  // The memory would move what the kernel touches this many times over.
  double times_roof(const KernelStat& kernel, double bytes) const {
    const double bandwidth = facts_.bandwidth_of(kernel);
    return bandwidth > 0 && bytes > 0 ? kernel.duration.mean_ns() * bandwidth / (bytes * 1e9) : 0;
  }
  // A pooling whose windows begin at every element, or nearly so.
  bool pools(std::uint32_t launch) const {
    const Touch& touch = walk_.touch(launch);
    const KernelStat& kernel = walk_.stat(launch);
    return (kernel.op.find("max_pool") != std::string::npos ||
            kernel.op.find("avg_pool") != std::string::npos) &&
           kernel.op.find("backward") == std::string::npos && touch.kind == TouchKind::kReduction &&
           kWindowsOverlap * touch.out >= touch.n && kernel.duration.mean_ns() > kLeastWindows &&
           times_roof(kernel, touch.bytes()) >= kFarFromRoof;
  }
  // A reduction of a view that holds each element many times.
  bool reads_views(std::uint32_t launch) {
    const Touch& touch = walk_.touch(launch);
    if (touch.kind != TouchKind::kReduction || touch.out <= 1 ||
        walk_.duration(launch) < kLeastWindows)
      return false;
    const Timeline& timeline = facts_.profile->timeline;
    double source = 0;
    for (const Op* op : ops_before(timeline, walk_.at(launch), kViews)) {
      const auto inputs = input_extents(timeline, *op);
      if (!inputs.empty()) source = std::max(source, elements_of(inputs.front()));
    }
    // The window is the extent that goes; each of its positions holds the source, nearly.
    if (source <= 0 || touch.n < kWindowsOverlap * source || touch.n / touch.out < kWindowsOverlap)
      return false;
    if (times_roof(walk_.stat(launch), (source + touch.out) * touch.in_size) < kFarFromRoof)
      return false;
    sources_[facts_.row_of[walk_.at(launch).row]] = source;
    return true;
  }

  void estimate(const Chain& chain) {
    const std::size_t row = facts_.row_of[chain.rows.front()];
    const KernelStat& kernel = facts_.rows.kernels[row];
    const Touch& touch = walk_.row_touch(chain.rows.front());
    const auto found = sources_.find(row);
    const double source = found != sources_.end() ? found->second : touch.n;
    const double window = found != sources_.end() ? touch.n / touch.out : 0;
    const double doublings = window > 0 ? std::ceil(std::log2(window)) : kWindowDoublings;
    const double bytes = 3 * source * touch.in_size;  // two views are read, one is written
    const double bandwidth = facts_.bandwidth_of(kernel);
    const auto after = [&](double passes, double memory, double least) {
      return passes * std::max(least, bytes / (bandwidth * memory) * 1e9);
    };
    Intervention out = from_remedy(kReduceRemedy, kSharedWindows);
    out.evidence.push_back({problem_text(kernel),
                            fmt::format("{:.0f} times as long as its data takes at the bandwidth",
                                        times_roof(kernel, (source + touch.out) * touch.in_size)),
                            "timeline and shapes"});
    if (window > 0)
      out.evidence.push_back({"elements of a window, and of the array before unfold",
                              fmt::format("{:.0f} and {}", window, si(source, "")), "shapes"});
    put_chain(facts_, chain,
              {after(kPassesMore * doublings, kWindowMemory.low, kPassLeast.low),
               after(doublings, kWindowMemory.mid, kPassLeast.mid),
               after(kPassesOfOne, kWindowMemory.high, kPassLeast.high)},
              doublings,
              "the windows begin at every element or nearly so, and their width is a power of two "
              "or nearly so",
              "C", std::move(out), advice_);
  }

  static constexpr double kLeastWindows = 50'000;  // ns
  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  Chains chains_;
  std::map<std::size_t, double> sources_;  // elements, by report row
};

}  // namespace

const Rule kWindowsRule = {{}, [](Walk& walk, Advice& advice) { Windows(walk, advice).run(); }};

}  // namespace purlin::analyze
