// SPDX-License-Identifier: Apache-2.0
// Racing against a fixed number of repeats, on the raw samples of recorded spaces: how many samples
// each needs, and how much slower than the true best is what each chooses. Neither counts warm-up
// launches, and neither is spared the recordings' disturbed samples. Also with a clock that drifts
// evenly over the session, so that its last config seems slower, or faster, by 3 %.
//
// The same session that tunes on a device runs here; only the samples come from a recording (32 of
// each config, drawn without replacement in random order, then again). usage: bench_race DIRECTORY
#include "measure/race.h"

#include "base/files.h"
#include "base/random.h"
#include "tune/session/replay_evaluator.h"
#include "tune/session/session.h"
#include "tune/space/build.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace purlin::tune {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// A device whose samples are those of a recording. Failures cost nothing here: both ways meet them
// alike.
class SampledEvaluator : public Evaluator {
 public:
  // Each config that is met takes `drift` of its time longer than the one before it, until `drifts`
  // were met.
  SampledEvaluator(const gpu::ReplaySpace& recording, std::uint64_t seed, double drift,
                   std::size_t drifts)
      : recording_(recording), drift_(drift), drifts_(drifts), random_(seed) {}
  const DeviceInfo& device() const override { return device_; }
  bool executes() const override { return true; }
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override {
    PURLIN_ASSIGN(const gpu::RecordedRun* run, recording_.find(config));
    Evaluation evaluation;
    evaluation.config = config;
    evaluation.status = run->status;
    if (!evaluation.ok()) return evaluation;
    ++configs;
    const double slower = 1 + drift_ * static_cast<double>(std::min(configs, drifts_));
    std::vector<double> pool = run->samples_ms;
    std::size_t left = 0;
    const std::size_t most = static_cast<std::size_t>(policy.max_samples);
    measure::Standing now = measure::Standing::kOpen;
    while (evaluation.samples.size() < most && now == measure::Standing::kOpen) {
      for (int i = measure::samples_wanted(evaluation.samples.size(), policy); i > 0; --i) {
        if (left == 0) left = pool.size();
        std::swap(pool[random_.below(left)], pool[left - 1]);
        evaluation.samples.push_back({pool[--left] * slower, 0});
      }
      now = measure::standing(evaluation.samples, policy);
    }
    evaluation.raced_out = now == measure::Standing::kHopeless;
    evaluation.time_ms = median_ms(evaluation.samples);
    samples += evaluation.samples.size();
    for (const Sample& sample : evaluation.samples) busy_ms += sample.ms;
    return evaluation;
  }
  std::size_t samples = 0, configs = 0;
  double busy_ms = 0;

 private:
  const gpu::ReplaySpace& recording_;
  double drift_;
  std::size_t drifts_;
  DeviceInfo device_;
  Random random_;
};

struct Race {
  double samples = 0, busy_ms = 0, regret = 0;
};

// The present practice: so many samples of each config, and the lowest mean wins. Under one seed
// the same configs as the race.
Result<Race> fixed(const gpu::ReplaySpace& recording, const Space& space, double best,
                   std::size_t evaluations, std::uint64_t seed, double drift) {
  constexpr std::size_t kFixedRepeats = 7;
  PURLIN_ASSIGN(const auto strategy, make_strategy("random", {space, seed, evaluations}));
  Race outcome;
  Random random(seed);
  double least = INFINITY, chosen = 0;
  for (std::size_t i = 0; i < evaluations; ++i) {
    const auto index = strategy->ask();
    if (!index) break;
    PURLIN_ASSIGN(const gpu::RecordedRun* run, recording.find(space.config(*index)));
    strategy->tell(*index, Outcome{});
    if (run->status != EvaluationStatus::kOk) continue;
    std::vector<double> pool = run->samples_ms;
    const double slower = 1 + drift * static_cast<double>(i) / static_cast<double>(evaluations);
    double sum = 0;
    for (std::size_t k = 0; k < std::min(kFixedRepeats, pool.size()); ++k) {
      std::swap(pool[k], pool[k + random.below(pool.size() - k)]);
      sum += pool[k] * slower;
    }
    outcome.samples += static_cast<double>(kFixedRepeats);
    outcome.busy_ms += sum;
    if (sum < least) least = sum, chosen = mean(run->samples_ms);
  }
  outcome.regret = chosen / best - 1;
  return outcome;
}

Result<Race> race(const gpu::ReplaySpace& recording, const Space& space, double best,
                  std::size_t evaluations, std::uint64_t seed, double drift) {
  SampledEvaluator evaluator(recording, seed, drift / static_cast<double>(evaluations),
                             evaluations);
  PURLIN_ASSIGN(const auto strategy, make_strategy("random", {space, seed, evaluations}));
  SessionOptions options;
  options.budget.evaluations = evaluations;
  PURLIN_ASSIGN(const SessionResult result,
                run_session(space, *strategy, evaluator, nullptr, options));
  Race outcome;
  outcome.samples = static_cast<double>(evaluator.samples);
  outcome.busy_ms = evaluator.busy_ms;
  if (!result.verdict) return error(Code::kFailed, "nothing worked");
  const Evaluation& winner = result.evaluations[result.verdict->best().evaluation];
  PURLIN_ASSIGN(const gpu::RecordedRun* run, recording.find(winner.config));
  outcome.regret = mean(run->samples_ms) / best - 1;
  return outcome;
}

// The best among the configs that a session under this seed draws: what it could have found.
Result<double> best_of(const gpu::ReplaySpace& recording, const Space& space,
                       std::size_t evaluations, std::uint64_t seed) {
  PURLIN_ASSIGN(const auto strategy, make_strategy("random", {space, seed, evaluations}));
  double best = INFINITY;
  for (std::size_t i = 0; i < evaluations; ++i) {
    const auto index = strategy->ask();
    if (!index) break;
    PURLIN_ASSIGN(const gpu::RecordedRun* run, recording.find(space.config(*index)));
    strategy->tell(*index, Outcome{});
    if (run->status == EvaluationStatus::kOk) best = std::min(best, mean(run->samples_ms));
  }
  return best;
}

// Sums over repeats and spaces.
struct Total {
  double samples = 0, busy_ms = 0, regret = 0, worst = 0, log_ratio = 0, log_busy = 0;
  int runs = 0;
  void add(const Race& outcome) {
    samples += outcome.samples, busy_ms += outcome.busy_ms, regret += outcome.regret;
    worst = std::max(worst, outcome.regret);
    ++runs;
  }
  double mean_of(double value) const { return value / std::max(runs, 1); }
};

Status run(const std::string& directory, int repeats) {
  std::vector<std::string> files;
  std::error_code failure;
  for (const auto& item : std::filesystem::directory_iterator(directory, failure)) {
    const std::string name = item.path().filename().string();
    if (name.ends_with(".json.gz") && !name.starts_with("t4-") && !name.starts_with("ktt-"))
      files.push_back(item.path().string());
  }
  if (files.empty()) return error(Code::kNotFound, "no recorded space in '{}'", directory);
  std::sort(files.begin(), files.end());
  struct Part {
    std::size_t evaluations;
    double drift;
  };
  for (const auto& [evaluations, drift] : {Part{SIZE_MAX, 0},
                                           {1000, 0},
                                           {200, 0},
                                           {1000, 0.03},
                                           {1000, -0.03},
                                           {200, 0.03},
                                           {200, -0.03}}) {
    fmt::print(
        "{}{}\n{:<26} {:>7} | {:>8} {:>7} {:>7} | {:>8} {:>7} {:>7} | {:>8} {:>8}\n",
        evaluations == SIZE_MAX ? "whole spaces" : fmt::format("{} evaluations", evaluations),
        drift == 0 ? "" : fmt::format(", by their end {:+.0f} % by the clock", 100 * drift),
        "space", "configs", "7 fixed", "regret", "worst", "racing", "regret", "worst", "samples",
        "GPU time");
    Total all_fixed, all_raced;
    double log_samples = 0, log_busy = 0;
    for (const std::string& file : files) {
      PURLIN_ASSIGN(const gpu::ReplaySpace recording, gpu::ReplaySpace::read(file));
      PURLIN_ASSIGN(const Space space, space_of(recording));
      const std::size_t count = std::min(evaluations, space.size());
      Total plain, raced;
      for (int repeat = 0; repeat < repeats; ++repeat) {
        const std::uint64_t seed = 1 + static_cast<std::uint64_t>(repeat);
        PURLIN_ASSIGN(const double best, best_of(recording, space, count, seed));
        PURLIN_ASSIGN(const Race a, fixed(recording, space, best, count, seed, drift));
        PURLIN_ASSIGN(const Race b, race(recording, space, best, count, seed, drift));
        plain.add(a), all_fixed.add(a), raced.add(b), all_raced.add(b);
      }
      log_samples += std::log(plain.samples / raced.samples);
      log_busy += std::log(plain.busy_ms / raced.busy_ms);
      const std::string name = std::filesystem::path(file).filename().string();
      fmt::print(
          "{:<26} {:>7} | {:>8.0f} {:>6.2f}% {:>6.2f}% | {:>8.0f} {:>6.2f}% {:>6.2f}% | {:>7.2f}x "
          "{:>7.2f}x\n",
          name.substr(0, name.size() - 8), count, plain.mean_of(plain.samples),
          100 * plain.mean_of(plain.regret), 100 * plain.worst, raced.mean_of(raced.samples),
          100 * raced.mean_of(raced.regret), 100 * raced.worst, plain.samples / raced.samples,
          plain.busy_ms / raced.busy_ms);
    }
    const double spaces = static_cast<double>(files.size());
    fmt::print(
        "{:<26} {:>7} | {:>8} {:>6.2f}% {:>6.2f}% | {:>8} {:>6.2f}% {:>6.2f}% | {:>7.2f}x "
        "{:>7.2f}x\n\n",
        "mean; of ratios geometric", "", "", 100 * all_fixed.mean_of(all_fixed.regret),
        100 * all_fixed.worst, "", 100 * all_raced.mean_of(all_raced.regret), 100 * all_raced.worst,
        std::exp(log_samples / spaces), std::exp(log_busy / spaces));
  }
  return Status::ok();
}

}  // namespace
}  // namespace purlin::tune

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_race DIRECTORY-OF-RECORDED-SPACES [REPEATS]\n");
    return 2;
  }
  const purlin::Status done =
      purlin::tune::run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 10);
  if (!done.is_ok()) fmt::print(stderr, "bench_race: {}\n", done.message());
  return done.is_ok() ? 0 : 2;
}
