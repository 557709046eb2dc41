// SPDX-License-Identifier: Apache-2.0
// `purlin guard compare A B`: the verdict on two builds, commands, environments or caches, run in
// pairs, or on recorded samples.
#include "guard/check/compare.h"

#include "base/files.h"
#include "base/text.h"
#include "cache/store/store.h"
#include "cli/commands.h"
#include "cli/guard/device.h"
#include "cli/guard/suite_run.h"
#include "cli/guard/workload.h"
#include "guard/arms/worktree.h"
#include "guard/gate/samples.h"
#include "guard/suite/contender.h"

#include <unistd.h>

namespace purlin::cli {
namespace {

class GuardCompare : public Command {
 public:
  std::string_view name() const override { return "guard compare"; }
  std::string_view summary() const override { return "Compare B with A, run in pairs now"; }
  VerbText text() const override {
    return {
        .description =
            "Without another option, A and B are git revisions, and --build builds each in a "
            "worktree. The comparison runs --suite, or the command after `--`, which prints its "
            "times in --format on stdout or in the file of its argument {output}. Both sides run "
            "as pairs of fresh processes in random order.",
        .more = "A comparison with --journal that was killed continues when it is started again.",
        .examples = {{"purlin guard compare main HEAD --suite gate.toml --journal guard.jsonl"},
                     {"purlin guard compare v1.2 HEAD --build 'make -j' -- ./bench --csv"},
                     {"purlin guard compare --commands './old/bench' './new/bench'"},
                     {"purlin guard compare --environments CUDA_MODULE_LOADING=LAZY "
                      "CUDA_MODULE_LOADING=EAGER -- ./bench"},
                     {"purlin guard compare --samples before.csv after.csv.gz --json"}},
        .exit_codes = {{0, "Pass or improvement"},
                       {1, "Regression"},
                       {2, "Error"},
                       {3, "Inconclusive"}},
        .see = {"docs/guide/guard.md", "docs/formats/samples.md"}};
  }
  void declare(Flags& flags) override {
    flags.positional("A", a_, "Reference side");
    flags.positional("B", b_, "Side under test");
    flags.flag(
        "--samples", samples_,
        {"A and B are CSV files of samples; nothing is run", "The samples are paired by process."});
    flags.flag("--commands", commands_, "A and B are shell commands that print times");
    flags.flag("--environments", environments_,
               {"A and B are environment variables",
                "Each is NAME=VALUE,... or a file of such lines, for one side."});
    flags.flag("--caches", caches_,
               {"A and B are config caches, for a suite",
                "They are directories. The suite has cached configs."});
    workload_.declare(flags);
    flags.option("--filter", filter_, "Only items that match, such as *gemm*", "GLOB");
    flags.option("--journal", journal_, "File of the pairs; a killed run continues from it",
                 "FILE");
    flags.option("--time-limit", time_limit_,
                 "Decide with the available data after this time, such as 90s", "TIME");
    flags.option("--detectable", thresholds_.detectable, "Slowdown that must be found");
    flags.option("--floor", thresholds_.floor, "Slowdown below which no item is a regression");
    flags.option(
        "--absolute-floor-ns", thresholds_.absolute_floor_ns,
        {"The same floor in nanoseconds", "Two steps of the timer and 30 cycles always apply."});
    watched_.declare(flags);
    outputs_.declare(flags);
  }

  Result<int> run(Context& context) override {
    if (samples_ + commands_ + environments_ + caches_ > 1)
      return error(Code::kInvalid,
                   "--samples, --commands, --environments and --caches say what A and B are: "
                   "use one");
    if (!(thresholds_.floor >= 0 && thresholds_.floor < thresholds_.detectable))
      return error(Code::kInvalid, "--floor ({}) must lie between 0 and --detectable ({})",
                   thresholds_.floor, thresholds_.detectable);
    return samples_ ? run_samples(context) : run_live(context);
  }

 private:
  Result<int> run_samples(Context& context) {
    PURLIN_ASSIGN(const auto baseline, guard::load_samples(a_));
    PURLIN_ASSIGN(const auto current, guard::load_samples(b_));
    guard::Report report;
    report.suite = a_ + " vs " + b_;
    report.environment = host_environment();
    for (guard::SamplesVerdict& verdict :
         guard::compare_samples(baseline, current, thresholds_, guard::Design{})) {
      guard::ReportItem item;
      item.kernel = std::move(verdict.kernel);
      item.result = std::move(verdict.result);
      report.measurement.rejected_samples += verdict.rejected_samples;
      for (const std::string& why : verdict.rejected) report.measurement.reject(why);
      if (!verdict.rejected.empty())
        item.notes.push_back(fmt::format("{} pairs were left out, the last because in {}",
                                         verdict.rejected.size(), verdict.rejected.back()));
      report.items.push_back(std::move(item));
    }
    return outputs_.write(context, report, next_after(report.verdict()));
  }

  Result<int> run_live(Context& context) {
    PURLIN_TRY(outputs_.begin(context, name()));
    PURLIN_ASSIGN(guard::Workload workload, workload_.open(commands_));
    PURLIN_TRY(watched_.open(context, workload.device));
    PURLIN_ASSIGN(const std::string work, workload_.open_work(context, workload));
    const Result<guard::Report> report = compare(context, workload, work);
    workload_.clean_up(context);
    if (!report.is_ok()) return report.status();
    return outputs_.write(context, *report, next_after(report->verdict()));
  }

  std::vector<std::string> next_after(guard::Verdict verdict) const {
    if (verdict == guard::Verdict::kRegression && is_revisions() && !samples_)
      return {"purlin", "guard", "bisect", a_, b_, "--help"};
    if (verdict == guard::Verdict::kInconclusive && !samples_)
      return {"purlin", "guard", "compare", a_, b_, "--help"};
    return {"purlin", "guard", "baseline", "SUITE"};
  }

  bool is_revisions() const { return !commands_ && !environments_ && !caches_; }

  Result<guard::Variant> variant(Context& context, const std::string& text,
                                 const std::string& work) {
    guard::Variant variant;
    variant.label = text;
    if (commands_) {
      variant.command = {"sh", "-c", text};
    } else if (environments_) {
      PURLIN_ASSIGN(variant.environment, guard::parse_environment(text));
    } else if (caches_) {
      if (!is_directory(text))
        return error(Code::kNotFound, "there is no cache '{}': name its directory", text);
      variant.cache = absolute_path(text);
    } else {
      return workload_.revision(context, text, work);
    }
    return variant;
  }

  Result<guard::Report> compare(Context& context, const guard::Workload& workload,
                                const std::string& work) {
    PURLIN_ASSIGN(const guard::Variant a, variant(context, a_, work));
    PURLIN_ASSIGN(const guard::Variant b, variant(context, b_, work));
    PURLIN_ASSIGN(const guard::Contender baseline, guard::make_contender(workload, a));
    PURLIN_ASSIGN(const guard::Contender current, guard::make_contender(workload, b));
    guard::PairsOptions pairs;
    pairs.watch = watched_.watch();
    pairs.locked_mhz = watched_.locked_mhz();
    if (!time_limit_.empty()) {
      PURLIN_ASSIGN(pairs.time_limit_s, guard_duration("--time-limit", time_limit_));
    }
    std::optional<Progress> progress;
    progress.emplace(stderr, context.error_terminal, !context.quiet);
    pairs.progress = [&](const guard::PairProgress& at) {
      if (progress) progress->update(guard_progress_line(at));
      write_progress(outputs_.events(), at);
    };
    Random random = unguessable_random();
    const Environment environment = GuardWorkload::environment(workload);
    const auto thresholds = [&](const guard::Item& item) {
      return current.thresholds_of(item, thresholds_);
    };
    Result<guard::Report> report =
        guard::compare({a.label + " vs " + b.label, *baseline.arm, *current.arm,
                        workload.suite ? workload.suite->design : guard::Design{}, thresholds,
                        filter_, cause(), environment, journal_, pairs, random, system_clock(),
                        workload.suite.has_value(), outputs_.profiles()});
    progress.reset();
    if (report.is_ok())
      for (guard::ReportItem& item : report->items)
        if (const auto file = current.files.find({item.kernel, item.shape, item.variant});
            file != current.files.end())
          item.file = file->second;
    return report;
  }

  std::string cause() const {
    if (commands_) return "command";
    if (environments_) return "environment variables";
    return caches_ ? "config" : "code";
  }

  GuardOutputs outputs_;
  guard::Thresholds thresholds_;
  GuardWorkload workload_;
  GuardDevice watched_;
  std::string a_, b_, journal_, time_limit_, filter_;
  bool samples_ = false, commands_ = false, environments_ = false, caches_ = false;
};

}  // namespace

std::unique_ptr<Command> make_guard_compare_command() { return std::make_unique<GuardCompare>(); }

}  // namespace purlin::cli
