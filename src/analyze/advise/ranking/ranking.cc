// SPDX-License-Identifier: Apache-2.0
// In which order interventions are listed: by what they are worth, and the first few by what they
// save on top of those before them. Two changes against the same loss are not the first two
// interventions where another loss is left. A trade comes after what costs work only, unless that
// is little next to it.
#include "analyze/advise/ranking/ranking.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr double kOfAlternative = 0.25;  // what saves other time comes before
constexpr double kOfTrade = 0.25;        // what costs no precision comes before
constexpr std::size_t kPlacesShown = 3;  // that a report shows

bool before(const Intervention& a, const Intervention& b) {
  // Within a hundredth of each other, estimates are equal; the level decides.
  const double one = worth(a), other = worth(b);
  if (std::abs(one - other) > 0.01 * std::max(one, other)) return one > other;
  return a.level < b.level;
}

// What is left of a saving after other changes, as replay tells.
class Remainder {
 public:
  explicit Remainder(const Replayer& replayer)
      : replayer_(replayer), step_ns_(replayer.before().step_ns), reached_ns_(step_ns_) {}

  bool usable() const { return step_ns_ > 0; }
  void carry_out(const Intervention& one) {
    append(one.change, done_);
    reached_ns_ = std::min(reached_ns_, replayer_.after(done_).step_ns);
  }
  void put(Intervention& one) const {
    Change change = done_;
    append(one.change, change);
    const double more = std::max(0.0, reached_ns_ - replayer_.after(change).step_ns);
    one.on_top_share = std::min(more / step_ns_, std::max(0.0, one.saved_share.mid));
  }

 private:
  static void append(const Change& from, Change& into) {
    into.edits.insert(into.edits.end(), from.edits.begin(), from.edits.end());
  }
  const Replayer& replayer_;
  double step_ns_, reached_ns_;
  Change done_;
};

// Three cures of one loss: what the host takes for each launch. With mode="reduce-overhead",
// torch.compile makes CUDA graphs. Replay knows less of the host than of kernels, so it does not
// tell what the second of them adds.
bool spares_the_host(const Intervention& one) {
  return one.id == "cuda_graphs" || one.id == "compile_model" || one.id == "cut_host_work";
}

// The plan says so too: what another change restructures needs no tuning.
bool tunes_what_changes(const Intervention& one, std::span<const Intervention> earlier) {
  if (loss_level(one) != LossLevel::kTune) return false;
  return std::any_of(earlier.begin(), earlier.end(), [&](const Intervention& other) {
    return loss_level(other) == LossLevel::kRestructure &&
           std::any_of(one.kernels.begin(), one.kernels.end(), [&](const std::string& kernel) {
             return std::find(other.kernels.begin(), other.kernels.end(), kernel) !=
                    other.kernels.end();
           });
  });
}

// What an earlier one saves as well counts as an alternative to it.
double worth_on_top(const Intervention& one, bool alternative) {
  if (alternative) return kOfAlternative * worth(one);
  if (!one.on_top_share || one.saved_share.mid <= 0) return worth(one);
  const double left = *one.on_top_share / one.saved_share.mid;
  return worth(one) * (kOfAlternative + (1 - kOfAlternative) * left);
}

}  // namespace

double worth(const Intervention& one) {
  const double factor = one.effort == "hours" ? 1 : one.effort == "days" ? 0.5 : 0.25;
  return factor * (one.alternative ? kOfAlternative : 1) * one.saved_ns.mid;
}

// Insertion keeps what is given in order of saving; "equal" is not transitive, so no sort with it.
void rank(std::vector<Intervention>& interventions) {
  std::stable_sort(
      interventions.begin(), interventions.end(),
      [](const Intervention& a, const Intervention& b) { return worth(a) > worth(b); });
  for (std::size_t i = 1; i < interventions.size(); ++i)
    for (std::size_t k = i; k > 0 && before(interventions[k], interventions[k - 1]); --k)
      std::swap(interventions[k], interventions[k - 1]);
}

void rank_by_what_is_left(const Facts& facts, std::vector<Intervention>& interventions) {
  if (facts.replayer == nullptr) return;
  Remainder remainder(*facts.replayer);
  if (!remainder.usable()) return;
  for (std::size_t place = 1; place < std::min(kPlacesShown, interventions.size()); ++place) {
    if (interventions[place - 1].estimate != "replay") return;
    remainder.carry_out(interventions[place - 1]);
    for (std::size_t i = place; i < interventions.size(); ++i)
      if (interventions[i].estimate == "replay") {
        remainder.put(interventions[i]);
        if (tunes_what_changes(interventions[i], {interventions.data(), place}))
          interventions[i].on_top_share = 0;
      }
    const auto from = interventions.begin() + static_cast<std::ptrdiff_t>(place);
    const bool spared = std::any_of(interventions.begin(), from, spares_the_host);
    const auto on_top = [&](const Intervention& one) {
      return worth_on_top(one, spared && spares_the_host(one));
    };
    const auto most = std::max_element(
        from, interventions.end(),
        [&](const Intervention& a, const Intervention& b) { return on_top(a) < on_top(b); });
    std::rotate(from, most, most + 1);
    for (auto one = from + 1; one != interventions.end(); ++one) one->on_top_share.reset();
  }
}

void place_trades(Advice& advice) {
  std::vector<Intervention>&listed = advice.interventions, &trades = advice.trades;
  const auto price = [](const Intervention& trade) {
    return trade.saved_share.mid > 0 ? worth(trade) : 0;
  };
  std::stable_sort(trades.begin(), trades.end(), [&](const Intervention& a, const Intervention& b) {
    return price(a) > price(b);
  });
  std::size_t place = 0;
  auto next = listed.begin();
  for (Intervention& trade : trades) {
    for (; next != listed.end() && worth_on_top(*next, false) >= kOfTrade * price(trade); ++next)
      next->place = ++place;
    trade.place = ++place;
  }
  for (; next != listed.end(); ++next) next->place = ++place;
}

}  // namespace purlin::analyze
