// SPDX-License-Identifier: Apache-2.0
#include "recorded_spaces.h"

#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time.h"
#include "tune/session/replay_evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace purlin::bench {
namespace {

Result<std::unique_ptr<Recorded>> read_recorded(const std::string& path) {
  PURLIN_ASSIGN(gpu::ReplaySpace recording, gpu::ReplaySpace::read(path));
  PURLIN_ASSIGN(tune::Space space, tune::space_of(recording));
  PURLIN_ASSIGN(CommunityScore score, CommunityScore::of(recording));
  const std::string file = base_name(path);
  auto recorded = std::make_unique<Recorded>(Recorded{file.substr(0, file.find(".json")),
                                                      std::move(recording),
                                                      std::move(space),
                                                      std::move(score),
                                                      {},
                                                      {},
                                                      {}});
  recorded->runs.resize(recorded->space.size());
  recorded->values.resize(recorded->space.size());
  for (const gpu::RecordedRun& run : recorded->recording.runs()) {
    const std::optional<std::size_t> index = recorded->space.find(recorded->recording.config(run));
    if (!index)
      return error(Code::kCorrupt, "'{}' is not a config of its space",
                   recorded->recording.config(run).text());
    recorded->runs[*index] = &run;
    recorded->values[*index] = true_value(run);
  }
  return recorded;
}

// Inputs and second copies of a space are told by their names.
bool holds_a_space(const std::string& file) {
  return file.find(".json") != std::string::npos && !starts_with(file, "t1-") &&
         !starts_with(file, "t4-") && !starts_with(file, "ktt-");
}

}  // namespace

std::vector<std::unique_ptr<Recorded>> read_all(const std::string& directory,
                                                const std::string& only) {
  std::vector<std::unique_ptr<Recorded>> all;
  std::vector<std::string> files = list_directory(directory).value_or(std::vector<std::string>{});
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    if (!holds_a_space(file) || file.find(only) == std::string::npos) continue;
    Result<std::unique_ptr<Recorded>> read = read_recorded(join_path(directory, file));
    if (read.is_ok())
      all.push_back(std::move(read).value());
    else
      fmt::print(stderr, "{} is left out: {}\n", file, read.status().message());
  }
  return all;
}

Run play(const Recorded& recorded, const MakeStrategy& make, std::uint64_t seed, bool noisy,
         std::size_t least) {
  const double budget_s = recorded.score.run_s();
  const std::unique_ptr<tune::Strategy> strategy =
      make({recorded.space, seed, recorded.score.limit(), budget_s, recorded.priors});
  Random noise(seed * 7919 + 17);
  Run run;
  double spent_s = 0, best_shown = 0;
  std::optional<double> held;  // the true value of the config that showed the best time
  const auto now = [] { return system_clock().monotonic_ns(); };
  while (run.asked < least || spent_s < budget_s) {
    const std::int64_t start = now();
    const std::optional<std::size_t> index = strategy->ask();
    const std::int64_t between = now();
    if (!index) break;
    const gpu::RecordedRun& recording = *recorded.runs[*index];
    Evaluation evaluation;
    evaluation.counters = recording.counters;
    tune::Outcome outcome{recorded.values[*index], recording.cost_s(), &evaluation};
    if (outcome.time_ms && noisy)
      outcome.time_ms = recording.samples_ms[noise.below(recording.samples_ms.size())];
    spent_s += outcome.cost_s;
    if (outcome.time_ms && (!held || *outcome.time_ms < best_shown)) {
      best_shown = *outcome.time_ms;
      held = recorded.values[*index];
    }
    run.trials.push_back({outcome.time_ms ? held : std::nullopt, outcome.cost_s});
    const std::int64_t told = now();
    strategy->tell(*index, outcome);
    const double step = static_cast<double>(now() - told + between - start) * 1e-9;
    run.step_s += step;
    run.longest_s = std::max(run.longest_s, step);
    ++run.asked;
    for (std::size_t i = 0; i < kCounts.size(); ++i)
      if (run.asked <= kCounts[i] && held) run.share[i] = recorded.score.optimum() / *held;
  }
  if (const tune::TransferOutcome* transfer = strategy->transfer()) {
    constexpr std::array kStates = {"trying", "kept", "dropped"};
    run.transfer =
        fmt::format("{}: {}", kStates[static_cast<std::size_t>(transfer->state)], transfer->why);
  }
  return run;
}

double score_of(const Recorded& recorded, const std::vector<Run>& runs) {
  std::vector<std::vector<Trial>> repeats;
  for (const Run& run : runs) repeats.push_back(run.trials);
  return CommunityScore::mean(recorded.score.curve(repeats));
}

double error_of(const Recorded& recorded, const std::vector<Run>& runs) {
  constexpr std::size_t kParts = 4;
  if (runs.size() < kParts) return 0;
  std::array<std::vector<Run>, kParts> parts;
  for (std::size_t i = 0; i < runs.size(); ++i) parts[i % kParts].push_back(runs[i]);
  double sum = 0, squares = 0;
  for (const std::vector<Run>& part : parts) {
    const double score = score_of(recorded, part);
    sum += score;
    squares += score * score;
  }
  const double variance = std::max(0.0, squares - sum * sum / kParts) / (kParts - 1);
  return std::sqrt(variance / kParts);
}

}  // namespace purlin::bench
