// SPDX-License-Identifier: Apache-2.0
// Purlin's boosted trees against XGBoost as the cost model of the search, on recorded spaces; and
// both under the search that TVM has XGBoost in, evolutionary exploration by the model's
// predictions.
//
//   bench_model_compare --spaces DIR [--only TEXT] [--repeats 10] [--threads 2] [--kind A,B]
//   [--noisy 1]
// Built only where XGBoost's C API is installed (libxgboost-dev); nothing of the product needs it.
// Deterministic but for the times of a step; prints Markdown (bench/results/model_compare.md).
#include "base/random.h"
#include "base/text.h"
#include "base/time.h"
#include "recorded_spaces.h"
#include "tune/model/ensemble.h"
#include "tune/search/ledger.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <numeric>
#include <thread>
#include <xgboost/c_api.h>

namespace purlin::bench {
namespace {

void check(int code) {
  if (code == 0) return;
  fmt::print(stderr, "model_compare: XGBoost: {}\n", XGBGetLastError());
  std::exit(2);
}

struct BoosterSettings {
  int rounds, depth;
  double rate, columns;
};

std::vector<float> as_floats(std::span<const std::uint8_t> rows) {
  return {rows.begin(), rows.end()};
}

class Booster : public tune::Regressor {
 public:
  Booster(const tune::FitRequest& request, const BoosterSettings& settings, Random& random)
      : width_(request.width) {
    std::vector<float> rows, targets;
    for (const std::uint32_t row : request.chosen) {
      const auto from = request.rows.subspan(row * width_, width_);
      rows.insert(rows.end(), from.begin(), from.end());
      targets.push_back(request.targets[row]);
    }
    const float mean =
        std::accumulate(targets.begin(), targets.end(), 0.0F) / static_cast<float>(targets.size());
    DMatrixHandle matrix = nullptr;
    check(XGDMatrixCreateFromMat(rows.data(), targets.size(), width_, NAN, &matrix));
    check(XGDMatrixSetFloatInfo(matrix, "label", targets.data(), targets.size()));
    check(XGBoosterCreate(&matrix, 1, &booster_));
    const auto set = [&](const char* name, const std::string& value) {
      check(XGBoosterSetParam(booster_, name, value.c_str()));
    };
    set("objective", "reg:squarederror");
    set("tree_method", "exact");
    set("nthread", "1");
    set("verbosity", "0");
    set("seed", std::to_string(random.below(1U << 30)));
    set("base_score", fmt::format("{}", mean));
    set("max_depth", std::to_string(settings.depth));
    set("eta", fmt::format("{}", settings.rate));
    set("colsample_bytree", fmt::format("{}", settings.columns));
    set("lambda", "1");
    set("min_child_weight", "2");
    for (int round = 0; round < settings.rounds; ++round)
      check(XGBoosterUpdateOneIter(booster_, round, matrix));
    check(XGDMatrixFree(matrix));
  }
  ~Booster() override { XGBoosterFree(booster_); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;

  void predict(std::span<const std::uint8_t> rows, std::span<float> out) const override {
    if (out.empty()) return;
    const std::vector<float> values = as_floats(rows);
    DMatrixHandle matrix = nullptr;
    check(XGDMatrixCreateFromMat(values.data(), out.size(), width_, NAN, &matrix));
    bst_ulong count = 0;
    const float* predicted = nullptr;
    check(XGBoosterPredict(booster_, matrix, 0, 0, 0, &count, &predicted));
    std::copy(predicted, predicted + count, out.begin());
    check(XGDMatrixFree(matrix));
  }

 private:
  std::size_t width_;
  BoosterHandle booster_ = nullptr;
};

tune::FitRegressor fit_booster(const BoosterSettings& settings) {
  return [settings](const tune::FitRequest& request,
                    Random& random) -> std::unique_ptr<tune::Regressor> {
    return std::make_unique<Booster>(request, settings, random);
  };
}

// After random configs, rounds of: fit; let a population evolve under what the model predicts; take
// the best of all that was met and not tried, and a few random ones.
class Evolution : public tune::Strategy {
 public:
  Evolution(const tune::StrategyRequest& request, tune::FitRegressor fit)
      : space_(request.space),
        random_(request.seed),
        ledger_(space_, random_),
        ensemble_(space_, std::move(fit)) {}
  std::string_view name() const override { return "evolution-by-model"; }

  std::optional<std::size_t> ask() override {
    if (ensemble_.observations() < kFirst || ensemble_.worked() < 2) return ledger_.draw();
    if (queue_.empty()) propose();
    while (!queue_.empty()) {
      const std::size_t index = queue_.front();
      queue_.pop_front();
      if (ledger_.take(index)) return index;
    }
    return ledger_.draw();
  }
  void tell(std::size_t index, const tune::Outcome& outcome) override {
    ledger_.take(index);
    ensemble_.add(index, outcome.time_ms);
    if (!outcome.time_ms) return;
    tried_.push_back({static_cast<float>(*outcome.time_ms), index});
  }

 private:
  static constexpr std::size_t kFirst = 16, kPopulation = 128, kGenerations = 5, kBatch = 8;
  static constexpr double kRandom = 0.05, kMutation = 0.85;
  struct Member {
    float value;
    std::size_t index;
    bool operator<(const Member& other) const {
      return value != other.value ? value < other.value : index < other.index;
    }
  };

  std::vector<float> predict(const std::vector<std::size_t>& indices) const {
    std::vector<float> values;
    for (const auto& each : ensemble_.predict(ensemble_.encode(indices)))
      values.push_back(std::accumulate(each.begin(), each.end(), 0.0F));
    return values;
  }

  void propose() {
    ensemble_.fit(random_);
    std::sort(tried_.begin(), tried_.end());
    // Half of them the fastest that were measured, the others random.
    std::vector<std::size_t> population;
    for (std::size_t i = 0; i < std::min(tried_.size(), kPopulation / 2); ++i)
      population.push_back(tried_[i].index);
    const auto drawn = space_.sample(kPopulation - population.size(), random_);
    population.insert(population.end(), drawn.begin(), drawn.end());
    std::vector<Member> met;
    for (std::size_t generation = 0; generation < kGenerations; ++generation) {
      const std::vector<float> values = predict(population);
      std::vector<Member> members;
      for (std::size_t i = 0; i < population.size(); ++i)
        members.push_back({values[i], population[i]});
      met.insert(met.end(), members.begin(), members.end());
      std::sort(members.begin(), members.end());
      std::vector<std::size_t> next;
      while (next.size() < kPopulation) {
        const std::size_t parent = pick(members);
        next.push_back(random_.uniform() < kMutation
                           ? ledger_.step(parent)
                           : ledger_.approach(parent, ledger_.values(pick(members)), 0.5));
      }
      population = std::move(next);
    }
    std::sort(met.begin(), met.end());
    for (const Member& member : met) {
      if (queue_.size() == kBatch) break;
      if (ledger_.knows(member.index) ||
          std::find(queue_.begin(), queue_.end(), member.index) != queue_.end())
        continue;
      queue_.push_back(member.index);
    }
    for (std::size_t& index : queue_)
      if (random_.uniform() < kRandom) index = space_.sample(1, random_).front();
  }
  // By tournament.
  std::size_t pick(const std::vector<Member>& sorted) {
    return sorted[std::min(random_.below(sorted.size()), random_.below(sorted.size()))].index;
  }

  const tune::Space& space_;
  Random random_;
  tune::Ledger ledger_;
  tune::Ensemble ensemble_;
  std::deque<std::size_t> queue_;
  std::vector<Member> tried_;
};

struct Kind {
  std::string name;
  MakeStrategy make;
};

std::vector<Kind> kinds() {
  // The settings of Purlin's trees, and XGBoost's own defaults with as many rounds as TVM takes.
  const BoosterSettings like{25, 4, 0.25, 0.7}, usual{100, 6, 0.3, 1};
  const auto searched = [](tune::FitRegressor fit) -> MakeStrategy {
    return [fit](const tune::StrategyRequest& request) {
      return tune::make_model_search(request, fit);
    };
  };
  const auto evolved = [](tune::FitRegressor fit) -> MakeStrategy {
    return [fit](const tune::StrategyRequest& request) -> std::unique_ptr<tune::Strategy> {
      return std::make_unique<Evolution>(request, fit);
    };
  };
  return {{"trees", searched(tune::fit_boosted_trees())},
          {"xgboost", searched(fit_booster(like))},
          {"xgboost-usual", searched(fit_booster(usual))},
          {"trees-evolution", evolved(tune::fit_boosted_trees())},
          {"xgboost-evolution", evolved(fit_booster(like))},
          {"xgboost-usual-evolution", evolved(fit_booster(usual))}};
}

std::vector<Run> play_all(const Recorded& recorded, const Kind& kind, int repeats, int threads,
                          bool noisy) {
  std::vector<Run> runs(static_cast<std::size_t>(repeats));
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++)
      runs[i] = play(recorded, kind.make, i + 1, noisy);
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  return runs;
}

int run(int count, char** arguments) {
  std::map<std::string, std::string> given = {{"--spaces", ""},    {"--only", ""},
                                              {"--repeats", "10"}, {"--threads", "2"},
                                              {"--kind", ""},      {"--noisy", "0"}};
  for (int i = 1; i < count; i += 2) {
    const auto found = given.find(arguments[i]);
    if (found == given.end() || i + 1 == count) {
      fmt::print(stderr, "model_compare: '{}' is no option with a value\n", arguments[i]);
      return 2;
    }
    found->second = arguments[i + 1];
  }
  std::string directory = given["--spaces"];
  if (directory.empty() && std::getenv("PURLIN_SPACES") != nullptr)
    directory = std::getenv("PURLIN_SPACES");
  const auto spaces = directory.empty() ? std::vector<std::unique_ptr<Recorded>>{}
                                        : read_all(directory, given["--only"]);
  if (spaces.empty()) {
    fmt::print("model_compare: skipped: no recorded spaces; give --spaces DIR or PURLIN_SPACES\n");
    return 0;
  }
  const std::vector<std::string> chosen =
      given["--kind"].empty() ? std::vector<std::string>{} : split(given["--kind"], ',');
  const int repeats = std::max(2, std::atoi(given["--repeats"].c_str()));
  const int threads = std::max(1, std::atoi(given["--threads"].c_str()));
  const bool noisy = given["--noisy"] == "1";
  std::string head = "| model |", rule = "|---|";
  for (const auto& recorded : spaces) {
    head += fmt::format(" {} |", recorded->name);
    rule += "--:|";
  }
  fmt::print("{} **mean** | ms per step | longest, ms |\n{}--:|--:|--:|\n", head, rule);
  for (const Kind& kind : kinds()) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), kind.name) == chosen.end())
      continue;
    fmt::print("| {} |", kind.name);
    double sum = 0, step_s = 0, steps = 0, longest_s = 0;
    for (const auto& recorded : spaces) {
      const std::vector<Run> runs = play_all(*recorded, kind, repeats, threads, noisy);
      const double score = score_of(*recorded, runs);
      sum += score;
      for (const Run& one : runs) {
        step_s += one.step_s;
        steps += static_cast<double>(one.asked);
        longest_s = std::max(longest_s, one.longest_s);
      }
      fmt::print(" {:.3f} |", score);
      std::fflush(stdout);
    }
    fmt::print(" **{:.3f}** | {:.2f} | {:.0f} |\n", sum / static_cast<double>(spaces.size()),
               step_s / steps * 1e3, longest_s * 1e3);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace purlin::bench

int main(int count, char** arguments) { return purlin::bench::run(count, arguments); }
