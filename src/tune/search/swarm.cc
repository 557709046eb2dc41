// SPDX-License-Identifier: Apache-2.0
// Two strategies whose members each hold a place and move it by the others' places: differential
// evolution and particle swarm. Places are positions in each parameter's list of values, moves are
// made one parameter at a time as far as constraints allow.
#include "tune/search/ledger.h"
#include "tune/search/strategy.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

namespace purlin::tune {
namespace {

constexpr std::size_t kMembers = 16;

class Swarm : public Strategy {
 public:
  explicit Swarm(const StrategyRequest& request)
      : random_(request.seed), space_(request.space), ledger_(request.space, random_) {}

  std::optional<std::size_t> ask() override {
    if (++asked_ <= kMembers || members_.size() < 4) return ledger_.draw();
    const std::size_t mover = turn_++ % members_.size();
    const std::size_t wanted = move(mover);
    const std::optional<std::size_t> index =
        ledger_.take(wanted) ? std::optional(wanted) : ledger_.draw_near(wanted);
    if (index) movers_[*index] = mover;
    return index;
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    ledger_.take(index);
    const auto found = movers_.find(index);
    const std::optional<std::size_t> mover =
        found == movers_.end() ? std::nullopt : std::optional(found->second);
    if (mover) movers_.erase(found);
    if (!outcome.time_ms) return;
    const Member place{index, index, *outcome.time_ms};
    if (!mover) {
      if (members_.size() < kMembers) members_.push_back(place);
    } else {
      arrive(members_[*mover], place);
    }
  }

 protected:
  struct Member {
    std::size_t at = 0, best = 0;  // configs
    double best_ms = 0;
  };

  virtual std::size_t move(std::size_t mover) = 0;
  virtual void arrive(Member& member, const Member& place) = 0;

  const Member& fastest() const {
    return *std::min_element(
        members_.begin(), members_.end(),
        [](const Member& a, const Member& b) { return a.best_ms < b.best_ms; });
  }
  std::uint16_t to_position(std::size_t parameter, double position) const {
    const double last = static_cast<double>(space_.parameters()[parameter].values.size() - 1);
    return static_cast<std::uint16_t>(std::lround(std::clamp(position, 0.0, last)));
  }

  Random random_;
  const Space& space_;
  Ledger ledger_;
  std::vector<Member> members_;

 private:
  std::size_t asked_ = 0, turn_ = 0;
  std::unordered_map<std::size_t, std::size_t> movers_;  // by the config asked for
};

// best/1/bin: the fastest place plus a part of the difference of two others', crossed with the
// member's own; kept where it is faster.
class DifferentialEvolution : public Swarm {
 public:
  using Swarm::Swarm;
  std::string_view name() const override { return "evolution"; }

 private:
  static constexpr double kFactor = 0.8, kCross = 0.7;

  std::size_t move(std::size_t mover) override {
    const Assignment best = ledger_.values(fastest().best);
    const Assignment one = ledger_.values(members_[random_.below(members_.size())].best);
    const Assignment other = ledger_.values(members_[random_.below(members_.size())].best);
    Assignment target(best.size());
    for (std::size_t i = 0; i < best.size(); ++i)
      target[i] = to_position(i, best[i] + kFactor * (static_cast<double>(one[i]) - other[i]));
    return ledger_.approach(members_[mover].best, target, kCross);
  }
  void arrive(Member& member, const Member& place) override {
    if (place.best_ms < member.best_ms) member = place;
  }
};

// Each particle drifts on, towards its own best place and towards the swarm's.
class ParticleSwarm : public Swarm {
 public:
  using Swarm::Swarm;
  std::string_view name() const override { return "swarm"; }

 private:
  static constexpr double kInertia = 0.6, kOwn = 1.2, kShared = 1.2;

  std::size_t move(std::size_t mover) override {
    const Member& member = members_[mover];
    const Assignment at = ledger_.values(member.at), own = ledger_.values(member.best);
    const Assignment shared = ledger_.values(fastest().best);
    velocities_.resize(kMembers);
    std::vector<double>& velocity = velocities_[mover];
    velocity.resize(at.size());
    Assignment target(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double here = at[i];
      velocity[i] = kInertia * velocity[i] + kOwn * random_.uniform() * (own[i] - here) +
                    kShared * random_.uniform() * (shared[i] - here);
      target[i] = to_position(i, here + velocity[i]);
    }
    return ledger_.approach(member.at, target, 1);
  }
  void arrive(Member& member, const Member& place) override {
    member.at = place.at;
    if (place.best_ms >= member.best_ms) return;
    member.best = place.best;
    member.best_ms = place.best_ms;
  }

  std::vector<std::vector<double>> velocities_;
};

}  // namespace

std::unique_ptr<Strategy> make_evolution(const StrategyRequest& request) {
  return std::make_unique<DifferentialEvolution>(request);
}

std::unique_ptr<Strategy> make_swarm(const StrategyRequest& request) {
  return std::make_unique<ParticleSwarm>(request);
}

}  // namespace purlin::tune
