// SPDX-License-Identifier: Apache-2.0
// How often the gate cries wolf, and how often it sees a slowdown, beside the rules people use.
//
// bench_gate_quality [RECORDING.csv[.gz] [TRIALS [SUITES]]]
// Noise comes from models (gate_noise.h) and, where a recording of one build is given
// (docs/formats/samples.md), from resampling its neighbouring processes. The gate is the shipped
// one, floors, looks, cycles and all. Deterministic; prints Markdown.
#include "base/text.h"
#include "gate_noise.h"
#include "gate_rivals.h"
#include "guard/gate/samples.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

namespace purlin::guard {
namespace {

constexpr double kShifts[] = {0, 0.03, 0.05, 0.10};
constexpr int kHistory = 30;  // commits that the rule from history has seen
constexpr int kSuiteKernels = 500;
constexpr int kSlowKernels = 5;  // of a suite in which something changed

// Splits trials over the machine's threads; each thread has a tally of its own.
template <class Tally>
Tally parallel(int trials, const std::function<void(int, Tally&)>& trial) {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Tally> tallies(threads);
  std::atomic<int> next{0};
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      for (int i = next++; i < trials; i = next++) trial(i, tallies[t]);
    });
  for (std::thread& thread : pool) thread.join();
  Tally sum;
  for (const Tally& tally : tallies) sum += tally;
  return sum;
}

// Where the noise of one kernel comes from; a session per trial.
struct Source {
  std::string name, says;
  std::function<std::unique_ptr<Machine>(std::uint64_t seed)> session;
};

Pair draw_pair(Machine& machine, Random& coins, double shift) {
  machine.pick();
  Pair pair;
  const bool current_first = coins.next() >> 63;
  for (const bool current : {current_first, !current_first})
    (current ? pair.current : pair.baseline) = machine.read(current ? shift : 0);
  return pair;
}

struct GateTally {
  int trials = 0, red = 0, open = 0, clocks = 0;
  double pairs = 0;
  GateTally& operator+=(const GateTally& other) {
    trials += other.trials, red += other.red, open += other.open, clocks += other.clocks;
    pairs += other.pairs;
    return *this;
  }
  std::string red_text() const { return fmt::format("{:.2f} %", 100.0 * red / trials); }
  std::string pairs_text() const { return fmt::format("{:.1f}", pairs / trials); }
};

// One kernel of a suite of many: the two stages, at the level of one flagged item.
GateTally gate(const Source& source, double shift, int trials, std::uint64_t salt) {
  return parallel<GateTally>(trials, [&](int trial, GateTally& tally) {
    const std::uint64_t seed = salt * 1000003 + static_cast<std::uint64_t>(trial);
    const std::unique_ptr<Machine> machine = source.session(seed);
    Random coins(~seed);
    Design design;
    design.one_stage_if_small = false;
    SuiteGate judge({Thresholds{}}, design);
    while (!judge.done()) judge.add(0, draw_pair(*machine, coins, shift));
    const ItemResult result = judge.result(0);
    ++tally.trials;
    tally.red += result.verdict == Verdict::kRegression;
    tally.clocks += result.cause == "clocks";
    tally.open += result.verdict == Verdict::kInconclusive;
    tally.pairs += result.pairs;
  });
}

// The smallest shift that is found in 95 % of runs, between steps of half a percent.
std::string smallest_found(const Source& source, int trials) {
  double before = 0;
  for (double shift = 0.02; shift < 0.2001; shift += 0.005) {
    const GateTally tally = gate(source, shift, trials, 900 + static_cast<int>(shift * 1000));
    const double power = static_cast<double>(tally.red) / tally.trials;
    if (power >= 0.95) {
      const double back = power > before ? 0.005 * (power - 0.95) / (power - before) : 0;
      return fmt::format("{:+.1f} %", (shift - std::min(back, 0.005)) * 100);
    }
    before = power;
  }
  return "> 20 %";
}

struct RivalTally {
  int trials = 0, nvbench = 0, u_test = 0, sigma = 0, mean = 0;
  RivalTally& operator+=(const RivalTally& other) {
    trials += other.trials, nvbench += other.nvbench, u_test += other.u_test;
    sigma += other.sigma, mean += other.mean;
    return *this;
  }
};

RivalTally rivals(const Source& source, double shift, int trials) {
  return parallel<RivalTally>(trials, [&](int trial, RivalTally& tally) {
    const std::unique_ptr<Machine> machine =
        source.session(77000000 + static_cast<std::uint64_t>(trial));
    machine->pick();
    const Iterations then = machine->run(0), now = machine->run(shift);
    ++tally.trials;
    tally.nvbench += nvbench_legacy_is_red(then, now);
    tally.u_test += u_test_is_red(then, now);
    tally.mean += mean_is_red(then, now);
    const auto best = [&](double slower) {
      const Iterations process = machine->run(slower);
      return *std::min_element(process.times_ns.begin(), process.times_ns.end());
    };
    std::vector<double> history;
    for (int commit = 0; commit < kHistory; ++commit) history.push_back(best(0));
    tally.sigma += five_sigma_is_red(history, best(shift));
  });
}

std::string share(int count, int trials) { return fmt::format("{:.1f}", 100.0 * count / trials); }

void kernel_tables(const std::vector<Source>& sources, int trials) {
  fmt::print(
      "## One kernel\n\n{} trials for each number. Red at +0 % is a false alarm, at more it is "
      "found. \"Open\": inconclusive.\n\n"
      "| noise | gate +0 % | +3 % | +5 % | +10 % | smallest found (95 %) | open +0 / +5 % | pairs "
      "+0 / +3 / +5 / +10 % |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
      trials);
  std::vector<std::vector<RivalTally>> others;
  GateTally total[4];
  for (const Source& source : sources) {
    GateTally tally[4];
    others.emplace_back();
    for (int i = 0; i < 4; ++i) {
      tally[i] = gate(source, kShifts[i], trials, static_cast<std::uint64_t>(i) + 1);
      total[i] += tally[i];
      others.back().push_back(rivals(source, kShifts[i], trials));
    }
    fmt::print("| {} | {} | {} | {} | {} | {} | {} / {} | {} / {} / {} / {} |\n", source.name,
               tally[0].red_text(), tally[1].red_text(), tally[2].red_text(), tally[3].red_text(),
               smallest_found(source, std::max(trials / 4, 200)), share(tally[0].open, trials),
               share(tally[2].open, trials), tally[0].pairs_text(), tally[1].pairs_text(),
               tally[2].pairs_text(), tally[3].pairs_text());
    std::fflush(stdout);
  }
  fmt::print("| **all** | {} | {} | {} | {} | | | {} / {} / {} / {} |\n", total[0].red_text(),
             total[1].red_text(), total[2].red_text(), total[3].red_text(), total[0].pairs_text(),
             total[1].pairs_text(), total[2].pairs_text(), total[3].pairs_text());
  fmt::print(
      "\nThe rules people use, on one process per arm (the last: on the best iteration of {} past "
      "processes and one now), in percent of runs that are red at +0 / +3 / +5 / +10 %:\n\n"
      "| noise | nvbench, legacy rule | Google Benchmark, U test 0.05 | mean > 5 % | 5 sigma of "
      "history |\n|---|--:|--:|--:|--:|\n",
      kHistory);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::string cells[4];
    for (const RivalTally& tally : others[i]) {
      const int counts[] = {tally.nvbench, tally.u_test, tally.mean, tally.sigma};
      for (int rule = 0; rule < 4; ++rule)
        cells[rule] += (cells[rule].empty() ? "" : " / ") + share(counts[rule], tally.trials);
    }
    fmt::print("| {} | {} | {} | {} | {} |\n", sources[i].name, cells[0], cells[1], cells[2],
               cells[3]);
  }
}

// A session of a whole suite: gives every wanted kernel its pair of the round.
struct SuiteSession {
  virtual ~SuiteSession() = default;
  virtual void round(SuiteGate& gate, const std::vector<std::size_t>& wanted, Random& coins,
                     const std::function<double(std::size_t)>& shift) = 0;
};

// All kernels of a class run in the same processes, so they share what the machine does.
class ModelSuite : public SuiteSession {
 public:
  struct Part {
    const NoiseModel* model;
    const std::vector<double>* medians;
    double share;
  };
  ModelSuite(const std::vector<Part>& parts, std::uint64_t seed) {
    double upto = 0;
    for (const Part& part : parts) {
      machines_.emplace_back(*part.model, *part.medians, seed * 31 + machines_.size());
      bounds_.push_back(upto += part.share);
    }
  }
  void round(SuiteGate& gate, const std::vector<std::size_t>& wanted, Random& coins,
             const std::function<double(std::size_t)>& shift) override {
    const bool current_first = coins.next() >> 63;
    std::vector<ModelMachine::Slot> first, second;
    for (ModelMachine& machine : machines_) first.push_back(machine.machine_slot());
    for (ModelMachine& machine : machines_) second.push_back(machine.machine_slot());
    for (const std::size_t item : wanted) {
      const double place = (static_cast<double>(item) + 0.5) / kSuiteKernels * bounds_.back();
      std::size_t part = 0;
      while (bounds_[part] < place) ++part;
      const auto &then = (current_first ? second : first)[part],
                 &now = (current_first ? first : second)[part];
      gate.add(item, {machines_[part].read_in(then, 0), machines_[part].read_in(now, shift(item))});
    }
  }

 private:
  std::vector<ModelMachine> machines_;
  std::vector<double> bounds_;
};

class RecordedSuite : public SuiteSession {
 public:
  RecordedSuite(const std::vector<RecordedPool>& pools, std::uint64_t seed)
      : pools_(pools), random_(seed) {}
  void round(SuiteGate& gate, const std::vector<std::size_t>& wanted, Random&,
             const std::function<double(std::size_t)>& shift) override {
    for (const std::size_t item : wanted)
      gate.add(item, draw_recorded(pools_[item % pools_.size()], random_, shift(item)));
  }

 private:
  const std::vector<RecordedPool>& pools_;
  Random random_;
};

struct SuiteTally {
  int suites = 0, alarms = 0, found = 0, slow = 0;
  double pairs = 0;
  SuiteTally& operator+=(const SuiteTally& other) {
    suites += other.suites, alarms += other.alarms, found += other.found, slow += other.slow;
    pairs += other.pairs;
    return *this;
  }
};

using MakeSuite = std::function<std::unique_ptr<SuiteSession>(std::uint64_t seed)>;

SuiteTally suites(const MakeSuite& make, int slow, int count) {
  return parallel<SuiteTally>(count, [&](int trial, SuiteTally& tally) {
    const std::uint64_t seed = static_cast<std::uint64_t>(trial) + (slow > 0 ? 5000000 : 0);
    const std::unique_ptr<SuiteSession> session = make(seed);
    Random coins(~seed);
    // Slow kernels are spread over the suite, so that each kind of noise has its share.
    const auto is_slow = [&](std::size_t item) {
      return slow > 0 && item % (kSuiteKernels / static_cast<std::size_t>(slow)) == 0;
    };
    const std::function<double(std::size_t)> shift = [&](std::size_t item) {
      return is_slow(item) ? 0.05 : 0.0;
    };
    SuiteGate gate(std::vector<Thresholds>(kSuiteKernels), Design{});
    for (auto wanted = gate.wanted(); !wanted.empty(); wanted = gate.wanted())
      session->round(gate, wanted, coins, shift);
    bool alarm = false;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const bool red = gate.result(i).verdict == Verdict::kRegression;
      alarm |= red && !is_slow(i);
      tally.found += red && is_slow(i);
    }
    ++tally.suites;
    tally.alarms += alarm;
    tally.slow += slow;
    tally.pairs += gate.pairs_done() / static_cast<double>(kSuiteKernels);
  });
}

void suite_line(const std::string& name, const MakeSuite& make, int count) {
  const SuiteTally alike = suites(make, 0, count);
  const SuiteTally changed = suites(make, kSlowKernels, std::max(count / 10, 20));
  fmt::print("| {} | {} of {} ({:.2f} %) | {:.1f} | {} of {} ({:.2f} %) | {:.1f} % | {:.1f} |\n",
             name, alike.alarms, alike.suites, 100.0 * alike.alarms / alike.suites,
             alike.pairs / alike.suites, changed.alarms, changed.suites,
             100.0 * changed.alarms / changed.suites, 100.0 * changed.found / changed.slow,
             changed.pairs / changed.suites);
  std::fflush(stdout);
}

// A clock that is low in one arm only: time moves and the work does not.
void clocks_line(int trials) {
  const GateTally tally = parallel<GateTally>(trials, [](int trial, GateTally& sum) {
    Random random(static_cast<std::uint64_t>(trial) + 1);
    SuiteGate judge({Thresholds{}}, Design{});
    while (!judge.done()) {
      const auto reading = [&](double clock) {
        const double time = kTimeNs * kClockMhz / clock * (1 + 0.01 * random.normal());
        return ArmReading{time, time * clock / 1e3, 0};
      };
      judge.add(0, {reading(kClockMhz), reading(kClockMhz / 1.05)});
    }
    ++sum.trials;
    sum.red += judge.result(0).verdict == Verdict::kRegression;
    sum.clocks += judge.result(0).cause == "clocks";
  });
  fmt::print(
      "\nThe SM clock 5 % lower in the current arm only, between 1 %, clocks recorded: red {}, "
      "\"clocks, not code\" {:.2f} % of {} trials.\n",
      tally.red_text(), 100.0 * tally.clocks / tally.trials, tally.trials);
}

int run(const std::string& path, int trials, int suite_count) {
  std::vector<KernelSamples> recording;
  if (!path.empty()) {
    Result<std::vector<KernelSamples>> loaded = load_samples(path);
    if (!loaded.is_ok()) {
      fmt::print(stderr, "bench_gate_quality: {}\n", loaded.status().message());
      return 2;
    }
    for (KernelSamples& kernel : *loaded)
      if (kernel.processes.size() >= 3) recording.push_back(std::move(kernel));
  }
  const std::vector<NoiseModel> models = noise_models();
  std::vector<std::vector<double>> medians;
  for (const NoiseModel& model : models) medians.push_back(within_medians(model, 1 << 16));

  std::vector<Source> sources;
  for (std::size_t i = 0; i < models.size(); ++i)
    sources.push_back({models[i].name, models[i].says, [&, i](std::uint64_t seed) {
                         return std::make_unique<ModelMachine>(models[i], medians[i], seed);
                       }});
  for (const KernelSamples& kernel : recording)
    sources.push_back({fmt::format("recorded: {} ({})", kernel.kernel,
                                   format_ns(median_of(kernel.processes[0].times_ns))),
                       "", [&kernel](std::uint64_t seed) {
                         return std::make_unique<RecordedMachine>(kernel, seed);
                       }});
  kernel_tables(sources, trials);
  clocks_line(trials);

  fmt::print(
      "\n## A suite of {} kernels\n\nKernels share their processes, and with them the machine's "
      "state. Changed suites: {} kernels slower by 5 %.\n\n"
      "| noise | nothing changed: suites with a red | pairs per kernel | {} changed: suites with a "
      "false red | changed kernels found | pairs per kernel |\n|---|--:|--:|--:|--:|--:|\n",
      kSuiteKernels, kSlowKernels, kSlowKernels);
  const std::vector<ModelSuite::Part> mix = {{&models[0], &medians[0], 0.6},
                                             {&models[1], &medians[1], 0.3},
                                             {&models.back(), &medians.back(), 0.1}};
  suite_line(
      "60 % quiet, 30 % typical, 10 % noisy",
      [&](std::uint64_t seed) { return std::make_unique<ModelSuite>(mix, seed); }, suite_count);
  for (std::size_t i = 0; i < models.size(); ++i)
    suite_line(
        models[i].name,
        [&](std::uint64_t seed) {
          return std::make_unique<ModelSuite>(
              std::vector<ModelSuite::Part>{{&models[i], &medians[i], 1}}, seed);
        },
        suite_count);
  if (!recording.empty()) {
    std::vector<RecordedPool> pools;
    for (const KernelSamples& kernel : recording) pools.push_back(recorded_pool(kernel, 500));
    suite_line(
        fmt::format("recorded: {} kernels, copied", recording.size()),
        [&](std::uint64_t seed) { return std::make_unique<RecordedSuite>(pools, seed); },
        suite_count);
  }
  fmt::print("\nThe noise models, of a kernel of {} with {} iterations per process:\n\n",
             format_ns(kTimeNs), kIterations);
  for (const NoiseModel& model : models) fmt::print("- {}: {}\n", model.name, model.says);
  return 0;
}

}  // namespace
}  // namespace purlin::guard

int main(int argc, char** argv) {
  const int trials = argc > 2 ? std::atoi(argv[2]) : 1000;
  const int suites = argc > 3 ? std::atoi(argv[3]) : trials / 10;
  return purlin::guard::run(argc > 1 ? argv[1] : "", std::max(trials, 100), std::max(suites, 20));
}
