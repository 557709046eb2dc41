// SPDX-License-Identifier: Apache-2.0
#include "tune/search/strategy.h"

#include "base/text.h"

namespace purlin::tune {

const std::vector<StrategyKind>& strategy_kinds() {
  static const std::vector<StrategyKind> kKinds = {
      {"auto", "exhaustive where the budget covers the space, else transfer or model", make_auto},
      {"exhaustive", "every config, in space order", make_exhaustive},
      {"random", "configs drawn uniformly, each once", make_random},
      {"local", "hill climbing to the first faster neighbour, with restarts", make_local},
      {"ils", "hill climbing, going on a few steps away from the best", make_ils},
      {"annealing", "simulated annealing: slower neighbours too, ever more rarely", make_annealing},
      {"genetic", "crosses and mutates the fastest", make_genetic},
      {"evolution", "differential evolution on positions of values", make_evolution},
      {"swarm", "particle swarm on positions of values", make_swarm},
      {"model", "boosted trees learn the space and propose what they expect to be fast",
       make_model},
      {"boosted", "a population that evolves under a cost model of boosted trees", make_boosted},
      {"counters", "model, which has the hardware's counters read and learns from them, too",
       make_counters},
      {"transfer", "from what other devices, shapes and versions know, while that holds",
       make_transfer},
  };
  return kKinds;
}

Status check_strategy(std::string_view name) {
  std::vector<std::string> names;
  for (const StrategyKind& kind : strategy_kinds()) {
    if (kind.name == name) return Status::ok();
    names.emplace_back(kind.name);
  }
  const std::string near = nearest(name, names);
  return error(
      Code::kInvalid, "unknown strategy '{}'; {}", name,
      near.empty() ? "there are: " + join(names, ", ") : fmt::format("did you mean '{}'?", near));
}

Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name,
                                                const StrategyRequest& request) {
  for (const StrategyKind& kind : strategy_kinds())
    if (kind.name == name) return kind.make(request);
  return check_strategy(name);
}

}  // namespace purlin::tune
