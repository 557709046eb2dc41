// SPDX-License-Identifier: Apache-2.0
// How good the search strategies are, on recorded spaces: the community score
// (community_score.h), the share of the optimum's speed after some evaluations, the same when each
// evaluation shows one random sample instead of the mean, and what a search step takes.
//
//   bench_search_score [--spaces DIR] [--strategy A,B] [--only TEXT] [--repeats 25] [--threads 2]
//                      [--noisy 1] [--evaluations N] [--beyond 1] [--each 0]
//                      [--priors shared|cross-vendor|winners|misleading|useless|mixed|...]
//   bench_search_score --worst N,M [--strategy A,B] [--only TEXT] [--repeats 25]
//   bench_search_score --set-aside 1 [--only TEXT] [--repeats 25] [--settings A,B]
//   bench_search_score --traces DIR
// The first drives the strategies themselves; the second scores documents of
// `purlin tune --device replay:FILE --json`, one repeat each. DIR defaults to $PURLIN_SPACES; where
// there is none, nothing is scored. --priors gives strategies what the recordings of the same
// kernel on the other GPUs say: all of it (shared), that of other makers' GPUs only, their three
// fastest configs, all with the times turned round (misleading), dealt anew at random (useless),
// turned round in one of several (mixed), right but for their fastest tenth, which trades places
// with the slowest (wrong-top), or whose order is turned round (reversed-top). --evaluations scores
// budgets of so few evaluations instead of the community's. --seed is the first seed. --worst shows
// the shares of the optimum's speed that budgets of so many evaluations end at, the lowest among
// them, and which strategies end more than 10 % below the optimum. --beyond 0 stops each run where
// its budget ends. --each 1 prints each repeat. The error is the standard error of four parts of
// the repeats. --set-aside leaves one kernel out: the constants of `model` that are best on the
// other kernels are scored on it. Deterministic but for the step times; prints Markdown.
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
#include <cmath>
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

// The fastest tenth: as slow as the slowest tenth, which is as fast; or fastest last.
void spoil_top(tune::PriorRun& run, bool trade) {
  const std::size_t tenth = std::max<std::size_t>(1, run.times.size() / 10);
  for (std::size_t i = 0; i < (trade ? tenth : tenth / 2); ++i)
    std::swap(run.times[i].first, run.times[(trade ? run.times.size() : tenth) - 1 - i].first);
}

// kInvalid for an unknown kind of priors.
Status give_priors(const std::vector<std::unique_ptr<Recorded>>& spaces, const std::string& kind) {
  const std::vector<std::string> kinds = {"shared",  "cross-vendor", "winners",   "misleading",
                                          "useless", "mixed",        "wrong-top", "reversed-top"};
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
      if (kind == "wrong-top" || kind == "reversed-top") spoil_top(run, kind == "wrong-top");
      if (kind != "winners") continue;
      run.times.resize(3);
      run.failed.clear();
      run.complete = false;
    }
  }
  return Status::ok();
}

struct Score {
  double score = 0, error = 0, noisy_score = 0;
  std::array<double, kCounts.size()> share{}, noisy_share{};
  double step_us = 0, longest_ms = 0;
};

struct Plan {
  int repeats = 25;
  unsigned threads = 2;
  bool noisy = true;       // also with one random sample of each config
  std::uint64_t seed = 1;  // of the first repeat
  bool beyond = true;      // runs go on to the last of kCounts
  bool each = false;       // prints each repeat
};

Score score(const Recorded& recorded, const MakeStrategy& make, const Plan& plan) {
  const int repeats = plan.repeats;
  const std::size_t kinds = plan.noisy ? 2 : 1;
  std::array<std::vector<Run>, 2> runs;  // plain, noisy
  for (std::size_t i = 0; i < kinds; ++i) runs[i].resize(static_cast<std::size_t>(repeats));
  std::atomic<std::size_t> next{0};
  const std::size_t least = plan.beyond && !recorded.score.limited() ? kCounts.back() : 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < kinds * static_cast<std::size_t>(repeats); i = next++)
      runs[i % kinds][i / kinds] =
          play(recorded, make, plan.seed + i / kinds, i % kinds == 1, least);
  };
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < plan.threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();

  Score result;
  result.score = score_of(recorded, runs[0]);
  result.error = error_of(recorded, runs[0]);
  for (std::size_t i = 0; plan.each && i < runs[0].size(); ++i)
    fmt::print("  {} seed {}: {:.3f}, {} evaluations, {}\n", recorded.name, plan.seed + i,
               score_of(recorded, {runs[0][i]}), runs[0][i].asked, runs[0][i].transfer);
  if (plan.noisy) result.noisy_score = score_of(recorded, runs[1]);
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
  fmt::print("| {} |{} {:.3f} | {:.3f} |{} {:.3f} |{} {:.1f} | {:.2f} |\n", name, facts, s.score,
             s.error, shares_text(s.share), s.noisy_score, shares_text(s.noisy_share), s.step_us,
             s.longest_ms);
  std::fflush(stdout);
}

void print_head(const std::string& first, const std::string& facts, int extra) {
  fmt::print(
      "\n| {} |{} score | error | @25 | @50 | @100 | @200 | noisy score | @25 | @50 | @100 | @200 "
      "| step, "
      "µs | longest, ms |\n|---|",
      first, facts);
  for (int i = 0; i < 13 + extra; ++i) fmt::print("--:|");
  fmt::print("\n");
}

Score mean_of(const std::vector<Score>& scores, double& worst) {
  Score mean;
  const double count = static_cast<double>(scores.size());
  worst = 1;
  for (const Score& s : scores) {
    mean.score += s.score / count;
    mean.error += s.error * s.error / count / count;
    mean.noisy_score += s.noisy_score / count;
    mean.step_us += s.step_us / count;
    mean.longest_ms = std::max(mean.longest_ms, s.longest_ms);
    worst = std::min(worst, s.score);
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      mean.share[i] += s.share[i] / count;
      mean.noisy_share[i] += s.noisy_share[i] / count;
    }
  }
  mean.error = std::sqrt(mean.error);
  return mean;
}

int score_strategies(const std::vector<std::unique_ptr<Recorded>>& spaces,
                     const std::vector<std::string>& strategies, const Plan& plan) {
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
      const auto make = [&](const tune::StrategyRequest& request) {
        return tune::make_strategy(strategy, request).value();
      };
      scores.push_back(score(*recorded, make, plan));
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
  fmt::print("\n## All, mean over {} spaces, {} repeats\n", spaces.size(), plan.repeats);
  print_head("strategy", " worst space |", 1);
  for (const Total& total : totals)
    print_row(total.strategy, fmt::format(" {:.3f} |", total.worst), total.mean);
  return 0;
}

// --- the ends of budgets of so many evaluations -------------------------------------------------

// The share of the optimum's speed.
double end_of(const Recorded& recorded, const std::string& strategy, std::size_t evaluations,
              std::uint64_t seed) {
  const tune::StrategyRequest request{recorded.space, seed, evaluations, 0, recorded.priors};
  const std::unique_ptr<tune::Strategy> search = tune::make_strategy(strategy, request).value();
  std::optional<double> best;
  for (std::size_t i = 0; i < evaluations; ++i) {
    const std::optional<std::size_t> index = search->ask();
    if (!index) break;
    const std::optional<double>& value = recorded.values[*index];
    if (value && (!best || *value < *best)) best = value;
    search->tell(*index, {value, recorded.runs[*index]->cost_s()});
  }
  return best ? recorded.score.optimum() / *best : 0;
}

int show_worst(const std::vector<std::unique_ptr<Recorded>>& spaces,
               const std::vector<std::string>& strategies, const std::string& counts,
               const Plan& plan) {
  constexpr double kFar = 0.9;
  fmt::print("| space | evaluations | strategy | mean | lowest | repeats below {:.1f} |\n", kFar);
  fmt::print("|---|--:|---|--:|--:|--:|\n");
  for (const auto& recorded : spaces)
    for (const std::string_view count : split(counts, ','))
      for (const std::string& strategy : strategies) {
        double sum = 0, lowest = 1;
        int far = 0;
        for (int repeat = 0; repeat < plan.repeats; ++repeat) {
          const double share = end_of(
              *recorded, strategy, static_cast<std::size_t>(std::atoi(std::string(count).c_str())),
              plan.seed + static_cast<std::uint64_t>(repeat));
          sum += share;
          lowest = std::min(lowest, share);
          far += share < kFar;
        }
        fmt::print("| {} | {} | {} | {:.3f} | {:.3f} | {} of {} |\n", recorded->name, count,
                   strategy, sum / plan.repeats, lowest, far, plan.repeats);
        std::fflush(stdout);
      }
  return 0;
}

// --- one kernel left out ------------------------------------------------------------------------

struct Setting {
  std::string name;
  tune::ModelOptions options;
};

// What the constants of `model` were chosen from. The first knows no stagnation and no small
// budget.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  const auto add = [&](const std::string& name, const auto& change) {
    all.push_back({name, {}});
    change(all.back().options);
  };
  using Options = tune::ModelOptions;
  add("before", [](Options& o) { o.first_low = 5, o.least_modelled = 0, o.forced = 0; });
  add("product", [](Options&) {});
  add("unforced", [](Options& o) { o.forced = 0; });
  add("forced-0.25", [](Options& o) { o.forced = 0.25; });
  add("forced-0.8", [](Options& o) { o.forced = 0.8; });
  add("patient", [](Options& o) { o.patience_low = 40, o.patience_share = 0.4; });
  add("impatient", [](Options& o) { o.patience_low = 12, o.patience_share = 0.12; });
  add("first-8", [](Options& o) { o.first_low = 8; });
  add("first-10", [](Options& o) { o.first_low = 10; });
  add("no-process", [](Options& o) { o.few_evaluations = 0; });
  add("model-from-12", [](Options& o) { o.least_modelled = 12; });
  return all;
}

int score_set_aside(const std::vector<std::unique_ptr<Recorded>>& spaces, const std::string& names,
                    const Plan& plan) {
  std::vector<Setting> chosen = settings();
  if (!names.empty()) {
    const std::vector<std::string> wanted = split(names, ',');
    std::erase_if(chosen, [&](const Setting& setting) {
      return std::find(wanted.begin(), wanted.end(), setting.name) == wanted.end();
    });
  }
  fmt::print("\n| setting |");
  for (const auto& recorded : spaces) fmt::print(" {} |", recorded->name);
  fmt::print(" mean | worst |\n|---|");
  for (std::size_t i = 0; i < spaces.size() + 2; ++i) fmt::print("--:|");
  fmt::print("\n");
  std::vector<std::vector<double>> scores;  // by setting and space
  for (const Setting& setting : chosen) {
    const auto make = [&](const tune::StrategyRequest& request) {
      return tune::make_model_search(request, tune::fit_boosted_trees(), setting.options);
    };
    fmt::print("| {} |", setting.name);
    std::vector<double>& row = scores.emplace_back();
    for (const auto& recorded : spaces) {
      row.push_back(score(*recorded, make, plan).score);
      fmt::print(" {:.3f} |", row.back());
      std::fflush(stdout);
    }
    fmt::print(" {:.3f} | {:.3f} |\n", CommunityScore::mean(row),
               *std::min_element(row.begin(), row.end()));
  }
  fmt::print("\n| kernel left out | best setting of the others | score |\n|---|---|--:|\n");
  std::map<std::string, std::vector<std::size_t>> kernels;
  for (std::size_t i = 0; i < spaces.size(); ++i) kernels[kernel_of(*spaces[i])].push_back(i);
  double total = 0;
  for (const auto& [kernel, own] : kernels) {
    const auto others = [&](const std::vector<double>& row) {
      double sum = 0;
      for (std::size_t i = 0; i < row.size(); ++i)
        if (std::find(own.begin(), own.end(), i) == own.end()) sum += row[i];
      return sum;
    };
    std::size_t best = 0;
    for (std::size_t s = 1; s < scores.size(); ++s)
      if (others(scores[s]) > others(scores[best])) best = s;
    double sum = 0;
    for (const std::size_t i : own) sum += scores[best][i];
    total += sum;
    fmt::print("| {} | {} | {:.3f} |\n", kernel, chosen[best].name,
               sum / static_cast<double>(own.size()));
  }
  fmt::print("| **mean over the spaces** | | {:.3f} |\n",
             total / static_cast<double>(spaces.size()));
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
      {"--spaces", ""},   {"--strategy", ""},   {"--only", ""},         {"--repeats", "25"},
      {"--threads", "2"}, {"--traces", ""},     {"--priors", ""},       {"--noisy", "1"},
      {"--settings", ""}, {"--set-aside", "0"}, {"--evaluations", "0"}, {"--seed", "1"},
      {"--worst", ""},    {"--beyond", "1"},    {"--each", "0"}};
  for (int i = 1; i < count; i += 2) {
    const auto found = given.find(arguments[i]);
    if (found == given.end() || i + 1 == count) {
      fmt::print(stderr,
                 "search_score: '{}' is no option with a value; there are: --spaces, "
                 "--strategy, --only, --repeats, --threads, --traces, --priors, --noisy, "
                 "--evaluations, --seed, --worst, --set-aside, --settings, --beyond, --each\n",
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
  const auto number = [&](const char* name, int least) {
    return std::max(least, std::atoi(given[name].c_str()));
  };
  const Plan plan{number("--repeats", 1),    static_cast<unsigned>(number("--threads", 1)),
                  number("--noisy", 0) > 0,  static_cast<std::uint64_t>(number("--seed", 1)),
                  number("--beyond", 0) > 0, number("--each", 0) > 0};
  for (const auto& recorded : spaces)
    recorded->score.limit_to(static_cast<std::size_t>(number("--evaluations", 0)));
  if (number("--set-aside", 0) > 0) return score_set_aside(spaces, given["--settings"], plan);
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
  if (!given["--worst"].empty()) return show_worst(spaces, strategies, given["--worst"], plan);
  return score_strategies(spaces, strategies, plan);
}

}  // namespace
}  // namespace purlin::bench

int main(int count, char** arguments) { return purlin::bench::run(count, arguments); }
