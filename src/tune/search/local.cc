// SPDX-License-Identifier: Apache-2.0
// Three local searches over Hamming neighbours. `local` climbs from the best of a random sample
// and, once a climb ends, from the next best config not climbed from yet; each restart also draws a
// few new configs. It moves to the first neighbour that is faster. `ils` climbs as `local` does,
// but goes on from a few random steps away from the best. make_climb() climbs as `local` does, but
// only from reported configs, and asks first for the neighbours that are expected to be fast.
#include "tune/search/ledger.h"
#include "tune/search/strategy.h"

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>
#include <utility>

namespace purlin::tune {
namespace {

constexpr std::size_t kDrawnPerRestart = 4;
constexpr int kKick = 3;  // steps away from the best at which ils goes on

struct LocalOptions {
  std::string_view name;
  std::size_t first_sample = 1;  // configs drawn before the first climb
  bool kick = false;
  std::size_t drawn_per_restart = kDrawnPerRestart;
};

class LocalSearch : public Strategy {
 public:
  LocalSearch(const StrategyRequest& request, const LocalOptions& options,
              ExpectedTime expected = {})
      : space_(request.space),
        options_(options),
        expected_(std::move(expected)),
        random_(request.seed),
        ledger_(space_, random_),
        to_draw_(options.first_sample - std::min(options.first_sample, request.drawn)) {}
  std::string_view name() const override { return options_.name; }

  std::optional<std::size_t> ask() override {
    if (to_draw_ > 0) {
      --to_draw_;
      return draw();
    }
    while (true) {
      while (!queue_.empty()) {
        const std::size_t index = queue_.front();
        queue_.pop_front();
        if (ledger_.take(index)) {
          outstanding_.insert(index);
          return index;
        }
      }
      if (!outstanding_.empty()) return std::nullopt;  // they may show the way
      if (starts_.empty()) return draw();              // nothing worked so far, or all is climbed
      const Start start = *starts_.begin();
      const bool goes_on = climbs_ == 0 || start.first < top_ms_;
      if (!goes_on && options_.kick) return kick();
      climb_from(start);
      if (!goes_on) to_draw_ = options_.drawn_per_restart;
    }
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    ledger_.take(index);
    outstanding_.erase(index);
    if (!outcome.time_ms) return;
    const double time_ms = *outcome.time_ms;
    starts_.insert({time_ms, index});
    if (best_ms_ <= 0 || time_ms < best_ms_) {
      best_ms_ = time_ms;
      best_ = index;
    }
    const bool kicked = kicked_ == index;
    if (kicked) kicked_.reset();
    // What is left of the old neighbourhood is for a later restart.
    if (climbs_ > 0 && (kicked || time_ms < top_ms_)) climb_from({time_ms, index});
  }

 private:
  using Start = std::pair<double, std::size_t>;

  void climb_from(Start start) {
    starts_.erase(start);
    top_ms_ = start.first;
    ++climbs_;
    std::vector<std::size_t> neighbours = space_.neighbours(start.second);
    random_.shuffle(neighbours);
    if (expected_)
      std::ranges::stable_sort(neighbours, {}, [&](std::size_t index) { return expected_(index); });
    queue_.assign(neighbours.begin(), neighbours.end());
  }

  std::optional<std::size_t> draw() { return asked(ledger_.draw()); }

  // A climb begins there, even if it is slow.
  std::optional<std::size_t> kick() {
    queue_.clear();
    std::size_t at = best_;
    for (int i = 1; i < kKick; ++i) at = ledger_.step(at);
    kicked_ = asked(ledger_.draw_near(at));
    return kicked_;
  }

  std::optional<std::size_t> asked(std::optional<std::size_t> index) {
    if (index) outstanding_.insert(*index);
    return index;
  }

  const Space& space_;
  LocalOptions options_;
  ExpectedTime expected_;  // empty: neighbours are asked for in random order
  Random random_;
  Ledger ledger_;
  std::size_t to_draw_;
  std::size_t climbs_ = 0;
  std::size_t best_ = 0;
  double best_ms_ = 0;
  std::optional<std::size_t> kicked_;  // where ils goes on, until its result arrives
  std::unordered_set<std::size_t> outstanding_;
  std::set<Start> starts_;  // evaluated and not climbed from, fastest first
  std::deque<std::size_t> queue_;
  double top_ms_ = 0;  // of the present climb
};

}  // namespace

std::unique_ptr<Strategy> make_local(const StrategyRequest& request) {
  return std::make_unique<LocalSearch>(request, LocalOptions{"local", 30, false});
}

std::unique_ptr<Strategy> make_ils(const StrategyRequest& request) {
  return std::make_unique<LocalSearch>(request, LocalOptions{"ils", 30, true});
}

std::unique_ptr<Strategy> make_climb(const StrategyRequest& request, ExpectedTime expected) {
  return std::make_unique<LocalSearch>(request, LocalOptions{"climb", 0, false, 0},
                                       std::move(expected));
}

}  // namespace purlin::tune
