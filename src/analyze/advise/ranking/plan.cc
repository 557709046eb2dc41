// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/ranking/plan.h"

#include "analyze/advise/facts.h"

#include <algorithm>
#include <set>

namespace purlin::analyze {
namespace {

constexpr double kObsolete = 0.3;  // of a step's saving is left

bool comes_late(const Intervention& one) { return loss_level(one) == LossLevel::kTune; }

bool share_kernels(const Intervention& a, const Intervention& b) {
  return std::any_of(a.kernels.begin(), a.kernels.end(), [&](const std::string& kernel) {
    return std::find(b.kernels.begin(), b.kernels.end(), kernel) != b.kernels.end();
  });
}

class Planner {
 public:
  Planner(const Facts& facts, Advice& advice) : facts_(facts), advice_(advice) {}

  void run() {
    for (auto* list : {&advice_.interventions, &advice_.trades})
      for (Intervention& one : *list) {
        one.at = loss_level(one);
        one.roi = 100 * one.saved_share.mid / effort_days(one.effort);
      }
    std::vector<std::size_t> order(advice_.interventions.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const Intervention &one = at(a), &other = at(b);
      if (comes_late(one) != comes_late(other)) return comes_late(other);
      return one.roi > other.roi;
    });
    for (const std::size_t index : order) add(index);
    mark_tunable();
  }

 private:
  const Intervention& at(std::size_t index) const { return advice_.interventions[index]; }

  // Tuning a kernel that an earlier step restructures saves nothing that is known.
  void add(std::size_t index) {
    const Intervention& one = at(index);
    PlanStep step{index, one.saved_share.mid, 0};
    if (comes_late(one)) step.obsolete_after = restructured_before(one.kernels);
    if (step.obsolete_after > 0) {
      step.saved_share = 0;
    } else if (one.estimate == "replay" && facts_.replayer != nullptr) {
      step.saved_share = by_replay(one);
      if (step.saved_share < kObsolete * one.saved_share.mid) step.obsolete_after = culprit(one);
    } else if (const std::size_t other = instead_of(one); other > 0) {
      const double saved = at(advice_.plan[other - 1].intervention).saved_share.mid;
      step.saved_share = std::max(0.0, one.saved_share.mid - saved);
      if (step.saved_share < kObsolete * one.saved_share.mid) step.obsolete_after = other;
    }
    // All steps together save no more than all, though some are estimated without a replay.
    step.saved_share = std::min(step.saved_share, left_);
    left_ -= step.saved_share;
    advice_.plan.push_back(step);
  }

  // On top of all the steps before it. A step that makes others slower does not let them save
  // twice.
  double by_replay(const Intervention& one) {
    const double step = facts_.replayer->before().step_ns;
    if (step <= 0) return 0;
    done_.edits.insert(done_.edits.end(), one.change.edits.begin(), one.change.edits.end());
    const double before = fastest_, after = facts_.replayer->after(done_).step_ns / step;
    fastest_ = std::min(before, after);
    return before - fastest_;
  }

  // The first step that saves the same time as this alternative: at the same level, or of the same
  // kernels; 0 = none. Without a replay nothing else tells what is left for the alternative.
  std::size_t instead_of(const Intervention& one) const {
    if (!one.alternative) return 0;
    for (std::size_t i = 0; i < advice_.plan.size(); ++i) {
      const Intervention& earlier = at(advice_.plan[i].intervention);
      if (loss_level(earlier) == loss_level(one) || share_kernels(earlier, one)) return i + 1;
    }
    return 0;
  }

  // The first step that touches the same kernels, else the first.
  std::size_t culprit(const Intervention& one) const {
    for (std::size_t i = 0; i < advice_.plan.size(); ++i)
      if (share_kernels(at(advice_.plan[i].intervention), one)) return i + 1;
    return advice_.plan.empty() ? 0 : 1;
  }

  std::size_t restructured_before(const std::vector<std::string>& kernels) const {
    for (std::size_t i = 0; i < advice_.plan.size(); ++i) {
      const Intervention& earlier = at(advice_.plan[i].intervention);
      if (loss_level(earlier) != LossLevel::kRestructure) continue;
      for (const std::string& kernel : kernels)
        if (std::find(earlier.kernels.begin(), earlier.kernels.end(), kernel) !=
            earlier.kernels.end())
          return i + 1;
    }
    return 0;
  }

  void mark_tunable() {
    for (ListedKernel& kernel : advice_.tune)
      kernel.obsolete_after = restructured_before({kernel.label});
  }

  const Facts& facts_;
  Advice& advice_;
  Change done_;
  double left_ = 1;     // share of the step that no step of the plan saves yet
  double fastest_ = 1;  // share of the step that the replay of all steps so far leaves
};

}  // namespace

double effort_days(std::string_view effort) {
  return effort == "hours" ? 0.5 : effort == "days" ? 3 : 15;
}

void add_plan(const Facts& facts, Advice& advice) { Planner(facts, advice).run(); }

}  // namespace purlin::analyze
