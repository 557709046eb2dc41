// SPDX-License-Identifier: Apache-2.0
// `purlin diff`: slower and faster kernels between two profiles, with causes.
#include "analyze/diff/diff.h"

#include "analyze/page/documents.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "cli/page/kernel_cache.h"
#include "cli/page/write_page.h"
#include "cli/profile/files.h"
#include "cli/profile/measured_ceilings.h"

namespace purlin::cli {
namespace {

class DiffCommand : public Command {
 public:
  std::string_view name() const override { return "diff"; }
  std::string_view summary() const override { return "Compare two profiles, kernel by kernel"; }
  VerbText text() const override {
    return {
        .description =
            "Compares the second profile with the first: per step where both have steps, else per "
            "run. It reads profiles of Purlin and of other tools.",
        .more =
            "Kernels are matched by name and shape, then by name, then by op and shape, then by op "
            "class. The other kernels are gone or new. Each change is split without a remainder "
            "into these causes:\n  - more or fewer launches, longer or shorter launches\n  - other "
            "shapes, other kernels\n  - another GPU, driver or clock",
        .examples = {{"purlin diff before.plprof after.plprof"},
                     {"purlin diff --html diff.html before.plprof after.plprof"},
                     {"purlin diff --top 0 monday.json.gz tuesday.json.gz"},
                     {"purlin diff --json a.plprof b.plprof | jq '.items[] | select(.certain)'"}},
        .exit_codes = {{0,
                        "Compared, with or without a difference (`purlin guard` gives verdicts)"},
                       {2, "A file cannot be read"}},
        .see = {"docs/guide/diff.md", "docs/formats/diff.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Profile before, then profile after; - for stdin");
    flags.option("--per", per_,
                 {"Base of the totals: auto, step or run",
                  "",
                  {{"auto", "Per step where both profiles have steps"},
                   {"step", "Per step"},
                   {"run", "Per run"}}},
                 "UNIT");
    flags.option("--top", top_, "Rows of each kind in the text, 0 for all");
    flags.flag("--json", json_,
               {"Print all items as one JSON document", "The schema is purlin.diff/1."});
    flags.flag("--csv", csv_, "Print all items as CSV");
    flags.option("--html", html_,
                 "Also write a page that opens offline; - for the page alone, on stdout", "FILE");
  }

  Result<int> run(Context& context) override {
    if (files_.size() != 2)
      return error(Code::kInvalid, "give two profiles, A and B; {} given", files_.size());
    if (static_cast<int>(json_) + static_cast<int>(csv_) + static_cast<int>(html_ == "-") > 1)
      return error(Code::kInvalid, "give one of --json, --csv and --html -");
    PURLIN_TRY(check_page_path(html_));
    if (top_ < 0) return error(Code::kInvalid, "--top {}: give 0 for all, or how many", top_);
    analyze::DiffUnit unit = analyze::DiffUnit::kAuto;
    if (per_ == "step") {
      unit = analyze::DiffUnit::kStep;
    } else if (per_ == "run") {
      unit = analyze::DiffUnit::kRun;
    } else if (per_ != "auto") {
      return error(Code::kInvalid, "--per '{}': give auto, step or run", per_);
    }
    PURLIN_ASSIGN(const std::vector<ProfileFile> files, detect_profiles(files_));
    Profile profiles[2];
    for (std::size_t i = 0; i < 2; ++i) {
      PURLIN_ASSIGN(profiles[i], read_profiles(context, std::vector<ProfileFile>{files[i]}));
    }
    PURLIN_ASSIGN(analyze::Diff diff, analyze::diff_profiles(profiles[0], profiles[1], unit));
    diff.a.path = files_[0];
    diff.b.path = files_[1];
    if (!html_.empty()) PURLIN_TRY(write_html(context, diff, profiles));
    if (html_ == "-") return kExitOk;
    if (json_) {
      context.print(analyze::to_json(diff).dump(2) + "\n");
    } else if (csv_) {
      context.print_data(analyze::to_csv(diff));
    } else {
      context.print(analyze::render_diff(diff, context.terminal, top_));
      context.print(next_step({"purlin", "advise", files_[1], "--against", files_[0]}));
    }
    return kExitOk;
  }

 private:
  // The page of both profiles, and of their difference.
  Status write_html(const Context& context, const analyze::Diff& diff,
                    Profile (&profiles)[2]) const {
    page::Page page;
    page.title = files_[0] + " → " + files_[1];
    page.view = "compare";
    page.documents.emplace_back("diff", analyze::to_json(diff));
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<Ceilings> measured = measured_ceilings(profiles[i].environment);
      PURLIN_ASSIGN(analyze::AnalysedPage side,
                    analyze::analyse_for_page(std::move(profiles[i]), files_[i], i, measured));
      page.files.push_back(std::move(side.file));
      for (page::Document& document : side.documents) page.documents.push_back(std::move(document));
    }
    add_kernel_cache(context, page);
    return write_page(context, page, html_);
  }

  std::vector<std::string> files_;
  std::string per_ = "auto", html_;
  int top_ = 10;
  bool json_ = false, csv_ = false;
};

}  // namespace

std::unique_ptr<Command> make_diff_command() { return std::make_unique<DiffCommand>(); }

}  // namespace purlin::cli
