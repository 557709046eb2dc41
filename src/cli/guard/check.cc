// SPDX-License-Identifier: Apache-2.0
// `purlin guard check`: the verdict on a suite against its baseline.
#include "backlog/file.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/guard/scratch.h"
#include "cli/guard/suite_run.h"
#include "fleet/alerts/finding.h"
#include "fleet/client/server_client.h"
#include "guard/check/findings.h"
#include "model/spec/spec.h"

namespace purlin::cli {
namespace {

class GuardCheck : public Command {
 public:
  std::string_view name() const override { return "guard check"; }
  std::string_view summary() const override { return "Check a suite against its baseline"; }
  VerbText text() const override {
    return {
        .description =
            "Runs the baseline's kernels and the current ones in pairs of fresh processes, in "
            "random order. It stops as soon as each item is clear. A regression needs an exact "
            "test at 1 % for the whole suite, and a slowdown above the floor (2 %). A slowdown of "
            "5 % is found.",
        .examples = {{"purlin guard check gate.toml --junit guard.xml"}},
        .exit_codes = {{0, "Pass or improvement"},
                       {1, "Regression"},
                       {2, "A kernel fails, or another error"},
                       {3, "Inconclusive: no baseline, another environment, or too much noise"}},
        .see = {"docs/guide/guard.md", "docs/concepts/gate-statistics.md"}};
  }
  void declare(Flags& flags) override {
    guard_.declare(flags);
    flags.option("--baseline", baseline_,
                 {"File, or folder of NAME.json (default: next to the suite)",
                  "The default is NAME.baseline.json next to the suite."},
                 "PATH");
    flags.flag("--allow-environment-change", options_.allow_environment_change,
               "Compare on another device, driver or toolkit");
    flags.option("--time-limit", time_limit_,
                 "Decide with the available data after this time, such as 90s", "TIME");
    flags.option("--server", server_,
                 {"Purlin server that keeps the verdict",
                  "Red items are printed with the link to their history in the fleet."},
                 "URL");
    outputs_.declare(flags);
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(outputs_.begin(context, name()));
    guard_.follow(outputs_.events());
    PURLIN_TRY(guard_.open(context));
    if (!time_limit_.empty()) {
      const std::optional<double> seconds = parse_duration_s(time_limit_);
      if (!seconds)
        return error(Code::kInvalid, "--time-limit takes a time like 90s or 5m, not '{}'",
                     time_limit_);
      guard_.run().options.time_limit_s = *seconds;
    }
    const std::string path = baseline_.empty()
                                 ? guard_.default_baseline()
                                 : guard::baseline_path(baseline_, guard_.suite().name);
    if (!file_exists(path)) return without_baseline(context, path);
    PURLIN_ASSIGN(const guard::Baseline baseline, guard::load_baseline(path));
    if (baseline.suite != guard_.suite().name)
      return error(Code::kInvalid, "'{}' is a baseline of the suite '{}', not of '{}'", path,
                   baseline.suite, guard_.suite().name);
    options_.profiles = outputs_.profiles();
    GuardScratch scratch;
    PURLIN_ASSIGN(const std::string folder, scratch.open(context, "/"));
    const Result<guard::Report> report = guard::check(guard_.run(), baseline, folder, options_);
    guard_.end_progress();
    scratch.close(context);
    if (!report.is_ok()) return report.status();
    const Result<int> code = outputs_.write(context, *report, next_after(report->verdict()));
    // After the verdict: an error of the backlog must not lose it.
    const std::vector<backlog::Task> tasks =
        guard::findings(*report, guard_.suite(), guard_.device().info,
                        guard::environment_differences(baseline.device, guard_.device().info));
    if (const Status queued = backlog::queue(guard_.run().cache, tasks); !queued.is_ok())
      context.log.warn("{}", queued.message());
    else if (!tasks.empty())
      context.log.info("{} tasks queued: see `purlin backlog`", tasks.size());
    if (!server_.empty())
      if (const Status sent = send(context, *report); !sent.is_ok())
        context.log.warn("the verdict is not stored: {}", sent.message());
    return code;
  }

 private:
  Status send(Context& context, const guard::Report& report) const {
    PURLIN_ASSIGN(const auto client, fleet::ServerClient::open(server_, system_clock()));
    PURLIN_TRY(client->post("/v1/guard", guard::to_json(report)).status());
    context.log.info("the verdict is stored at {}", client->server());
    for (const guard::ReportItem& item : report.items)
      if (item.result.verdict == guard::Verdict::kRegression)
        context.log.info(
            "{} in the fleet: {}", item.kernel,
            fleet::history_link(client->server(), item.kernel, guard_.device().info.name));
    return Status::ok();
  }

  Result<int> without_baseline(Context& context, const std::string& path) {
    guard_.end_progress();
    guard::Report report;
    report.suite = guard_.suite().name;
    report.environment = guard::environment_of(guard_.run());
    for (const guard::SuiteItem& item : guard_.suite().items) {
      guard::ReportItem one;
      one.kernel = base_name(parent_path(item.spec_path));
      if (const auto spec = load_spec(item.spec_path); spec.is_ok()) one.kernel = spec->name;
      one.shape = item.shape;
      one.file = item.spec_path;
      report.items.push_back(std::move(one));
    }
    return outputs_.write(
        context,
        guard::undecided(std::move(report),
                         fmt::format("there is no baseline at '{}'; record one with "
                                     "`purlin guard baseline`",
                                     path)),
        {"purlin", "guard", "baseline", guard_.suite_path()});
  }

  std::vector<std::string> next_after(guard::Verdict verdict) const {
    const std::string& suite = guard_.suite_path();
    switch (verdict) {
      case guard::Verdict::kRegression:
        return {"purlin", "guard", "bisect", "GOOD", "HEAD", "--suite", suite};
      case guard::Verdict::kImprovement:
        return {"purlin", "guard", "baseline", suite, "--replace", "--note", "REASON"};
      case guard::Verdict::kInvalid:
        return {"purlin", "guard", "run", suite};
      case guard::Verdict::kInconclusive:
        return {"purlin", "guard", "check", suite};
      case guard::Verdict::kPass:
        return {"purlin", "guard", "run", suite, "--record", "HISTORY"};
    }
    return {"purlin", "guard", "check", suite};
  }

  SuiteRun guard_;
  GuardOutputs outputs_;
  guard::CheckOptions options_;
  std::string baseline_, time_limit_, server_;
};

}  // namespace

std::unique_ptr<Command> make_guard_check_command() { return std::make_unique<GuardCheck>(); }

}  // namespace purlin::cli
