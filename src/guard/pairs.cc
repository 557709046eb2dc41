// SPDX-License-Identifier: Apache-2.0
#include "guard/pairs.h"

#include <algorithm>

namespace purlin::guard {
namespace {

class Session {
 public:
  Session(SuiteGate& gate, const std::vector<Arms>& arms, Runner& runner, Random& random,
          Clock& clock, const PairsOptions& options)
      : gate_(gate),
        arms_(arms),
        runner_(runner),
        random_(random),
        clock_(clock),
        options_(options),
        begin_ns_(clock.monotonic_ns()) {}

  Status run() {
    for (const std::size_t item : gate_.wanted()) {
      report("verifying " + arms_[item].name);
      PURLIN_TRY(run_pair(item, true));
    }
    pairs_begin_ns_ = clock_.monotonic_ns();
    for (std::vector<std::size_t> items = gate_.wanted(); !items.empty(); items = gate_.wanted()) {
      random_.shuffle(items);
      for (const std::size_t item : items) {
        if (options_.time_limit_s > 0 && seconds_since(begin_ns_) > options_.time_limit_s) {
          gate_.finish();
          return Status::ok();
        }
        report(gate_.flagged() > 0 ? fmt::format("confirming {} flagged", gate_.flagged())
                                   : "screening");
        PURLIN_TRY(run_pair(item, false));
      }
    }
    return Status::ok();
  }

 private:
  // Both arms in coin order. With `verify` nothing is kept but whether they work.
  Status run_pair(std::size_t item, bool verify) {
    const Arms& arms = arms_[item];
    const bool current_first = random_.next() >> 63;
    Status failure[2];  // of baseline, current
    Pair pair;
    for (const bool current : {current_first, !current_first}) {
      const Result<ProcessReading> reading =
          runner_.run(current ? arms.current : arms.baseline, verify);
      if (reading.is_ok()) {
        (current ? pair.current : pair.baseline) = reading->reading;
      } else if (reading.status().code() == Code::kFailed) {
        failure[current ? 1 : 0] = reading.status();
      } else {
        return reading.status().with_context(arms.name);
      }
    }
    if (!failure[1].is_ok()) {
      gate_.give_up(item, Verdict::kInvalid, "the kernel fails now: " + failure[1].message());
    } else if (!failure[0].is_ok()) {
      gate_.give_up(item, Verdict::kInconclusive,
                    "the baseline's kernel does not run here any more, so there is nothing to "
                    "compare with: " +
                        failure[0].message());
    } else if (!verify) {
      gate_.add(item, pair);
    }
    return Status::ok();
  }

  void report(std::string doing) {
    if (!options_.progress) return;
    PairProgress progress;
    progress.doing = std::move(doing);
    progress.done = gate_.pairs_done();
    progress.at_most = gate_.pairs_at_most();
    progress.seconds = seconds_since(begin_ns_);
    if (progress.done > 0)
      progress.left_s =
          seconds_since(pairs_begin_ns_) / progress.done * (progress.at_most - progress.done);
    options_.progress(progress);
  }

  double seconds_since(std::int64_t begin_ns) const {
    return static_cast<double>(clock_.monotonic_ns() - begin_ns) / 1e9;
  }

  SuiteGate& gate_;
  const std::vector<Arms>& arms_;
  Runner& runner_;
  Random& random_;
  Clock& clock_;
  const PairsOptions& options_;
  std::int64_t begin_ns_, pairs_begin_ns_ = 0;
};

}  // namespace

Status run_pairs(SuiteGate& gate, const std::vector<Arms>& arms, Runner& runner, Random& random,
                 Clock& clock, const PairsOptions& options) {
  return Session(gate, arms, runner, random, clock, options).run();
}

}  // namespace purlin::guard
