// SPDX-License-Identifier: Apache-2.0
// `purlin report`: profiles, merged and ranked.
#include "analyze/report.h"

#include "analyze/report_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "profile/format/file.h"

namespace purlin::cli {
namespace {

class ReportCommand : public Command {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override { return "Rank the kernels of one or more profiles"; }
  std::string_view details() const override {
    return "Reads profiles written by `purlin profile`, merges them, and lists the kernels that "
           "own\n"
           "the time: share, total, count, median and 95th percentile of a launch, what they do. "
           "The\n"
           "coverage block says what the profile did not see.\n\n"
           "Examples:\n"
           "  purlin report run.plprof\n"
           "  purlin report --top 5 --by launch rank0.plprof rank1.plprof\n"
           "  purlin report --json run.plprof | jq '.kernels[0]'\n\n"
           "The JSON is described in docs/formats/report.md. Exit code: 0, or 2 if a file cannot "
           "be\n"
           "read. A damaged profile is reported as far as it can be read, and marked partial.\n";
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "profiles to read");
    flags.option("--top", top_, "rows to show in the text, 0 for all");
    flags.option("--by", by_, "one row per 'kernel' or per 'launch' shape", "WHAT");
    flags.flag("--json", json_, "print one JSON document with all rows");
    flags.flag("--csv", csv_, "print all rows as CSV");
  }

  Result<int> run(Context& context) override {
    if (by_ != "kernel" && by_ != "launch")
      return error(Code::kInvalid, "--by '{}': give 'kernel' or 'launch'", by_);
    if (top_ < 0) return error(Code::kInvalid, "--top {}: give 0 for all, or how many", top_);
    if (json_ && csv_) return error(Code::kInvalid, "give either --json or --csv");
    Profile merged;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      Result<Profile> profile = profile::read_profile(files_[i]);
      if (!profile.is_ok()) return profile.status();
      if (profile->partial)
        context.log.warn("{} is damaged or was cut short; reported as far as it reads", files_[i]);
      if (i == 0) {
        merged = std::move(profile).value();
      } else {
        profile::merge_into(merged, *profile);
      }
    }
    const analyze::Report report = analyze::build_report(
        merged, by_ == "launch" ? analyze::GroupBy::kLaunch : analyze::GroupBy::kKernel);
    if (json_) {
      context.print(to_json(report).dump(2) + "\n");
    } else if (csv_) {
      context.print(analyze::to_csv(report));
    } else {
      context.print(analyze::render_text(report, context.terminal, {top_}));
    }
    return kExitOk;
  }

 private:
  std::vector<std::string> files_;
  int top_ = 20;
  std::string by_ = "kernel";
  bool json_ = false, csv_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report_command() { return std::make_unique<ReportCommand>(); }

}  // namespace purlin::cli
