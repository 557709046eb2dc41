// SPDX-License-Identifier: Apache-2.0
// Rungs: tests the claim in use, "what the runs praise is fast here", one praised config at a time.
//
// A rung is a praised config with its result. Its rivals are configs that the runs did not choose:
// random ones, and the default. The rung is passed once it was faster than two of them. It is
// refuted once it lost to three before that. Four rivals decide, so by the binomial distribution a
// config of the fastest tenth is refuted in at most 0.4 % of the cases, and one of the slowest
// tenth passes in at most 5.3 %. A cold search draws as many configs, so they are no loss.
// Thread-safety: belongs to one thread. Never fails.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace purlin::tune {

class Rungs {
 public:
  static constexpr std::size_t kWins = 2, kLosses = 3;
  static constexpr std::size_t kDecisive = kWins + kLosses - 1;  // rivals

  // log times; nullopt: it failed, so all that worked are faster.
  void add_rival(std::optional<double> log_time) { rivals_.push_back(log_time); }
  bool passed(std::optional<double> log_time) const { return wins(log_time) >= kWins; }
  bool refuted(std::optional<double> log_time) const {
    const std::size_t won = wins(log_time);
    return won < kWins && rivals_.size() - won >= kLosses;
  }

 private:
  std::size_t wins(std::optional<double> log_time) const;

  std::vector<std::optional<double>> rivals_;
};

}  // namespace purlin::tune
