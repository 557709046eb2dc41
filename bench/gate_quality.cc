// SPDX-License-Identifier: Apache-2.0
// How often the gate cries wolf, and how often it sees a slowdown, beside the rules people use.
//
// bench_gate_quality RECORDING.csv[.gz] [TRIALS]
// RECORDING has one kernel's samples from many processes of the same build
// (docs/formats/samples.md). A trial draws pairs of neighbouring processes of it, each with its
// iterations resampled, puts them in coin order, and slows one arm by the planted shift. All rules
// see the same draws.
#include "base/random.h"
#include "guard/samples.h"
#include "guard/signed_rank.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace purlin::guard {
namespace {

// One process: its iterations, drawn again with replacement from a recorded one.
using Times = std::vector<double>;

class Resampler {
 public:
  Resampler(const KernelSamples& kernel, std::uint64_t seed) : kernel_(kernel), random_(seed) {}

  struct Draw {
    Times baseline, current;
  };
  Draw draw(double shift) {
    const std::size_t first = random_.below(kernel_.processes.size() - 1);
    const bool swap = random_.next() >> 63;
    Draw draw{process(first + swap), process(first + !swap)};
    for (double& time : draw.current) time *= 1 + shift;
    return draw;
  }

 private:
  Times process(std::size_t index) {
    const Times& recorded = kernel_.processes[index].times_ns;
    Times times(recorded.size());
    for (double& time : times) time = recorded[random_.below(recorded.size())];
    return times;
  }
  const KernelSamples& kernel_;
  Random random_;
};

double mean(const Times& times) {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

double variance(const Times& times) {
  const double centre = mean(times);
  double sum = 0;
  for (const double time : times) sum += (time - centre) * (time - centre);
  return sum / static_cast<double>(times.size() - 1);
}

double normal_upper(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

// One process per arm, means of the iterations: the rule of most scripts.
bool mean_over_5(Resampler& resampler, double shift) {
  const auto draw = resampler.draw(shift);
  return mean(draw.current) > 1.05 * mean(draw.baseline);
}

// Welch's t on the pooled iterations of one process per arm, one-sided at 1 %. With 40 iterations
// the normal limit of t is close enough not to change the picture.
bool welch(Resampler& resampler, double shift) {
  const auto draw = resampler.draw(shift);
  const double n = static_cast<double>(draw.baseline.size());
  const double error = std::sqrt((variance(draw.baseline) + variance(draw.current)) / n);
  const double difference = mean(draw.current) - mean(draw.baseline);
  return error > 0 ? normal_upper(difference / error) < 0.01 : difference > 0;
}

// Mann-Whitney's U on the same, as Google Benchmark's compare.py does, one-sided at 1 %.
bool u_test(Resampler& resampler, double shift) {
  const auto draw = resampler.draw(shift);
  double u = 0;
  for (const double now : draw.current)
    for (const double then : draw.baseline) u += now > then ? 1 : now == then ? 0.5 : 0;
  const double a = static_cast<double>(draw.current.size());
  const double b = static_cast<double>(draw.baseline.size());
  const double deviation = std::sqrt(a * b * (a + b + 1) / 12);
  return normal_upper((u - 0.5 - a * b / 2) / deviation) < 0.01;
}

struct Outcome {
  int trials = 0, red = 0, open = 0;
  double pairs = 0;
};

// A suite of `kernels` items: item i resamples `resamplers[i]`, and the first `slow` are slowed.
void gate_suite(std::vector<Resampler>& resamplers, double shift, double absolute_floor_ns,
                std::vector<Outcome>& outcomes) {
  Thresholds thresholds;
  thresholds.absolute_floor_ns = absolute_floor_ns;
  SuiteGate gate(std::vector<Thresholds>(resamplers.size(), thresholds), Design{});
  while (!gate.done())
    for (const std::size_t i : gate.wanted()) {
      const auto draw = resamplers[i].draw(shift);
      gate.add(i, {reading_of(draw.baseline, {}), reading_of(draw.current, {})});
    }
  for (std::size_t i = 0; i < resamplers.size(); ++i) {
    const ItemResult result = gate.result(i);
    ++outcomes[i].trials;
    outcomes[i].red += result.verdict == Verdict::kRegression;
    outcomes[i].open += result.verdict == Verdict::kInconclusive;
    outcomes[i].pairs += result.pairs;
  }
}

std::string percent(int count, int trials) {
  return fmt::format("{:.2f} %", 100.0 * count / trials);
}

int run(const std::string& path, int trials) {
  const Result<std::vector<KernelSamples>> recording = load_samples(path);
  if (!recording.is_ok()) {
    fmt::print(stderr, "bench_gate_quality: {}\n", recording.status().message());
    return 2;
  }
  fmt::print("{} kernels, {} trials each; red at +0 % (false alarm) and at +5 % (found)\n\n",
             recording->size(), trials);
  fmt::print(
      "| kernel | time | gate +0 % | gate +5 % | gate +5 %, no absolute floor | open +0 % / +5 % | "
      "pairs +0 % / +5 % | mean > 5 %: +0 % / +5 % | Welch: +0 % / +5 % | U test: +0 % / +5 % |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  using Rule = bool (*)(Resampler&, double);
  const Rule rules[] = {mean_over_5, welch, u_test};
  int total[9] = {};
  std::uint64_t seed = 1;
  for (const KernelSamples& kernel : *recording) {
    if (kernel.processes.size() < 3) continue;
    Outcome null, slow, bare;
    int red[6] = {};
    std::vector<Resampler> one = {Resampler(kernel, ++seed)};
    for (int trial = 0; trial < trials; ++trial) {
      std::vector<Outcome> outcomes = {null};
      gate_suite(one, 0, 200, outcomes);
      null = outcomes[0];
      outcomes = {slow};
      gate_suite(one, 0.05, 200, outcomes);
      slow = outcomes[0];
      outcomes = {bare};
      gate_suite(one, 0.05, 0, outcomes);
      bare = outcomes[0];
      for (int rule = 0; rule < 3; ++rule) {
        red[2 * rule] += rules[rule](one[0], 0);
        red[2 * rule + 1] += rules[rule](one[0], 0.05);
      }
    }
    fmt::print(
        "| {} | {:.1f} us | {} | {} | {} | {} / {} | {:.1f} / {:.1f} | {} / {} | {} / {} | {} / {} "
        "|\n",
        kernel.kernel, median_of(kernel.processes[0].times_ns) / 1e3, percent(null.red, trials),
        percent(slow.red, trials), percent(bare.red, trials), percent(null.open, trials),
        percent(slow.open, trials), null.pairs / trials, slow.pairs / trials,
        percent(red[0], trials), percent(red[1], trials), percent(red[2], trials),
        percent(red[3], trials), percent(red[4], trials), percent(red[5], trials));
    std::fflush(stdout);
    total[0] += null.red;
    total[1] += slow.red;
    total[2] += bare.red;
    for (int i = 0; i < 6; ++i) total[3 + i] += red[i];
  }
  const int all = trials * static_cast<int>(recording->size());
  fmt::print("| **all** | | {} | {} | {} | | | {} / {} | {} / {} | {} / {} |\n",
             percent(total[0], all), percent(total[1], all), percent(total[2], all),
             percent(total[3], all), percent(total[4], all), percent(total[5], all),
             percent(total[6], all), percent(total[7], all), percent(total[8], all));

  // The whole suite at once, and a suite of 504 kernels made of 42 copies: any red is a false
  // alarm.
  for (const int copies : {1, 42}) {
    const int suites = copies == 1 ? trials : std::max(trials / 10, 1);
    std::vector<Resampler> resamplers;
    for (int copy = 0; copy < copies; ++copy)
      for (const KernelSamples& kernel : *recording) resamplers.emplace_back(kernel, ++seed);
    int any = 0;
    double pairs = 0;
    for (int suite = 0; suite < suites; ++suite) {
      std::vector<Outcome> outcomes(resamplers.size());
      gate_suite(resamplers, 0, 200, outcomes);
      bool red = false;
      for (const Outcome& outcome : outcomes) {
        red |= outcome.red > 0;
        pairs += outcome.pairs;
      }
      any += red;
    }
    fmt::print(
        "\nsuite of {} kernels, nothing changed: {} of {} runs red ({}), {:.1f} pairs per kernel\n",
        resamplers.size(), any, suites, percent(any, suites),
        pairs / suites / static_cast<double>(resamplers.size()));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace purlin::guard

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print("usage: bench_gate_quality RECORDING.csv[.gz] [TRIALS]\n");
    return 0;
  }
  const int trials = argc > 2 ? std::atoi(argv[2]) : 2000;
  return purlin::guard::run(argv[1], trials > 0 ? trials : 2000);
}
