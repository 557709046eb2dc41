// SPDX-License-Identifier: Apache-2.0
#include "tune/search/strategy.h"

#include "base/text.h"

namespace purlin::tune {

const std::vector<StrategyKind>& strategy_kinds() {
  static const std::vector<StrategyKind> kKinds = {
      {"auto", "exhaustive where the budget covers the space, else random and local search",
       make_auto},
      {"exhaustive", "every config, in space order", make_exhaustive},
      {"random", "configs drawn uniformly, each once", make_random},
      {"local", "hill climbing over configs that differ in one parameter, with restarts",
       make_local},
      {"transfer", "from what other devices, shapes and versions know, while that holds",
       make_transfer},
  };
  return kKinds;
}

Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name,
                                                const StrategyRequest& request) {
  std::vector<std::string> names;
  for (const StrategyKind& kind : strategy_kinds()) {
    if (kind.name == name) return kind.make(request);
    names.emplace_back(kind.name);
  }
  const std::string near = nearest(name, names);
  return error(
      Code::kInvalid, "unknown strategy '{}'; {}", name,
      near.empty() ? "there are: " + join(names, ", ") : fmt::format("did you mean '{}'?", near));
}

}  // namespace purlin::tune
