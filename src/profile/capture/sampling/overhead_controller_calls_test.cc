// SPDX-License-Identifier: Apache-2.0
// The overhead controller where CUPTI's calls take long: what is recorded meanwhile is represented
// once.
#include "profile/capture/sampling/overhead_controller.h"
#include "profile/capture/sampling/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace purlin::profile::capture {
namespace {

// As on an overloaded machine: threads that launch hold CUPTI's locks, so the calls that open and
// close a window wait for them, up to four times as long as the window. Recording goes on until the
// closing call is over, and begins when the opening call is.
TEST(OverheadController, CallsThatWaitForTheProgramDoNotChangeTheTotal) {
  for (const std::int64_t longest : {kMs / 100, 5 * kMs, 20 * kMs, 40 * kMs})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      ControllerOptions options;
      options.seed = seed;
      options.full_window_ns = 10 * kMs;
      options.full_cell_ns = 20 * kMs;
      options.after_context = true;
      OverheadController controller(options, {Requirements{}}, 1);
      std::mt19937_64 random(seed);
      std::int64_t now = 1;
      bool open = false;
      double truth = 0, estimate = 0, unweighted = 0, unpaid = 0, unsure = 0;
      double known = 1;  // the weight of what is recorded; 0: not known before it is settled
      const auto pass = [&](std::int64_t ns) {  // 500 launches a ms
        const double launches = static_cast<double>(ns) / 2e3;
        truth += launches;
        if (open) unweighted += launches, unpaid += launches;
        now += ns;
      };
      while (now < 5 * kSecond) {
        const auto wait =
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest)) + 1;
        controller.recorded(std::exchange(unpaid, 0), 0);
        const OverheadController::Decision decision = controller.decide(now);
        if (open && decision.tier != 0) {
          pass(wait);
          controller.closed(0, now, wait);
          controller.spent(0, wait);
          open = false;
        }
        if (decision.new_period) {
          const OverheadController::Standing standing = controller.take_weight();
          unsure = std::max(unsure, standing.unsure);
          estimate += std::exchange(unweighted, 0) * (known > 0 ? known : standing.weight);
          known = controller.weight_is_final() ? controller.planned_weight() : 0;
        }
        if (!open && decision.tier == 0) {
          pass(wait);
          controller.opened(0, now, wait);
          controller.spent(0, wait);
          open = true;
        }
        pass(std::max<std::int64_t>(decision.ask_again_ns - now, kMs / 10));
      }
      controller.interrupted(now);
      estimate += unweighted * (known > 0 ? known : controller.take_weight(true).weight);
      EXPECT_NEAR(estimate / truth, 1, 0.02) << longest << ' ' << seed;
      EXPECT_LE(controller.totals().recorded_ns, controller.totals().governed_ns);
      if (longest < kMs)
        EXPECT_LT(unsure, 0.01);
      else
        EXPECT_GT(unsure, 0.2);
    }
}

// What is recorded to free graphs of their instrumentation represents only itself. The next window
// does not represent that time again.
TEST(OverheadController, TheTimeOfACycleIsRepresentedOnce) {
  double time_ns[2] = {};
  for (const bool told : {false, true}) {
    ControllerOptions options;
    options.seed = 3;
    options.costs.lasting_launch_ns = 0;  // else no windows follow
    OverheadController controller(options, {Requirements{}}, 1);
    std::int64_t now = 1;
    OverheadController::Decision decision = controller.decide(now);
    controller.opened(0, now);
    controller.recorded(1e6, 0);
    while (decision.tier == 0) decision = controller.decide(now += kMs);
    controller.closed(0, now);
    controller.take_alone_ns();
    now += 50 * kMs;
    if (told) controller.cycled(50 * kMs);
    while (decision.tier != 0) decision = controller.decide(now = decision.ask_again_ns);
    if (decision.new_period) controller.take_weight();
    controller.opened(0, now);
    while (decision.tier == 0) decision = controller.decide(now += kMs);
    controller.closed(0, now);
    controller.interrupted(now);
    time_ns[told ? 1 : 0] = controller.take_weight(true).time_ns;
    EXPECT_EQ(controller.take_alone_ns(), told ? 50e6 : 0);
  }
  EXPECT_EQ(time_ns[0] - time_ns[1], 50e6);
}

}  // namespace
}  // namespace purlin::profile::capture
