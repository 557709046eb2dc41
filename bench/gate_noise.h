// SPDX-License-Identifier: Apache-2.0
// Machines that make noise, for bench_gate_quality: what process launches would measure on them.
//
// A Machine is one session on one device: each process takes the next slot of its time, so drift,
// ramps and clock states hit the processes that happen to run then. Its numbers follow the noise
// models of the study the gate's design rests on (docs/concepts/gate-statistics.md). Deterministic
// in its seed; belongs to one thread.
#pragma once

#include "base/random.h"
#include "guard/gate/samples.h"
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace purlin::guard {

// One process: relative or absolute times of its iterations, with clocks where they are recorded.
struct Iterations {
  std::vector<double> times_ns, clocks_mhz;
};

// Student's t with three degrees of freedom, scaled to a standard deviation of one.
inline double heavy(Random& random) {
  double chi = 0;
  for (int i = 0; i < 3; ++i) {
    const double z = random.normal();
    chi += z * z;
  }
  return random.normal() / std::sqrt(chi / 3) / std::sqrt(3.0);
}

struct NoiseModel {
  std::string name, says;
  double within = 0.02;         // standard deviation of an iteration
  double between = 0.01;        // of a process
  bool heavy_tails = false;     // of processes, t3
  double state = 0, phi = 0;    // AR(1) of the machine, per slot
  double drift = 0;             // per slot
  double ramp = 0;              // approached over some 30 slots
  double clock_step = 0;        // slowdown of the low clock state, …
  double clock_switch = 0;      // … entered and left with this probability per slot
  double outliers = 0;          // share of iterations that take half as long again
  double autocorrelation = 0;   // of iterations inside a process
  bool records_clocks = false;  // then ramp and clock states are the clock's doing, and recorded
};

inline std::vector<NoiseModel> noise_models() {
  std::vector<NoiseModel> models;
  const auto add = [&](std::string name, std::string says) -> NoiseModel& {
    models.emplace_back();
    models.back().name = std::move(name);
    models.back().says = std::move(says);
    return models.back();
  };
  NoiseModel& quiet = add("quiet, clocks locked", "within 1 %, between 0.3 %");
  quiet.within = 0.01, quiet.between = 0.003;
  NoiseModel& typical = add("typical", "within 2 %, between 1 %, machine AR(0.9) 1 %");
  typical.state = 0.01, typical.phi = 0.9;
  NoiseModel& drift = add("drift", "typical without AR, and 0.3 % slower each process");
  drift.drift = 0.003;
  NoiseModel& ramp = add("thermal ramp", "4 % over the first 30 processes; clocks recorded");
  ramp.ramp = 0.04, ramp.records_clocks = true;
  NoiseModel& clock = add("clock states", "5 % slower state, Markov 0.06 per process; recorded");
  clock.clock_step = 0.05, clock.clock_switch = 0.06, clock.records_clocks = true;
  NoiseModel& blind = add("clock states, not recorded", "the same, clocks unknown");
  blind.clock_step = 0.05, blind.clock_switch = 0.06;
  NoiseModel& tails = add("heavy tails", "processes t3 with 1.5 %");
  tails.between = 0.015, tails.heavy_tails = true;
  NoiseModel& chain = add("autocorrelation", "iterations AR(0.95) 3 %, machine AR(0.7) 2 %");
  chain.within = 0.03, chain.autocorrelation = 0.95, chain.state = 0.02, chain.phi = 0.7;
  NoiseModel& noisy = add("noisy, shared", "within 5 %, between 2 %, AR(0.9) 2 %, 5 % outliers");
  noisy.within = 0.05, noisy.between = 0.02, noisy.state = 0.02, noisy.phi = 0.9;
  noisy.outliers = 0.05;
  return models;
}

class Machine {
 public:
  virtual ~Machine() = default;
  // One process of the kernel whose work is `shift` more than it was.
  virtual Iterations run(double shift) = 0;
  // Its medians alone, which for some machines is quicker than run().
  virtual ArmReading read(double shift) {
    const Iterations process = run(shift);
    return reading_of(process.times_ns, process.clocks_mhz);
  }
  // Opens a pair: where a recording has neighbours, it chooses two.
  virtual void pick() {}
};

inline constexpr int kIterations = 50;
inline constexpr double kTimeNs = 100000, kClockMhz = 1980;

class ModelMachine : public Machine {
 public:
  ModelMachine(const NoiseModel& model, const std::vector<double>& medians, std::uint64_t seed)
      : model_(model), medians_(medians), random_(seed) {
    if (model.phi > 0) state_ = random_.normal();
    low_ = model.clock_step > 0 && random_.uniform() < 0.5;
  }

  Iterations run(double shift) override {
    const Slot slot = next_slot();
    Iterations process;
    std::vector<double> noise = iterations(model_, random_);
    for (const double one : noise) {
      process.times_ns.push_back(kTimeNs * (1 + shift) * slot.time * (1 + one));
      process.clocks_mhz.push_back(slot.clock);
    }
    if (!model_.records_clocks) process.clocks_mhz.clear();
    return process;
  }

  ArmReading read(double shift) override {
    const Slot slot = next_slot();
    ArmReading reading;
    reading.time_ns =
        kTimeNs * (1 + shift) * slot.time * (1 + medians_[random_.below(medians_.size())]);
    if (model_.records_clocks) reading.cycles = reading.time_ns * slot.clock / 1e3;
    return reading;
  }

  // Many kernels in one process share its slot: what the suite's table uses.
  struct Slot {
    double time = 1, clock = kClockMhz;
  };
  Slot machine_slot() {
    ++slots_;
    Slot slot;
    if (model_.phi > 0)
      state_ = model_.phi * state_ + std::sqrt(1 - model_.phi * model_.phi) * random_.normal();
    if (model_.clock_switch > 0 && random_.uniform() < model_.clock_switch) low_ = !low_;
    slot.time += model_.state * state_ + model_.drift * slots_;
    const double clock =
        1 + (low_ ? model_.clock_step : 0) + model_.ramp * (1 - std::exp(-slots_ / 30.0));
    slot.time *= clock;
    slot.clock /= clock;
    return slot;
  }
  ArmReading read_in(const Slot& machine, double shift) {
    ArmReading reading;
    reading.time_ns = kTimeNs * (1 + shift) * machine.time * own() *
                      (1 + medians_[random_.below(medians_.size())]);
    if (model_.records_clocks) reading.cycles = reading.time_ns * machine.clock / 1e3;
    return reading;
  }

  static std::vector<double> iterations(const NoiseModel& model, Random& random) {
    std::vector<double> noise(kIterations);
    double chain = random.normal();
    const double phi = model.autocorrelation;
    for (double& one : noise) {
      const double fresh = random.normal();
      chain = phi > 0 ? phi * chain + std::sqrt(1 - phi * phi) * fresh : fresh;
      one = model.within * chain;
      if (model.outliers > 0 && random.uniform() < model.outliers) one += 0.5;
    }
    return noise;
  }

 private:
  double own() {
    return 1 + model_.between * (model_.heavy_tails ? std::clamp(heavy(random_), -20.0, 20.0)
                                                    : random_.normal());
  }
  Slot next_slot() {
    Slot slot = machine_slot();
    slot.time *= own();
    return slot;
  }

  const NoiseModel& model_;
  const std::vector<double>& medians_;
  Random random_;
  int slots_ = 0;
  double state_ = 0;
  bool low_ = false;
};

// The medians of many processes' own noise, drawn beforehand: a session draws from them in place of
// fifty iterations each time.
inline std::vector<double> within_medians(const NoiseModel& model, std::size_t count) {
  Random random(20261120);
  std::vector<double> medians;
  for (std::size_t i = 0; i < count; ++i)
    medians.push_back(median_of(ModelMachine::iterations(model, random)));
  return medians;
}

// Recorded processes of one kernel: a pair is two neighbours, each with its iterations drawn anew.
class RecordedMachine : public Machine {
 public:
  RecordedMachine(const KernelSamples& kernel, std::uint64_t seed)
      : kernel_(kernel), random_(seed) {}

  void pick() override {
    const std::size_t first = random_.below(kernel_.processes.size() - 1);
    const bool swap = random_.next() >> 63;
    next_[0] = first + swap;
    next_[1] = first + !swap;
    taken_ = 0;
  }
  Iterations run(double shift) override {
    const std::size_t index =
        taken_ < 2 ? next_[taken_++] : random_.below(kernel_.processes.size());
    const KernelSamples::Process& recorded = kernel_.processes[index];
    Iterations process;
    for (std::size_t i = 0; i < recorded.times_ns.size(); ++i) {
      const std::size_t draw = random_.below(recorded.times_ns.size());
      process.times_ns.push_back(recorded.times_ns[draw] * (1 + shift));
      process.clocks_mhz.push_back(recorded.clocks_mhz[draw]);
    }
    return process;
  }

 private:
  const KernelSamples& kernel_;
  Random random_;
  std::size_t next_[2] = {0, 0};
  int taken_ = 2;
};

// Readings of each recorded process with its iterations drawn anew, drawn beforehand: suites of
// many kernels take theirs from here.
using RecordedPool = std::vector<std::vector<ArmReading>>;
inline RecordedPool recorded_pool(const KernelSamples& kernel, std::size_t draws) {
  RecordedPool pool;
  Random random(20261120);
  for (const KernelSamples::Process& recorded : kernel.processes) {
    pool.emplace_back();
    for (std::size_t draw = 0; draw < draws; ++draw) {
      std::vector<double> times, clocks;
      for (std::size_t i = 0; i < recorded.times_ns.size(); ++i) {
        const std::size_t at = random.below(recorded.times_ns.size());
        times.push_back(recorded.times_ns[at]);
        clocks.push_back(recorded.clocks_mhz[at]);
      }
      pool.back().push_back(reading_of(times, clocks));
    }
  }
  return pool;
}

// A pair of neighbouring processes of the pool, in coin order.
inline Pair draw_recorded(const RecordedPool& pool, Random& random, double shift) {
  const std::size_t first = random.below(pool.size() - 1);
  const bool swap = random.next() >> 63;
  const auto one = [&](std::size_t process) {
    return pool[process][random.below(pool[process].size())];
  };
  Pair pair{one(first + swap), one(first + !swap)};
  pair.current.time_ns *= 1 + shift;
  pair.current.cycles *= 1 + shift;
  return pair;
}

}  // namespace purlin::guard
