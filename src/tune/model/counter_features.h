// SPDX-License-Identifier: Apache-2.0
// CounterFeatures: the hardware's counters as features of a config that was not run.
//
// A counter of a config, such as the instructions it executes or the sectors it reads, follows from
// its parameters by simpler rules than its time does. The time then follows from the counters. So
// one model for each counter is fitted to the profiled configs. Its predictions for a config are
// inputs of the model of the time, which is fitted to measured counters.
//
// The counters also give a lower bound of the time. The highest rate observed for a counter is the
// most that any config moved, or executed, in a millisecond. The amount that a config is expected
// to move takes at least the time that this rate needs. Thread-safety: belongs to one thread. Never
// fails; without counters it has no features.
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
