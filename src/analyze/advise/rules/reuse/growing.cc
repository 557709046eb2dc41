// SPDX-License-Identifier: Apache-2.0
// Generation without a cache: the products of one network come again and again, each time with as
// many rows more as there are sequences. Each pass computes all earlier rows again.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kKeep = {
    "Keep the keys and values of earlier tokens", "hours",
    "PyTorch: with Hugging Face, use_cache=True and past_key_values; torch.nn: write the new keys "
    "and values into a cache|multiply only the rows of the new tokens",
    "earlier rows must not depend on later ones: the attention must be causal"};

constexpr std::size_t kFewestPasses = 4;
constexpr double kMostNew = 0.125;  // of the rows of a pass
constexpr Interval3 kNewCompute = {0.2, 0.5, 0.8}, kNewMemory = {0.25, 0.5, 0.85};
// Of an attention's time, with one query for each sequence and head. High, its keys are split over
// the device; low, one block reads all of a head.
constexpr Interval3 kOneQuery = {4, 1.5, 0.1};

class Growing {
 public:
  Growing(Walk& walk, Advice& advice) : walk_(walk), advice_(advice) {
    for (const Launches& run : walk_.runs()) all_.insert(all_.end(), run.begin(), run.end());
    seen_.assign(all_.size(), false);
  }

  void run() {
    if (walk_.trains()) return;
    std::map<std::pair<double, double>, Launches> by_weights;  // places in all_
    for (std::uint32_t i = 0; i < all_.size(); ++i) {
      const Touch& touch = walk_.touch(all_[i]);
      if (touch.kind == TouchKind::kProduct && touch.batch == 1)
        by_weights[{touch.columns, touch.depth}].push_back(i);
    }
    for (const auto& [weights, places] : by_weights) passes(places);
    if (!work_.empty()) add();
  }

 private:
  struct Pass {
    double rows = 0, more = 0;          // and than the pass before
    std::uint32_t first = 0, last = 0;  // places
  };

  // What the launches of one product's weights show: passes whose rows grow by one number.
  void passes(const Launches& places) {
    std::vector<Pass> found;
    for (const std::uint32_t place : places) {
      const double rows = walk_.touch(all_[place]).m;
      if (found.empty() || found.back().rows != rows)
        found.push_back({rows, found.empty() ? 0 : rows - found.back().rows, place, place});
      found.back().last = place;
    }
    std::size_t begin = 0;
    while (begin < found.size()) {
      std::size_t end = begin + 1;
      while (end < found.size() && found[end].more == found[begin + 1].more) ++end;
      const double more = end - begin > 1 ? found[begin + 1].more : 0;
      if (end - begin >= kFewestPasses && more > 0 && more <= kMostNew * found[begin].rows)
        for (std::size_t i = begin + 1; i < end; ++i) take(found[i], found[i - 1].last + 1);
      begin = end - (end - begin > 1 && end < found.size() && found[end].more > 0 ? 1 : 0);
    }
  }
  // Work on the rows of a pass, from what follows the pass before.
  void take(const Pass& pass, std::uint32_t from) {
    for (std::uint32_t i = from; i <= pass.last; ++i) {
      const std::uint32_t one = all_[i], row = walk_.at(one).row;
      if (seen_[i]) continue;
      const Touch& touch = walk_.touch(one);
      const bool of_rows =
          touch.kind == TouchKind::kProduct
              ? touch.m == pass.rows
              : (touch.light() && std::fmod(touch.n, pass.rows) == 0) || queries(one) == pass.rows;
      if (!of_rows) continue;
      seen_[i] = true;
      work_[row].push_back(one);
      new_[row] = pass.more;
    }
    rows_ = pass.rows, more_ = pass.more;
  }
  // Of an attention; a row's text is read once.
  double queries(std::uint32_t activity) {
    const auto [found, is_new] = queries_.try_emplace(walk_.at(activity).row, 0);
    if (is_new) {
      Problem problem;
      problem.dimensions = dimensions_from_text(walk_.stat(activity).shape);
      found->second = static_cast<double>(problem["Sq"] * std::max<std::int64_t>(1, problem["B"]));
    }
    return found->second;
  }

  Interval3 left_of(std::uint32_t row, double ns) const {
    const Facts& facts = walk_.facts();
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[row]];
    const Touch& touch = walk_.row_touch(row);
    const double least = std::min(1.0, kLeastLaunch / ns);
    if (touch.light()) {
      const double left = std::max(least, new_.at(row) / rows_);
      return {std::min(1.0, 2 * left), left, left};
    }
    if (touch.kind != TouchKind::kProduct) return kOneQuery;
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    const double part = new_.at(row) / touch.m;
    const double bytes =
        touch.in_size * (touch.weights + part * touch.m * (touch.depth + touch.columns));
    return each_scenario([&](const auto& of) {
      return std::min(
          1.0, roof_ns(peaks, part * touch.flops(), bytes, of(kNewCompute), of(kNewMemory)) / ns);
    });
  }
  void add() {
    const Facts& facts = walk_.facts();
    Intervention out = reuse_result();
    out.title = kKeep.title;
    out.how = split(kKeep.how, '|');
    out.guard = kKeep.guard;
    double all = 0;
    for (auto& [row, work] : work_) {
      const double ns = walk_.duration(work);
      const Interval3 left = left_of(row, ns / static_cast<double>(work.size()));
      out.saved_ns = out.saved_ns +
                     facts.end_to_end(facts.row_of[row], {ns * (1 - left.low), ns * (1 - left.mid),
                                                          ns * (1 - left.high)});
      name_kernel(facts.rows.kernels[facts.row_of[row]], out);
      out.change.edits.emplace_back(edit::Scale{Affected::of(work), left});
      all += ns;
    }
    out.saved_ns = facts.capped(out.saved_ns);
    out.evidence.push_back(
        {"passes whose products have the same weights and more rows each time",
         fmt::format("{:.0f} rows more than the pass before, of {:.0f} in the last", more_, rows_),
         "timeline and shapes"});
    out.evidence.push_back({"kernels on the rows of such passes",
                            of_total(in_one_unit(facts, all), facts.unit.baseline_ns.mid),
                            "timeline and shapes"});
    out.assumptions.emplace_back(
        "a pass needs the new rows only; an attention of one query may take longer than of all");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Launches all_;
  std::vector<bool> seen_;                             // places
  std::unordered_map<std::uint32_t, double> queries_;  // by profile row
  std::map<std::uint32_t, Launches> work_;             // by profile row
  std::map<std::uint32_t, double> new_;                // rows, by profile row
  double rows_ = 0, more_ = 0;
};

}  // namespace

const Rule kGrowingRule = {{}, [](Walk& walk, Advice& advice) { Growing(walk, advice).run(); }};

}  // namespace purlin::analyze
