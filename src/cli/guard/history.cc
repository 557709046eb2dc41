// SPDX-License-Identifier: Apache-2.0
// `purlin guard history`: where the level of a suite's kernels moved, over recorded runs.
#include "guard/history/history.h"

#include "cli/commands.h"
#include "cli/frame/command.h"

namespace purlin::cli {
namespace {

class GuardHistory : public Command {
 public:
  std::string_view name() const override { return "guard history"; }
  std::string_view summary() const override {
    return "Show where kernels became slower or faster, over recorded runs";
  }
  std::string_view details() const override {
    return "Reads histories that `guard run --record FILE --build LABEL` appends to, baselines, "
           "and\n"
           "documents of `guard run --json`; folders stand for the files in them. A level that "
           "moved\n"
           "is annotated with the builds around it and with what else changed there: driver,\n"
           "toolkit, device, host. Annotations are hints, not verdicts: a paired run of the two\n"
           "builds (guard compare, guard bisect) decides.\n\n"
           "Example: purlin guard history nightly.jsonl --kernel gemm\n"
           "Exit codes: 0 shown, 2 a file cannot be read.";
  }
  void declare(Flags& flags) override {
    flags.positionals("files", files_, "Histories, baselines, run documents, or folders of them");
    flags.option("--kernel", options_.filter, "Only items whose name or shape contains this",
                 "TEXT");
    flags.option("--min-magnitude", options_.change_points.min_magnitude,
                 "Smallest change of level annotated, relative");
    flags.option("--min-segment", options_.change_points.min_segment,
                 "Runs that a level must last on each side");
    flags.option("--alpha", options_.change_points.alpha, "Level of each series' test");
    flags.flag("--json", json_, "Print one JSON document (purlin.guard-history/1)");
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
    return kExitOk;
  }

 private:
  std::vector<std::string> files_;
  guard::HistoryOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_guard_history_command() { return std::make_unique<GuardHistory>(); }

}  // namespace purlin::cli
