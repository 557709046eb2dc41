// SPDX-License-Identifier: Apache-2.0
// Local search: a random sample, then first-improvement hill climbing over Hamming neighbours from
// its best, and from the next best config not climbed from yet once a climb ends; each restart also
// draws a few new configs. `auto` is this with every eighth config drawn at random.
#include "tune/search/strategy.h"

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>

namespace purlin::tune {
namespace {

constexpr std::size_t kDrawnPerRestart = 4;

struct LocalOptions {
  std::string_view name;
  std::size_t first_sample = 1;  // configs drawn before the first climb
  std::size_t draw_every = 0;    // one in so many is drawn at random while climbing; 0 = none
};

class LocalSearch : public Strategy {
 public:
  LocalSearch(const StrategyRequest& request, const LocalOptions& options)
      : space_(request.space),
        options_(options),
        random_(request.seed),
        shuffle_(space_.size(), random_.next()),
        to_draw_(options.first_sample) {}
  std::string_view name() const override { return options_.name; }

  std::optional<std::size_t> ask() override {
    if (to_draw_ > 0) {
      --to_draw_;
      return draw();
    }
    if (options_.draw_every > 0 && ++asked_ % options_.draw_every == 0) return draw();
    while (true) {
      while (!queue_.empty()) {
        const std::size_t index = queue_.front();
        queue_.pop_front();
        if (seen_.insert(index).second) {
          outstanding_.insert(index);
          return index;
        }
      }
      if (!outstanding_.empty()) return std::nullopt;  // they may show the way
      if (starts_.empty()) return draw();              // nothing worked so far, or all is climbed
      climb_from(*starts_.begin());
      if (climbs_++ > 0) to_draw_ = kDrawnPerRestart;
    }
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    seen_.insert(index);
    outstanding_.erase(index);
    if (!outcome.time_ms) return;
    const double time_ms = *outcome.time_ms;
    starts_.insert({time_ms, index});
    // First improvement: leave what is left of the old neighbourhood for a later restart.
    if (climbs_ > 0 && time_ms < top_ms_) climb_from({time_ms, index});
  }

 private:
  using Start = std::pair<double, std::size_t>;

  void climb_from(Start start) {
    starts_.erase(start);
    top_ms_ = start.first;
    std::vector<std::size_t> neighbours = space_.neighbours(start.second);
    random_.shuffle(neighbours);
    queue_.assign(neighbours.begin(), neighbours.end());
  }

  std::optional<std::size_t> draw() {
    while (const std::optional<std::size_t> index = shuffle_.next()) {
      if (!seen_.insert(*index).second) continue;
      outstanding_.insert(*index);
      return index;
    }
    return std::nullopt;
  }

  const Space& space_;
  LocalOptions options_;
  Random random_;
  Shuffle shuffle_;
  std::size_t to_draw_;
  std::size_t asked_ = 0, climbs_ = 0;
  std::unordered_set<std::size_t> seen_, outstanding_;
  std::set<Start> starts_;  // evaluated and not climbed from, fastest first
  std::deque<std::size_t> queue_;
  double top_ms_ = 0;  // of the present climb
};

}  // namespace

std::unique_ptr<Strategy> make_local(const StrategyRequest& request) {
  return std::make_unique<LocalSearch>(request, LocalOptions{"local", 8, 0});
}

// A fifth of the budget, within bounds, goes into finding where to climb: on the recorded spaces
// fewer draws climb the wrong hill, and more leave no time to climb.
std::unique_ptr<Strategy> make_cold_auto(const StrategyRequest& request) {
  if (request.evaluations >= request.space.size()) return make_exhaustive(request);
  const std::size_t sample =
      request.evaluations == 0 ? 30 : std::clamp<std::size_t>(request.evaluations / 5, 5, 50);
  return std::make_unique<LocalSearch>(request, LocalOptions{"auto", sample, 8});
}

std::unique_ptr<Strategy> make_auto(const StrategyRequest& request) {
  const bool known = std::any_of(request.priors.begin(), request.priors.end(),
                                 [](const PriorRun& run) { return !run.times.empty(); });
  return known ? make_transfer(request) : make_cold_auto(request);
}

}  // namespace purlin::tune
