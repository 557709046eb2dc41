// SPDX-License-Identifier: Apache-2.0
// How often the fleet's lists are wrong, and how often they find what is there: simulated fleets of
// 40 kernels, a week of 6-hour steps. Noise between processes and within them is that of recorded
// processes (CSV: process,kernel,iteration,time_us,sm_clock_mhz); chips differ by 2 %.
//
//   fleet_alarms RECORDING.csv.gz [FLEETS [STRAGGLERS [POWER]]]     prints Markdown tables
//
// STRAGGLERS: so many A/A weeks of each size of fleet, for false stragglers alone. POWER: so many
// fleets for each slow-down of one device, as the server looks at them: the last two days.
//
// Peer in the same run: change points of one series for each kernel, without nodes.
#include "base/random.h"
#include "base/status.h"
#include "fleet/analysis/mix.h"
#include "fleet/analysis/slower.h"
#include "fleet/analysis/stragglers.h"
#include "guard/gate/samples.h"
#include "guard/gate/signed_rank.h"
#include "guard/history/change_points.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace purlin::fleet::analysis {
namespace {

constexpr int kKernels = 40, kSteps = 28, kLaunches = 30;
constexpr std::int64_t kStepNs = 6 * kHourNs;

// One recorded kernel: the log level of each process, and the log noise within them.
struct Recorded {
  std::vector<double> process, within;
};

std::vector<Recorded> recorded_noise(const std::vector<guard::KernelSamples>& kernels) {
  std::vector<Recorded> all;
  for (const guard::KernelSamples& kernel : kernels) {
    Recorded recorded;
    std::vector<double> medians;
    for (const auto& process : kernel.processes)
      medians.push_back(guard::median_of(process.times_ns));
    const double centre = guard::median_of(medians);
    for (std::size_t i = 0; i < medians.size(); ++i) {
      recorded.process.push_back(std::log(medians[i] / centre));
      for (const double ns : kernel.processes[i].times_ns)
        recorded.within.push_back(std::log(ns / medians[i]));
    }
    all.push_back(std::move(recorded));
  }
  return all;
}

struct Plan {
  int nodes = 24;
  double process_scale = 1;  // of the recorded noise between processes
  double daily = 0;          // amplitude of a cycle that all nodes share
  double shift = 0;          // of kernel 0 from `at` on
  int at = 16;
  bool shapes_move = false;  // the mix of shapes of every kernel changes in the week
  int steps = kSteps;
  int straggler = -1;  // node that is slow
  double slow_down = 0.2;
  int slow_from = 0;  // step
};

std::vector<Cell> fleet_week(const Plan& plan, const std::vector<Recorded>& noise,
                             std::uint64_t seed) {
  Random random(seed);
  std::vector<Cell> cells;
  std::vector<double> chips;
  for (int node = 0; node < plan.nodes; ++node) chips.push_back(std::exp(0.02 * random.normal()));
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    const Recorded& recorded = noise[static_cast<std::size_t>(kernel) % noise.size()];
    for (int node = 0; node < plan.nodes; ++node) {
      double process = 1;
      for (int step = 0; step < plan.steps; ++step) {
        // A process lives for a day on average.
        if (step == 0 || random.uniform() < 0.25)
          process = std::exp(plan.process_scale *
                             recorded.process[random.below(recorded.process.size())]);
        double factor = chips[static_cast<std::size_t>(node)] * process;
        factor *= 1 + plan.daily * std::sin(2 * M_PI * step / 4);
        if (kernel == 0 && step >= plan.at) factor *= 1 + plan.shift;
        if (node == plan.straggler && step >= plan.slow_from) factor *= 1 + plan.slow_down;
        for (int shape = 0; shape < 2; ++shape) {
          const bool rare = plan.shapes_move && (shape == 1) == (step < plan.at);
          Cell cell;
          cell.kernel = "kernel" + std::to_string(kernel);
          cell.gpu = "H200", cell.shape = shape == 0 ? "M=1024" : "M=4096";
          cell.role = "other";
          cell.node = "node" + std::to_string(node), cell.device = "0";
          cell.begin_ns = 1'700'006'400'000'000'000 + step * kStepNs;
          for (int launch = 0; launch < (rare ? 12 : kLaunches); ++launch)
            cell.time.add((shape == 0 ? 1e5 : 7e5) * factor *
                          std::exp(recorded.within[random.below(recorded.within.size())]));
          cells.push_back(std::move(cell));
        }
      }
    }
  }
  return cells;
}

// One series of plain p50s for each kernel: what a store without nodes and shapes can do.
bool plain_change_points_fire(const std::vector<Cell>& cells) {
  std::map<std::string, std::map<std::int64_t, Sketch>> kernels;
  for (const Cell& cell : cells) kernels[cell.kernel][cell.begin_ns].merge(cell.time);
  for (const auto& [kernel, steps] : kernels) {
    std::vector<double> series;
    for (const auto& [step, sketch] : steps) series.push_back(sketch.quantile(0.5));
    for (const auto& point : guard::find_change_points(series, {}))
      if (point.ratio > 1) return true;
  }
  return false;
}

struct Count {
  int fleets = 0, alarmed = 0, suspected = 0, plain = 0, found = 0, stragglers = 0;
};

Count run(const Plan& plan, const std::vector<Recorded>& noise, int fleets) {
  Count count;
  count.fleets = fleets;
  for (int i = 0; i < fleets; ++i) {
    const auto cells = fleet_week(plan, noise, static_cast<std::uint64_t>(i) * 7919 + 13);
    bool false_alarm = false, suspect = false, found = false;
    for (const SlowerKernel& row : got_slower(cells, {}, {}).kernels) {
      const bool planted = plan.shift > 0 && row.key.kernel == "kernel0";
      if (planted && row.alarm)
        found = true;
      else if (!planted)
        (row.alarm ? false_alarm : suspect) = true;
    }
    count.alarmed += false_alarm, count.suspected += suspect, count.found += found;
    for (const Straggler& row : find_stragglers(cells, {}).devices_slow)
      count.stragglers +=
          (row.node == "node" + std::to_string(plan.straggler)) == (plan.straggler >= 0);
    count.plain += plain_change_points_fire(cells);
  }
  return count;
}

// The upper end of the exact 95 % interval of a share (one-sided), by bisection.
double upper_share(int events, int trials) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double p = (low + high) / 2;
    double term = std::pow(1 - p, trials), sum = term;
    for (int k = 1; k <= events; ++k) {
      term *= p / (1 - p) * (trials - k + 1) / k;
      sum += term;
    }
    (sum > 0.05 ? low : high) = p;
  }
  return high;
}

void print_false(const char* name, const Plan& plan, const std::vector<Recorded>& noise,
                 int fleets) {
  const Count count = run(plan, noise, fleets);
  std::printf("| %s | %d | %d | %.2f %% | %d | %d | %d |\n", name, count.fleets, count.alarmed,
              100 * upper_share(count.alarmed, count.fleets), count.suspected, count.stragglers,
              count.plain);
  std::fflush(stdout);
}

void print_stragglers(int nodes, const std::vector<Recorded>& noise, int fleets) {
  Plan plan;
  plan.nodes = nodes;
  int fleets_with_one = 0;
  for (int i = 0; i < fleets; ++i) {
    const auto cells = fleet_week(plan, noise, static_cast<std::uint64_t>(i) * 104'729 + 7);
    fleets_with_one += find_stragglers(cells, {}).devices_slow.empty() ? 0 : 1;
  }
  std::printf("| %d | %d | %d | %.2f %% |\n", nodes, fleets, fleets_with_one,
              100 * upper_share(fleets_with_one, fleets));
  std::fflush(stdout);
}

// One device that is slow since some steps ago, in the two days that the server looks at.
void print_straggler_power(int nodes, int steps_slow, const std::vector<Recorded>& noise,
                           int fleets) {
  Plan plan;
  plan.nodes = nodes, plan.steps = 8, plan.straggler = 3, plan.slow_from = plan.steps - steps_slow;
  std::printf("| %d | %d h |", nodes, steps_slow * 6);
  for (const double slow_down : {0.0, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3}) {
    plan.slow_down = slow_down;
    int found = 0;
    for (int i = 0; i < fleets; ++i) {
      const auto cells = fleet_week(plan, noise, static_cast<std::uint64_t>(i) * 15'485'863 + 29);
      for (const Straggler& row : find_stragglers(cells, {}).devices_slow)
        found += row.node == "node3";
    }
    std::printf(" %d %% |", 100 * found / fleets);
    std::fflush(stdout);
  }
  std::printf("\n");
}

void print_power(const Plan& plan, const std::vector<Recorded>& noise, int fleets) {
  const Count count = run(plan, noise, fleets);
  std::printf("| %+.0f %% | %d | %d | %d of %d |\n", 100 * plan.shift, plan.nodes, kSteps - plan.at,
              count.found, count.fleets);
  std::fflush(stdout);
}

}  // namespace
}  // namespace purlin::fleet::analysis

int main(int argc, char** argv) {
  using namespace purlin::fleet::analysis;
  const int fleets = argc > 2 ? std::atoi(argv[2]) : 300;
  if (argc < 2 || fleets < 1) return 2;
  const auto kernels = purlin::guard::load_samples(argv[1]);
  if (!kernels.is_ok()) {
    std::fprintf(stderr, "%s\n", kernels.status().message().c_str());
    return 2;
  }
  const std::vector<Recorded> noise = recorded_noise(*kernels);
  if (const int each = argc > 4 ? std::atoi(argv[4]) : 0; each > 0) {
    std::printf(
        "| nodes | slow for | 0 %% | 5 %% | 8 %% | 10 %% | 15 %% | 20 %% | 30 %% |\n"
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (const int nodes : {7, 24})
      for (const int steps : {1, 2, 4, 8}) print_straggler_power(nodes, steps, noise, each);
    return 0;
  }
  if (const int weeks = argc > 3 ? std::atoi(argv[3]) : 0; weeks > 0) {
    std::printf(
        "| nodes | A/A weeks | with a false straggler | upper 95 %% bound |\n|--:|--:|--:|--:|\n");
    for (const int nodes : {24, 12, 8, 7}) print_stragglers(nodes, noise, weeks);
    return 0;
  }
  std::printf(
      "| A/A fleet | fleets, a week each | with an alarm | upper 95 %% bound | with a suspect | "
      "false stragglers | with a rise in a plain p50 series |\n|---|--:|--:|--:|--:|--:|--:|\n");
  print_false("recorded noise", {}, noise, fleets);
  Plan wild;
  wild.process_scale = 4;
  print_false("4 times the noise between processes", wild, noise, fleets / 3);
  Plan daily;
  daily.daily = 0.01;
  print_false("a daily cycle of ±1 % on all nodes", daily, noise, fleets / 3);
  Plan mix;
  mix.shapes_move = true;
  print_false("the mix of shapes moves", mix, noise, fleets / 3);
  Plan straggler;
  straggler.straggler = 5;
  print_false("one node 20 % slow (stragglers: found)", straggler, noise, fleets / 3);
  std::printf("\n| planted | nodes | steps after it, of 28 | alarms |\n|---|--:|--:|--:|\n");
  for (const double shift : {0.03, 0.05})
    for (const int nodes : {16, 24})
      for (const int at : {16, 24}) {
        Plan plan;
        plan.shift = shift, plan.nodes = nodes, plan.at = at;
        print_power(plan, noise, std::max(fleets / 10, 1));
      }
}
