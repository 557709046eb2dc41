// SPDX-License-Identifier: Apache-2.0
// `purlin guard history`: changes of the level of a suite's kernels, over recorded runs.
#include "guard/history/history.h"

#include "base/files.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "guard/history/page.h"

namespace purlin::cli {
namespace {

class GuardHistory : public Command {
 public:
  std::string_view name() const override { return "guard history"; }
  std::string_view summary() const override {
    return "Show when kernels became slower or faster, over recorded runs";
  }
  VerbText text() const override {
    return {.description =
                "Reads histories of `guard run --record`, baselines, and documents of `guard run "
                "--json`. A folder represents the files in it. Each changed level is annotated "
                "with the builds around it, and with changes of driver, toolkit, device and "
                "host.\n\nAnnotations are hints, not verdicts. A paired run of the two builds "
                "decides (guard compare, guard bisect).",
            .examples = {{"purlin guard history nightly.jsonl --kernel gemm"},
                         {"purlin guard history nightly.jsonl --html history.html"}},
            .exit_codes = {{0, "Shown"}, {2, "A file cannot be read"}},
            .see = {"docs/guide/guard.md", "docs/formats/history.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Histories, baselines, run documents, or folders of them");
    flags.option("--kernel", options_.filter, "Only items whose name or shape contains this text",
                 "TEXT");
    flags.option("--min-magnitude", options_.change_points.min_magnitude,
                 "Smallest relative change to annotate");
    flags.option("--min-segment", options_.change_points.min_segment,
                 "Minimum runs of a level on each side");
    flags.option("--alpha", options_.change_points.alpha,
                 "Significance level of the test of each series");
    flags.flag("--json", json_,
               {"Print one JSON document", "The schema is purlin.guard-history/1."});
    flags.option("--html", html_, "Also write one HTML page with a chart for each kernel", "FILE");
  }

  Result<int> run(Context& context) override {
    const guard::ChangePointOptions& change = options_.change_points;
    if (!(change.alpha >= 0.001 && change.alpha <= 0.2))
      return error(Code::kInvalid, "--alpha takes 0.001 to 0.2, not {}", change.alpha);
    if (!(change.min_magnitude >= 0 && change.min_magnitude <= 10))
      return error(Code::kInvalid, "--min-magnitude takes 0 to 10, not {}", change.min_magnitude);
    if (change.min_segment < 2 || change.min_segment > 100)
      return error(Code::kInvalid, "--min-segment takes 2 to 100, not {}", change.min_segment);
    PURLIN_ASSIGN(const guard::History history, guard::load_history(files_));
    const std::vector<guard::Series> series = guard::analyse_history(history, options_);
    if (series.empty())
      return error(Code::kInvalid, "{} runs hold no item{}", history.runs.size(),
                   options_.filter.empty() ? "" : " that matches '" + options_.filter + "'");
    context.print(json_ ? guard::history_document(history, series).dump(2) + "\n"
                        : guard::render_history(history, series, context.terminal));
    if (!html_.empty())
      PURLIN_TRY(write_atomic(html_, guard::render_history_page(history, series)));
    return kExitOk;
  }

 private:
  std::vector<std::string> files_;
  guard::HistoryOptions options_;
  std::string html_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_guard_history_command() { return std::make_unique<GuardHistory>(); }

}  // namespace purlin::cli
