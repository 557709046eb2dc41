// SPDX-License-Identifier: Apache-2.0
// CounterFeatures: the hardware's counters as features of a config that was not run.
//
// A counter of a config, such as the instructions it executes or the sectors it reads, follows from
// its parameters by simpler rules than its time does, and the time follows from the counters. So a
// model of each counter is fitted to what was profiled, and what it predicts of a config is put
// before the model of the time, which is fitted to counters that were measured.
//
// They also say what binds: no config has been seen to move, or execute, more of something in a
// millisecond than the best of them, so what a config is expected to move of it takes at least so
// long. Thread-safety: belongs to one thread. Never fails; without counters it has no features.
#pragma once

#include "tune/model/regressor.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace purlin::tune {

class CounterFeatures {
 public:
  // Of an observation, given as its row of parameters; empty counters: it was not profiled.
  void add(std::span<const std::uint8_t> row, const std::map<std::string, double>& counters);
  // Chooses the counters that say something and fits a model of each. `log_times`: of the
  // observations, in ms; nullopt: it failed.
  void fit(std::size_t row_width, std::span<const std::optional<float>> log_times,
           const FitRegressor& regressor, Random& random);

  // Bytes below 64 that follow a row's own; 0 before enough was profiled.
  std::size_t width() const { return chosen_.size(); }
  // Of the observations, one after another: what was measured, or expected where it was not.
  std::span<const std::uint8_t> observed() const { return observed_; }
  // Of rows of parameters, one after another: what is expected.
  std::vector<std::uint8_t> expected(std::span<const std::uint8_t> rows,
                                     std::size_t row_width) const;
  // Of rows of parameters: the log of the time that what binds each takes at least. Empty where no
  // counter is an amount.
  std::vector<float> floors(std::span<const std::uint8_t> rows, std::size_t row_width) const;

 private:
  struct Chosen {
    std::string name;
    std::vector<float> limits;  // of the bytes, ascending
    std::unique_ptr<Regressor> model;
    std::optional<float> highest_rate;  // of an amount: the log of the most of it in a ms
  };
  static std::uint8_t byte_of(const std::vector<float>& limits, float value);

  std::vector<std::uint8_t> rows_;
  std::vector<std::map<std::string, float>> logs_;  // of each observation's counters
  std::vector<Chosen> chosen_;
  std::vector<std::uint8_t> observed_;  // bytes of each observation
};

}  // namespace purlin::tune
