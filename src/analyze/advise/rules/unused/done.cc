// SPDX-License-Identifier: Apache-2.0
// Rounds of a solver or a recurrence that go on for items that are done. Each round computes all
// items, and a select by one flag for each item keeps the earlier result of those that are done.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kGoOn = {
    "Work only on the items that are not done", "hours",
    "PyTorch: every few rounds, keep what goes on: x = x[~done], and write the rest to the result|"
    "PyTorch: stop when all are done, tested every few rounds|"
    "sequences of several lengths: sort them, or torch.nn.utils.rnn.pack_padded_sequence",
    "the test of what is done makes the host wait: not in every round"};

constexpr std::size_t kLeastRounds = 4;
constexpr double kSmallFlags = 8;               // times fewer flags than elements that are kept
constexpr Interval3 kOfRounds = {0, 0.5, 0.9};  // how many items are done when is not recorded
constexpr double kLeastOfUnit = 0.05;

class Done {
 public:
  Done(Walk& walk, Advice& advice) : walk_(walk), facts_(walk.facts()), advice_(advice) {}

  void run() {
    for (const Launches& run : walk_.runs()) look_at(run);
    if (in_one_unit(facts_, walk_.duration(work_)) >= kLeastOfUnit * facts_.unit.baseline_ns.mid)
      add();
  }

 private:
  // Flags of a select that keeps whole items; 0 where it is none.
  double flags_of(std::uint32_t launch) const {
    const KernelStat& kernel = walk_.stat(launch);
    if (kernel.op != "aten::where") return 0;
    Problem problem;
    problem.dimensions = dimensions_from_text(kernel.shape);
    const auto n = static_cast<double>(problem["n"]);
    const double flags = static_cast<double>(problem["in"]) - 2 * n;
    return problem["inputs"] == 3 && flags > 1 && kSmallFlags * flags <= n ? flags : 0;
  }
  // One problem, or one row, for each flag.
  bool computes(std::uint32_t launch, double flags) const {
    const Touch& touch = walk_.touch(launch);
    return touch.kind == TouchKind::kProduct &&
           (touch.batch == flags || (touch.batch == 1 && touch.m == flags));
  }

  void look_at(const Launches& run) {
    std::map<std::size_t, std::vector<std::size_t>> selects;  // positions, by report row
    for (std::size_t i = 0; i < run.size(); ++i)
      if (!walk_.taken(run[i]) && flags_of(run[i]) > 0)
        selects[facts_.row_of[walk_.at(run[i]).row]].push_back(i);
    for (const auto& [row, at] : selects) {
      if (at.size() < kLeastRounds) continue;
      Launches work;
      std::size_t rounds = 0;
      for (std::size_t k = 1; k < at.size(); ++k) {
        const auto begin = run.begin() + static_cast<std::ptrdiff_t>(at[k - 1]) + 1,
                   end = run.begin() + static_cast<std::ptrdiff_t>(at[k]) + 1;
        const double flags = flags_of(run[at[k]]);
        if (std::none_of(begin, end, [&](std::uint32_t one) { return computes(one, flags); }) ||
            std::any_of(begin, end, [&](std::uint32_t one) { return walk_.taken(one); }))
          continue;
        work.insert(work.end(), begin, end);
        ++rounds;
      }
      if (rounds + 1 < kLeastRounds) continue;
      flags_ = flags_of(run[at.back()]);
      rounds_ = rounds + 1;
      walk_.take(work);
      work_.insert(work_.end(), work.begin(), work.end());
    }
  }

  void add() {
    Intervention out = from_remedy(kReduceRemedy, kGoOn);
    remove_launches(walk_, work_, kOfRounds, out);
    for (const std::uint32_t launch : work_) name_kernel(walk_.stat(launch), out);
    out.evidence.push_back(
        {"rounds that end with a select by one flag for each item",
         fmt::format("{} of {} items", counted(static_cast<double>(rounds_), "round"),
                     si(flags_, "")),
         "timeline and shapes"});
    out.evidence.push_back(
        {"their time after the first one",
         of_total(in_one_unit(facts_, walk_.duration(work_)), facts_.unit.baseline_ns.mid),
         "timeline"});
    out.assumptions.emplace_back(
        "the flags say which items are done, and many are done early: else the low estimate "
        "holds, which is 0");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  Launches work_;
  double flags_ = 0;
  std::size_t rounds_ = 0;
};

}  // namespace

const Rule kDoneRule = {{}, [](Walk& walk, Advice& advice) { Done(walk, advice).run(); }};

}  // namespace purlin::analyze
