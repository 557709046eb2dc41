// SPDX-License-Identifier: Apache-2.0
// How good the search strategies are, on recorded spaces: the community score
// (community_score.h), the share of the optimum's speed after some evaluations, the same when each
// evaluation shows one random sample instead of the mean, and what a search step takes.
//
//   bench_search_score [--spaces DIR] [--strategy A,B] [--only TEXT] [--repeats 25] [--threads 2]
//                      [--priors shared|cross-vendor|winners|misleading|useless|mixed]
//   bench_search_score --traces DIR
// The first drives the strategies themselves; the second scores documents of
// `purlin tune --device replay:FILE --json`, one repeat each. DIR defaults to $PURLIN_SPACES; where
// there is none, nothing is scored. --priors gives strategies what the recordings of the same
// kernel on the other GPUs say: all of it (shared), that of other makers' GPUs only, their three
// fastest configs, all with the times turned round (misleading), dealt anew at random (useless), or
// turned round in one of several (mixed). Deterministic but for the step times; prints Markdown.
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time.h"
#include "recorded_spaces.h"
#include "tune/records/prior_runs.h"
#include "tune/records/recordings.h"
#include "tune/search/strategy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

namespace purlin::bench {
namespace {

// "gemm" of "gemm-RTX_3090": the kernel, and what follows is the GPU.
std::string kernel_of(const Recorded& recorded) {
  return recorded.name.substr(0, recorded.name.find('-'));
}

DeviceInfo device_of(const Recorded& recorded) {
  DeviceInfo device;
  device.name = recorded.recording.device();
  if (device.name.empty()) device.name = recorded.name.substr(recorded.name.find('-') + 1);
  device.vendor = tune::vendor_of(device.name);
  return device;
}

// Slow becomes fast and fast slow.
void turn_round(tune::PriorRun& run) {
  const double turned = run.times.front().second * run.times.back().second;
  for (auto& [index, time_ms] : run.times) time_ms = turned / time_ms;
  std::reverse(run.times.begin(), run.times.end());
}

void deal_anew(tune::PriorRun& run) {
  std::vector<std::size_t> configs;
  for (const auto& [index, time_ms] : run.times) configs.push_back(index);
  Random random(run.times.size());
  random.shuffle(configs);
  for (std::size_t i = 0; i < configs.size(); ++i) run.times[i].first = configs[i];
}

// kInvalid for an unknown kind of priors.
Status give_priors(const std::vector<std::unique_ptr<Recorded>>& spaces, const std::string& kind) {
  const std::vector<std::string> kinds = {"shared",     "cross-vendor", "winners",
                                          "misleading", "useless",      "mixed"};
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    return error(Code::kInvalid, "--priors takes one of {}", join(kinds, ", "));
  for (const auto& target : spaces) {
    const DeviceInfo device = device_of(*target);
    const ProblemShape& problem = target->recording.recording().problem;
    tune::PriorReader reader(target->space, device, problem);
    for (const auto& other : spaces) {
      const DeviceInfo known = device_of(*other);
      if (other == target || kernel_of(*other) != kernel_of(*target)) continue;
      if (kind == "cross-vendor" && known.vendor == device.vendor) continue;
      gpu::Recording recording = other->recording.recording();
      recording.device = known.name;
      recording.vendor = known.vendor;
      reader.add(recording, other->name);
    }
    target->priors = reader.take().runs;
    if (kind == "mixed" && target->priors.size() < 2) target->priors.clear();
    for (tune::PriorRun& run : target->priors) {
      const bool first = &run == &target->priors.front();
      if (kind == "misleading" || (kind == "mixed" && first)) turn_round(run);
      if (kind == "useless") deal_anew(run);
      if (kind != "winners") continue;
      run.times.resize(3);
      run.failed.clear();
      run.complete = false;
    }
  }
  return Status::ok();
}

struct Score {
  double score = 0, noisy_score = 0;
  std::array<double, kCounts.size()> share{}, noisy_share{};
  double step_us = 0, longest_ms = 0;
};

Score score(const Recorded& recorded, const std::string& strategy, int repeats, unsigned threads) {
  std::array<std::vector<Run>, 2> runs;  // plain, noisy
  for (std::vector<Run>& of_kind : runs) of_kind.resize(static_cast<std::size_t>(repeats));
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < 2 * static_cast<std::size_t>(repeats); i = next++)
      runs[i % 2][i / 2] = play(
          recorded,
          [&](const tune::StrategyRequest& request) {
            return tune::make_strategy(strategy, request).value();
          },
          i / 2 + 1, i % 2 == 1);
  };
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();

  Score result;
  result.score = score_of(recorded, runs[0]);
  result.noisy_score = score_of(recorded, runs[1]);
  double steps = 0;
  for (const Run& run : runs[0]) {
    steps += static_cast<double>(run.asked);
    result.step_us += run.step_s * 1e6;
    result.longest_ms = std::max(result.longest_ms, run.longest_s * 1e3);
  }
  result.step_us /= std::max(steps, 1.0);
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    for (const Run& run : runs[0]) result.share[i] += run.share[i] / repeats;
    for (const Run& run : runs[1]) result.noisy_share[i] += run.share[i] / repeats;
  }
  return result;
}

std::string shares_text(const std::array<double, kCounts.size()>& shares) {
  std::string text;
  for (const double share : shares) text += fmt::format(" {:.3f} |", share);
  return text;
}

void print_row(const std::string& name, const std::string& facts, const Score& s) {
  fmt::print("| {} |{} {:.3f} |{} {:.3f} |{} {:.1f} | {:.2f} |\n", name, facts, s.score,
             shares_text(s.share), s.noisy_score, shares_text(s.noisy_share), s.step_us,
             s.longest_ms);
  std::fflush(stdout);
}

void print_head(const std::string& first, const std::string& facts, int extra) {
  fmt::print(
      "\n| {} |{} score | @25 | @50 | @100 | @200 | noisy score | @25 | @50 | @100 | @200 | step, "
      "µs | longest, ms |\n|---|",
      first, facts);
  for (int i = 0; i < 12 + extra; ++i) fmt::print("--:|");
  fmt::print("\n");
}

Score mean_of(const std::vector<Score>& scores, double& worst) {
  Score mean;
  const double count = static_cast<double>(scores.size());
  worst = 1;
  for (const Score& s : scores) {
    mean.score += s.score / count;
    mean.noisy_score += s.noisy_score / count;
    mean.step_us += s.step_us / count;
    mean.longest_ms = std::max(mean.longest_ms, s.longest_ms);
    worst = std::min(worst, s.score);
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      mean.share[i] += s.share[i] / count;
      mean.noisy_share[i] += s.noisy_share[i] / count;
    }
  }
  return mean;
}

int score_strategies(const std::vector<std::unique_ptr<Recorded>>& spaces,
                     const std::vector<std::string>& strategies, int repeats, unsigned threads) {
  struct Total {
    std::string strategy;
    Score mean;
    double worst;
  };
  std::vector<Total> totals;
  for (const std::string& strategy : strategies) {
    fmt::print("\n## {}\n", strategy);
    print_head("space", " configs | budget, evaluations | s |", 3);
    std::vector<Score> scores;
    for (const auto& recorded : spaces) {
      scores.push_back(score(*recorded, strategy, repeats, threads));
      print_row(recorded->name,
                fmt::format(" {} | {} | {:.0f} |", recorded->space.size(),
                            recorded->score.cutoff_evaluations(CommunityScore::kLast),
                            recorded->score.cutoff_s(CommunityScore::kLast)),
                scores.back());
    }
    Total total{strategy, {}, 0};
    total.mean = mean_of(scores, total.worst);
    print_row("**mean**", " | | |", total.mean);
    totals.push_back(total);
  }
  fmt::print("\n## All, mean over {} spaces, {} repeats\n", spaces.size(), repeats);
  print_head("strategy", " worst space |", 1);
  for (const Total& total : totals)
    print_row(total.strategy, fmt::format(" {:.3f} |", total.worst), total.mean);
  return 0;
}

// --- documents of `purlin tune --json` ---------------------------------------------------------

std::vector<Trial> trials_of(const Json& document) {
  std::vector<Trial> trials;
  std::optional<double> best;
  double before_s = 0;
  for (const Json& evaluation : document["evaluations"].items()) {
    const double until_s = evaluation["cumulative_cost_s"].as_double();
    Trial trial{std::nullopt, until_s - before_s};
    before_s = until_s;
    if (evaluation["status"].as_string() == "ok") {
      const double time_ms = evaluation["time_ms"].as_double();
      best = best ? std::min(*best, time_ms) : time_ms;
      trial.value = best;
    }
    trials.push_back(trial);
  }
  return trials;
}

Status score_traces(const std::string& directory) {
  PURLIN_ASSIGN(std::vector<std::string> files, list_directory(directory));
  std::sort(files.begin(), files.end());
  std::map<std::string, std::vector<std::vector<Trial>>> by_recording;
  for (const std::string& file : files) {
    if (!ends_with(file, ".json")) continue;
    PURLIN_ASSIGN(const std::string text, read_file(join_path(directory, file)));
    PURLIN_ASSIGN(const Json document, Json::parse(text));
    const std::string& device = document["device"].as_string();
    if (document["schema"].as_string() != "purlin.tune/1" || !starts_with(device, "replay:"))
      return error(Code::kInvalid, "'{}' is not of `purlin tune --device replay:FILE --json`",
                   file);
    by_recording[device.substr(device.find(':') + 1)].push_back(trials_of(document));
  }
  fmt::print("| space | repeats | score |\n|---|--:|--:|\n");
  double sum = 0;
  for (const auto& [path, repeats] : by_recording) {
    PURLIN_ASSIGN(const gpu::ReplaySpace recording, gpu::ReplaySpace::read(path));
    PURLIN_ASSIGN(const CommunityScore score, CommunityScore::of(recording));
    const double value = CommunityScore::mean(score.curve(repeats));
    sum += value;
    fmt::print("| {} | {} | {:.3f} |\n", base_name(path), repeats.size(), value);
  }
  if (!by_recording.empty())
    fmt::print("| **mean** | | {:.3f} |\n", sum / static_cast<double>(by_recording.size()));
  return Status::ok();
}

int run(int count, char** arguments) {
  std::map<std::string, std::string> given = {
      {"--spaces", ""},   {"--strategy", ""}, {"--only", ""},  {"--repeats", "25"},
      {"--threads", "2"}, {"--traces", ""},   {"--priors", ""}};
  for (int i = 1; i < count; i += 2) {
    const auto found = given.find(arguments[i]);
    if (found == given.end() || i + 1 == count) {
      fmt::print(stderr,
                 "search_score: '{}' is no option with a value; there are: --spaces, "
                 "--strategy, --only, --repeats, --threads, --traces, --priors\n",
                 arguments[i]);
      return 2;
    }
    found->second = arguments[i + 1];
  }
  if (!given["--traces"].empty()) {
    const Status status = score_traces(given["--traces"]);
    if (!status.is_ok()) fmt::print(stderr, "search_score: {}\n", status.message());
    return status.is_ok() ? 0 : 2;
  }
  std::string directory = given["--spaces"];
  if (directory.empty() && std::getenv("PURLIN_SPACES") != nullptr)
    directory = std::getenv("PURLIN_SPACES");
  auto spaces = directory.empty() ? std::vector<std::unique_ptr<Recorded>>{}
                                  : read_all(directory, given["--only"]);
  if (!given["--priors"].empty()) {
    if (const Status status = give_priors(spaces, given["--priors"]); !status.is_ok()) {
      fmt::print(stderr, "search_score: {}\n", status.message());
      return 2;
    }
    std::erase_if(spaces, [](const auto& recorded) { return recorded->priors.empty(); });
  }
  if (spaces.empty()) {
    fmt::print("search_score: skipped: no recorded spaces; give --spaces DIR or PURLIN_SPACES\n");
    return 0;
  }
  std::vector<std::string> strategies;
  if (!given["--strategy"].empty()) {
    for (const std::string_view name : split(given["--strategy"], ','))
      strategies.emplace_back(name);
  } else {
    for (const tune::StrategyKind& kind : tune::strategy_kinds())
      if (kind.name != "exhaustive") strategies.emplace_back(kind.name);
  }
  for (const std::string& strategy : strategies)
    if (const auto made = tune::make_strategy(strategy, {spaces.front()->space}); !made.is_ok()) {
      fmt::print(stderr, "search_score: {}\n", made.status().message());
      return 2;
    }
  return score_strategies(
      spaces, strategies, std::max(1, std::atoi(given["--repeats"].c_str())),
      static_cast<unsigned>(std::max(1, std::atoi(given["--threads"].c_str()))));
}

}  // namespace
}  // namespace purlin::bench

int main(int count, char** arguments) { return purlin::bench::run(count, arguments); }
