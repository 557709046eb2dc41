// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/speedup.h"

#include "base/text.h"
#include "guard/gate/gate.h"
#include "guard/gate/signed_rank.h"

#include <fmt/core.h>

namespace purlin::cli {

std::string Speedup::effect_text() const {
  if (!resolved()) return "no difference shown";
  return estimate > 1 ? fmt::format("{:.2f}x faster", estimate)
                      : fmt::format("{:.2f}x slower", 1 / estimate);
}

std::string Speedup::interval_text() const {
  return fmt::format("{:.0f} % interval [{:.2f}, {:.2f}], {} of processes", 100 * confidence, low,
                     high, counted(pairs, "pair"));
}

Json to_json(const Speedup& speedup) {
  return Json::object({{"before_ms", speedup.before_ms},
                       {"after_ms", speedup.after_ms},
                       {"speedup", speedup.estimate},
                       {"low", speedup.low},
                       {"high", speedup.high},
                       {"confidence", speedup.confidence},
                       {"pairs", speedup.pairs}});
}

Result<Speedup> measure_speedup(int pairs, Random& random,
                                const std::function<Result<double>(ProgramArm)>& measure) {
  constexpr double kIntervalTail = 0.025;
  std::vector<guard::Pair> taken;
  std::vector<double> before_ms, after_ms;
  for (int i = 0; i < pairs; ++i) {
    const bool before_first = random.below(2) == 0;
    for (const bool before : {before_first, !before_first}) {
      PURLIN_ASSIGN(const double ms, measure(before ? ProgramArm::kBefore : ProgramArm::kAfter));
      if (!(ms > 0)) return error(Code::kFailed, "a process measured {} ms", ms);
      (before ? before_ms : after_ms).push_back(ms);
    }
    guard::Pair pair;
    pair.baseline.time_ns = before_ms.back() * 1e6;
    pair.current.time_ns = after_ms.back() * 1e6;
    taken.push_back(pair);
  }
  const guard::Effect effect = guard::effect_of(taken, kIntervalTail);
  // The gate's ratio is after / before.
  return Speedup{guard::median_of(before_ms),
                 guard::median_of(after_ms),
                 1 / effect.ratio,
                 1 / effect.high,
                 1 / effect.low,
                 effect.confidence,
                 effect.pairs};
}

}  // namespace purlin::cli
