// SPDX-License-Identifier: Apache-2.0
// Strategy: which config to evaluate next.
//
// A strategy is asked for configs and receives their results. It may be asked several times before
// a result arrives, so that configs compile ahead and several devices can work at once. Under one
// seed the same sequence of calls gives the same answers. Strategies are made by name from one
// table. A new strategy needs one file and one line of that table. Thread-safety: belongs to one
// thread. Never fails.
#pragma once

#include "base/status.h"
#include "tune/model/regressor.h"
#include "tune/search/model_options.h"
#include "tune/search/prior.h"
#include "tune/space/space.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::tune {

// How an evaluation ended.
struct Outcome {
  // What is to be as small as can be: the time, or another objective. nullopt: it failed.
  std::optional<double> time_ms;
  double cost_s = 0;  // what it took, failed or not; 0 = not known
  // All that is known of it, for as long as the call takes; nullptr = no more than the above.
  const Evaluation* evaluation = nullptr;
  // How much of a budget in seconds it used up: less than it cost where configs compile ahead or
  // several devices work at once. nullopt: what it cost.
  std::optional<double> passed_s{};
  // What was left of a budget in seconds for the search when it ended: without the start of the
  // session, what else it did, and the finals. nullopt: all that the results did not use.
  std::optional<double> left_s{};

  double used_s() const { return passed_s.value_or(cost_s); }
};

// What became of the knowledge of other runs.
struct TransferOutcome {
  enum class State { kTrying, kKept, kDropped };
  State state = State::kTrying;
  std::string why;           // of a decision, for people
  std::size_t proposed = 0;  // configs it asked for, failed ones included
  std::size_t failed = 0;
  std::size_t drawn = 0;         // configs drawn at random to compare with
  std::size_t runs_dropped = 0;  // by themselves, while others were kept
  double belief = 1;             // probability that the runs help, by the order of what was seen
  double evidence = 0;           // nats by which the runs made what was observed likelier
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;
  // The index of a config that was neither asked for nor reported before. nullopt while results are
  // outstanding: no config until the next result. nullopt without outstanding results: the strategy
  // is done.
  virtual std::optional<std::size_t> ask() = 0;
  // Configs that it may ask for soon, the likeliest first: worth compiling meanwhile. Not asked
  // for.
  virtual std::vector<std::size_t> likely(std::size_t /*count*/) { return {}; }
  // Of a patient strategy: how many configs it may ask for before their results, once it chooses by
  // results; 1 at the beginning.
  virtual void ask_ahead(std::size_t /*configs*/) {}
  // Reports the result of one config. It may also be a config that was not asked for, such as the
  // default or a config known from elsewhere.
  virtual void tell(std::size_t index, const Outcome& outcome) = 0;
  // Whether to read the hardware counters of this config, which was asked for, where the device
  // permits it. The reading takes about as long as an evaluation. The answer is a maximum: counters
  // are read if the config's time is at most this multiple of the best time. 0 = never, infinite =
  // always.
  virtual double count_within(std::size_t /*index*/) const { return 0; }
  // nullptr for strategies that use no priors.
  virtual const TransferOutcome* transfer() const { return nullptr; }
};

struct StrategyRequest {
  const Space& space;  // outlives the strategy
  std::uint64_t seed = 1;
  std::size_t evaluations = 0;  // how many the budget allows; 0 = not known (a budget in seconds)
  // The budget in seconds, start and finals included (Outcome::left_s); 0 = not limited.
  double seconds = 0;
  std::vector<PriorRun> priors{};  // what is known from elsewhere; the nearest first
  // This many of the configs that will be reported represent draws at random. The strategy draws
  // that many fewer at the beginning.
  std::size_t drawn = 0;
  // Each config is chosen by the results of all before it, where that tells more. likely() says
  // what to compile meanwhile.
  bool patient = false;
};

struct StrategyKind {
  std::string_view name, summary;
  std::unique_ptr<Strategy> (*make)(const StrategyRequest& request);
};

const std::vector<StrategyKind>& strategy_kinds();
// kInvalid with the known names, or the nearest.
Status check_strategy(std::string_view name);
Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name,
                                                const StrategyRequest& request);

std::unique_ptr<Strategy> make_exhaustive(const StrategyRequest& request);
std::unique_ptr<Strategy> make_random(const StrategyRequest& request);
std::unique_ptr<Strategy> make_local(const StrategyRequest& request);
std::unique_ptr<Strategy> make_ils(const StrategyRequest& request);
// A local search that others consult. It draws no config at random while a reported one is left to
// climb from. Of a config's neighbours, those with the least expected time come first.
using ExpectedTime = std::function<double(std::size_t index)>;
std::unique_ptr<Strategy> make_climb(const StrategyRequest& request, ExpectedTime expected);
std::unique_ptr<Strategy> make_annealing(const StrategyRequest& request);
std::unique_ptr<Strategy> make_genetic(const StrategyRequest& request);
std::unique_ptr<Strategy> make_evolution(const StrategyRequest& request);
std::unique_ptr<Strategy> make_swarm(const StrategyRequest& request);
std::unique_ptr<Strategy> make_model(const StrategyRequest& request);
// A population that evolves under a cost model, as TVM has it; and the same over another model.
std::unique_ptr<Strategy> make_boosted(const StrategyRequest& request);
std::unique_ptr<Strategy> make_boosted_search(const StrategyRequest& request, FitRegressor fit);
// `model`, which also learns from the hardware's counters where evaluations have them.
std::unique_ptr<Strategy> make_counters(const StrategyRequest& request);
// `model` over another model, or with other constants.
std::unique_ptr<Strategy> make_model_search(const StrategyRequest& request, FitRegressor fit,
                                            const ModelOptions& options);
std::unique_ptr<Strategy> make_transfer(const StrategyRequest& request);
std::unique_ptr<Strategy> make_auto(const StrategyRequest& request);
// `auto` without a trial of the priors: they are features of its model at most.
std::unique_ptr<Strategy> make_cold_auto(const StrategyRequest& request);

}  // namespace purlin::tune
