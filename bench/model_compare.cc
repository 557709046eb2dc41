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
#include "tune/search/strategy.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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

struct Kind {
  std::string name;
  MakeStrategy make;
};

std::vector<Kind> kinds() {
  // The settings of Purlin's trees, and XGBoost's own defaults with as many rounds as TVM takes.
  const BoosterSettings like{25, 4, 0.25, 0.7}, usual{100, 6, 0.3, 1};
  const auto searched = [](tune::FitRegressor fit) -> MakeStrategy {
    return [fit](const tune::StrategyRequest& request) {
      return tune::make_model_search(request, fit, {});
    };
  };
  const auto evolved = [](tune::FitRegressor fit) -> MakeStrategy {
    return [fit](const tune::StrategyRequest& request) {
      return tune::make_boosted_search(request, fit);
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
      runs[i] = play(recorded, kind.make, i + 1, noisy, kCounts.back());
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
