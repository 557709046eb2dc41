// SPDX-License-Identifier: Apache-2.0
// Simulated annealing: steps to a random neighbour, always when it is faster, and when it is slower
// by a share s with probability exp(-s / temperature). The temperature falls from a half to a
// thousandth over the budget, or over 500 evaluations where that is not known; a walk that has
// stood still for long goes on from the best.
#include "tune/search/ledger.h"
#include "tune/search/strategy.h"

#include <cmath>

namespace purlin::tune {
namespace {

constexpr double kHot = 0.5, kCold = 0.001;
constexpr std::size_t kPatience = 30;

class Annealing : public Strategy {
 public:
  explicit Annealing(const StrategyRequest& request)
      : random_(request.seed),
        ledger_(request.space, random_),
        length_(request.evaluations > 0 ? static_cast<double>(request.evaluations) : 500) {}
  std::string_view name() const override { return "annealing"; }

  std::optional<std::size_t> ask() override {
    return best_ ? ledger_.draw_near(at_.index) : ledger_.draw();
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    ledger_.take(index);
    ++told_;
    ++stood_;
    if (outcome.time_ms) {
      const Place place{index, *outcome.time_ms};
      if (!best_ || place.time_ms < best_->time_ms) best_ = place;
      if (at_.time_ms <= 0 || accepts(place.time_ms)) {
        at_ = place;
        stood_ = 0;
      }
    }
    if (stood_ < kPatience || !best_) return;
    at_ = *best_;
    stood_ = 0;
  }

 private:
  struct Place {
    std::size_t index = 0;
    double time_ms = 0;
  };

  bool accepts(double time_ms) {
    const double progress = std::min(1.0, static_cast<double>(told_) / length_);
    const double temperature = kHot * std::pow(kCold / kHot, progress);
    const double slower = time_ms / at_.time_ms - 1;
    return random_.uniform() < std::exp(-slower / temperature);
  }

  Random random_;
  Ledger ledger_;
  double length_;
  std::size_t told_ = 0, stood_ = 0;
  Place at_;
  std::optional<Place> best_;
};

}  // namespace

std::unique_ptr<Strategy> make_annealing(const StrategyRequest& request) {
  return std::make_unique<Annealing>(request);
}

}  // namespace purlin::tune
