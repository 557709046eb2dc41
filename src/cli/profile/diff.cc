// SPDX-License-Identifier: Apache-2.0
// `purlin diff`: what got slower and faster between two profiles, and why.
#include "analyze/diff/diff.h"

#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/profile/files.h"

namespace purlin::cli {
namespace {

class DiffCommand : public Command {
 public:
  std::string_view name() const override { return "diff"; }
  std::string_view summary() const override {
    return "What got slower and faster between two profiles";
  }
  std::string_view details() const override {
    return "Compares B with A, kernel by kernel: per step where both have steps, else per run.\n"
           "Kernels are matched by name and shape, then by name, then by op and shape, then by op\n"
           "class; the rest is gone or new. Each change is split, without a remainder, into more "
           "or\n"
           "fewer launches, longer or shorter ones, other shapes, other kernels, and what another\n"
           "GPU, driver or clock explains. Reads profiles of its own and of other tools.\n\n"
           "Examples:\n"
           "  purlin diff before.plprof after.plprof\n"
           "  purlin diff --top 0 monday.json.gz tuesday.json.gz\n"
           "  purlin diff --json a.plprof b.plprof | jq '.items[] | select(.certain)'\n\n"
           "How it is computed, and the JSON: docs/formats/diff.md. Exit code: 0 whatever the\n"
           "difference (`purlin guard` judges), 2 if a file cannot be read.\n";
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "A and B: the profile before and the one after");
    flags.option("--per", per_, "what totals are of: auto, step or run", "UNIT");
    flags.option("--top", top_, "rows to show of each kind in the text, 0 for all");
    flags.flag("--json", json_, "print one JSON document with all items");
    flags.flag("--csv", csv_, "print all items as CSV");
  }

  Result<int> run(Context& context) override {
    if (files_.size() != 2)
      return error(Code::kInvalid, "give two profiles, A and B; {} given", files_.size());
    if (json_ && csv_) return error(Code::kInvalid, "give one of --json and --csv");
    if (top_ < 0) return error(Code::kInvalid, "--top {}: give 0 for all, or how many", top_);
    analyze::DiffUnit unit = analyze::DiffUnit::kAuto;
    if (per_ == "step") {
      unit = analyze::DiffUnit::kStep;
    } else if (per_ == "run") {
      unit = analyze::DiffUnit::kRun;
    } else if (per_ != "auto") {
      return error(Code::kInvalid, "--per '{}': give auto, step or run", per_);
    }
    Profile profiles[2];
    for (std::size_t i = 0; i < 2; ++i) {
      PURLIN_ASSIGN(profiles[i], read_profiles(context, std::vector<std::string>{files_[i]}));
    }
    PURLIN_ASSIGN(analyze::Diff diff, analyze::diff_profiles(profiles[0], profiles[1], unit));
    diff.a.path = files_[0];
    diff.b.path = files_[1];
    if (json_) {
      context.print(analyze::to_json(diff).dump(2) + "\n");
    } else if (csv_) {
      context.print(analyze::to_csv(diff));
    } else {
      context.print(analyze::render_diff(diff, context.terminal, top_));
    }
    return kExitOk;
  }

 private:
  std::vector<std::string> files_;
  std::string per_ = "auto";
  int top_ = 10;
  bool json_ = false, csv_ = false;
};

}  // namespace

std::unique_ptr<Command> make_diff_command() { return std::make_unique<DiffCommand>(); }

}  // namespace purlin::cli
