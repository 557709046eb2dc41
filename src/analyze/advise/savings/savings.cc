// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/savings/savings.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

std::string lowered(std::string confidence, int letters) {
  if (confidence.size() == 1)
    confidence[0] = static_cast<char>(std::min<int>('D', confidence[0] + letters));
  return confidence;
}

// Of the unit's time in the same scenario: what the recorder added to the one it also added to the
// other.
void share_of_unit(const Unit& unit, Intervention& one) {
  const Interval3& base = unit.baseline_ns;
  const auto share = [](double saved, double whole) {
    return whole > 0 ? std::min(1.0, saved / whole) : 0;
  };
  const Interval3& saved = one.saved_ns;
  one.saved_share = bounded(
      {share(saved.low, base.low), share(saved.mid, base.mid), share(saved.high, base.high)}, 1);
}

void move_ends(const Unit& unit, Intervention& one) {
  const double base = unit.baseline_ns.mid;
  if (base <= 0) return;
  one.saved_ns.low -= one.instead_ns;
  one.saved_share.low -= one.instead_ns / base;
  if (one.estimate != "replay") return;
  const double more = std::clamp(1 - one.saved_share.high, 0.0, one.besides_ns / base);
  one.saved_ns.high += more * base;
  one.saved_share.high += more;
}

}  // namespace

void add_savings(const Facts& facts, std::vector<Intervention>& interventions) {
  const Replayer* replayer = facts.replayer.get();
  const double step = replayer != nullptr ? replayer->quality().baseline_ns.mid : 0;
  const double scale = step > 0 ? facts.unit.baseline_ns.mid / step : 1;  // to one unit
  for (Intervention& one : interventions) {
    if (one.change.empty() || replayer == nullptr) {
      one.estimate = "kernels";
      share_of_unit(facts.unit, one);
    } else {
      const Saving saving = replayer->saving(one.change);
      // Its work may lie in the steps that are not replayed.
      if (facts.unit.long_steps > 0 && saving.ns.high <= 0 && one.saved_ns.mid > 0) {
        one.estimate = "kernels";
        share_of_unit(facts.unit, one);
        move_ends(facts.unit, one);
        continue;
      }
      one.estimate = "replay";
      one.saved_share = saving.share;
      one.saved_ns = saving.ns * scale;
      one.confidence = lowered(one.confidence, replayer->quality().lower_confidence);
    }
    move_ends(facts.unit, one);
  }
}

std::size_t drop_below_spread(const Facts& facts, std::vector<Intervention>& interventions) {
  if (facts.replayer == nullptr) return 0;
  // A saving is one of the mean step, so the mean's spread is what hides it.
  const ReplayQuality& quality = facts.replayer->quality();
  const double spread = quality.step_spread / std::sqrt(std::max(1.0, quality.steps));
  return std::erase_if(interventions, [&](const Intervention& one) {
    return one.estimate == "replay" && one.saved_share.mid < spread;
  });
}

std::vector<CriticalWork> name_critical_path(const Facts& facts, const Replayed& replayed) {
  constexpr std::size_t kParts = 12;
  constexpr double kSmallPart = 0.005;
  const Timeline& timeline = facts.profile->timeline;
  const auto name = [&](std::uint32_t index) {
    return index < timeline.names.size() ? timeline.names[index] : std::string();
  };
  const double step = replayed.step_ns;
  std::vector<CriticalWork> out;
  for (const CriticalPart& part : facts.replayer->critical_path(replayed)) {
    CriticalWork one;
    one.kind = to_text(part.kind);
    one.ns = part.ns;
    one.share = step > 0 ? part.ns / step : 0;
    one.count = part.count;
    if (part.activity < timeline.activities.size() &&
        (part.kind == EdgeKind::kRun || part.kind == EdgeKind::kTransfer)) {
      const Activity& activity = timeline.activities[part.activity];
      if (activity.kind != ActivityKind::kKernel) {
        if (activity.row < facts.profile->copies.size())
          one.name = facts.profile->copies[activity.row].kind;
      } else if (activity.row < facts.row_of.size()) {
        one.name = facts.rows.kernels[facts.row_of[activity.row]].label;
      }
    } else if (part.call < timeline.calls.size()) {
      const Call& call = timeline.calls[part.call];
      one.name = name(call.name);
      if (call.op < timeline.ops.size())
        one.name = name(timeline.ops[call.op].name) + " (" + one.name + ")";
    }
    const auto same = std::find_if(out.begin(), out.end(), [&](const CriticalWork& known) {
      return known.kind == one.kind && known.name == one.name;
    });
    if (same == out.end()) {
      out.push_back(std::move(one));
    } else {
      same->ns += one.ns;
      same->share += one.share;
      same->count += one.count;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const CriticalWork& a, const CriticalWork& b) { return a.ns > b.ns; });
  std::erase_if(out, [&](const CriticalWork& one) { return one.ns < kSmallPart * step; });
  if (out.size() > kParts) out.resize(kParts);
  return out;
}

void add_replay(const Facts& facts, Advice& advice) {
  if (facts.replayer == nullptr) return;
  advice.replay = facts.replayer->quality();
  advice.critical_path = name_critical_path(facts, facts.replayer->before());
}

}  // namespace purlin::analyze
