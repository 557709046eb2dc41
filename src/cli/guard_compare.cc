// SPDX-License-Identifier: Apache-2.0
// `purlin guard compare --samples A B`: the gate's verdict on recorded samples.
#include "cli/commands.h"
#include "cli/guard_session.h"
#include "guard/samples.h"

namespace purlin::cli {
namespace {

class GuardCompare : public Command {
 public:
  std::string_view name() const override { return "guard compare"; }
  std::string_view summary() const override { return "Judge recorded samples of two builds"; }
  std::string_view details() const override {
    return "A is the baseline, B the build under test: CSV files, gzipped or not, with the "
           "columns\n"
           "process, kernel, iteration, time_us and, where known, sm_clock_mhz. Processes with the "
           "same\n"
           "id form a pair: record them back to back, the order of each two by a coin. A verdict "
           "takes\n"
           "8 pairs of each kernel, and up to 40 more of a kernel that looks different.\n\n"
           "Example: purlin guard compare --samples before.csv after.csv.gz --json\n"
           "Exit codes: 0 pass or improvement, 1 regression, 2 error, 3 inconclusive.";
  }
  void declare(Flags& flags) override {
    flags.flag("--samples", samples_, "A and B are files of samples (needed)");
    flags.positional("A", baseline_, "Samples of the baseline");
    flags.positional("B", current_, "Samples of what is under test");
    flags.option("--detectable", thresholds_.detectable, "Slowdown that must be found");
    flags.option("--floor", thresholds_.floor, "Slowdown below which nothing is red");
    flags.option("--absolute-floor-ns", thresholds_.absolute_floor_ns, "The same in nanoseconds");
    outputs_.declare(flags);
  }

  Result<int> run(Context& context) override {
    if (!samples_)
      return error(Code::kInvalid,
                   "compare judges recorded samples: purlin guard compare --samples A.csv B.csv; "
                   "to judge a suite use `purlin guard check`");
    if (!(thresholds_.floor >= 0 && thresholds_.floor < thresholds_.detectable))
      return error(Code::kInvalid, "--floor ({}) must lie between 0 and --detectable ({})",
                   thresholds_.floor, thresholds_.detectable);
    PURLIN_ASSIGN(const auto baseline, guard::load_samples(baseline_));
    PURLIN_ASSIGN(const auto current, guard::load_samples(current_));
    guard::Report report;
    report.suite = baseline_ + " vs " + current_;
    report.environment = host_environment();
    for (guard::SamplesVerdict& verdict :
         guard::compare_samples(baseline, current, thresholds_, guard::Design{})) {
      guard::ReportItem item;
      item.kernel = std::move(verdict.kernel);
      item.result = std::move(verdict.result);
      report.items.push_back(std::move(item));
    }
    return outputs_.write(context, report);
  }

 private:
  GuardOutputs outputs_;
  guard::Thresholds thresholds_;
  std::string baseline_, current_;
  bool samples_ = false;
};

}  // namespace

std::unique_ptr<Command> make_guard_compare_command() { return std::make_unique<GuardCompare>(); }

}  // namespace purlin::cli
