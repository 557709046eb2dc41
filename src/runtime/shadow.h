// SPDX-License-Identifier: Apache-2.0
// Shadow: now and then, just before a live launch, the winner and one of its rivals are launched
// and timed on the same arguments; duels decide from the pairs whether the winner still wins.
//
// It never changes the program's results: the live launch comes last and writes every output again.
// Kernels are left alone if this is not true for them: they change an input in place, or the
// program's buffers overlap. It never waits: times are read when the device has them. [MT]; duels
// live as long as the Shadow.
#pragma once

#include "base/random.h"
#include "gpu/app_context.h"
#include "runtime/plan_table.h"
#include "runtime/slowdown_detector.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace purlin::runtime {

// One entry's winner against one rival, over all shapes of the entry.
class Duel {
 public:
  Duel(std::string key_id, std::string record_id, const Variant* winner, const Variant* rival)
      : entry(std::move(key_id)), record(std::move(record_id)), served(winner), against(rival) {}
  const std::string entry, record;  // id of the key; of the entry's record
  const Variant* const served;
  const Variant* const against;
  SlowdownDetector test;  // the Shadow's
  std::string shape;      // the latest
};

// What a duel decided.
struct Defeat {
  std::string entry, record;
  const Variant* loser = nullptr;
  const Variant* winner = nullptr;
  std::string shape;
  double ratio = 0;
  std::uint64_t samples = 0;
};

class Shadow {
 public:
  // One in `every` launches, at random; 0: none.
  Shadow(int every, std::uint64_t seed);

  bool enabled() const { return every_ > 0; }
  Duel* duel(const std::string& entry, const std::string& record, const Variant* served,
             const Variant* against);

  // Whether this launch of the plan, the count-th, is to be shadowed. Almost always one comparison.
  bool due(Plan& plan, std::uint64_t count) {
    return count >= plan.next_shadow.load(std::memory_order_relaxed) && claim(plan, count);
  }
  // Launches the choice as the program asked, shadowed where its buffers allow. The driver's code.
  int launch(gpu::AppContext& device, const Choice& choice, const gpu::AppLaunch& launch,
             std::string_view shape);
  // Reads the times that have arrived; a duel that was decided is a defeat.
  std::vector<Defeat> poll();

  struct Figures {
    std::uint64_t samples = 0;
    double ratio = 1;  // time of what is served over its rival's
  };
  Figures figures(const Duel& duel) const;

 private:
  static constexpr std::size_t kMaxPending = 64;
  struct Pending {
    std::unique_ptr<gpu::AppTiming> timing;
    Duel* duel = nullptr;
    bool served_first = false;
  };
  bool claim(Plan& plan, std::uint64_t count);
  bool buffers_allow(const gpu::AppContext& device, const Choice& choice,
                     const gpu::AppLaunch& launch) const;

  const int every_;
  mutable std::mutex mutex_;
  Random random_;
  std::map<std::tuple<std::string, const Variant*, const Variant*>, std::unique_ptr<Duel>> duels_;
  std::vector<Pending> pending_;
};

}  // namespace purlin::runtime
