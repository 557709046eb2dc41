// SPDX-License-Identifier: Apache-2.0
// `purlin guard baseline`: measures a suite and stores the result as its baseline.
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/guard/suite_run.h"

#include <pwd.h>
#include <unistd.h>

namespace purlin::cli {
namespace {

class GuardBaseline : public Command {
 public:
  std::string_view name() const override { return "guard baseline"; }
  std::string_view summary() const override {
    return "Record the times of a suite's kernels as its baseline";
  }
  VerbText text() const override {
    return {.description =
                "Runs each item in several fresh processes and writes one file. The file holds the "
                "medians, the record of the measurement, and the sources and configs of the "
                "kernels. `purlin guard check` can therefore run them next to new ones "
                "later.\n\nAn existing baseline stays, unless --replace is given with a --note. "
                "The old one is then kept next to it.",
            .examples = {{"purlin guard baseline gate.toml -o baselines/"}},
            .exit_codes = {{0, "Recorded"}, {2, "Error, and nothing is written"}},
            .see = {"docs/guide/guard.md", "docs/formats/baseline.md"}};
  }
  void declare(Flags& flags) override {
    guard_.declare(flags);
    flags.option("-o,--output", output_,
                 {"File, or folder for NAME.json (default: next to the suite)",
                  "The default is NAME.baseline.json next to the suite."},
                 "PATH");
    flags.flag("--replace", replace_, "Replace an existing baseline by this measurement");
    flags.option("--rounds", rounds_, "Processes per item (default: the suite's)");
    flags.option("--note", note_, "Reason for the new baseline, required by --replace");
    flags.option("--by", by_, "Person who approves it (default: $PURLIN_USER or the account)");
    flags.flag("--json", json_, "Print the baseline as JSON");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(guard_.open(context));
    const std::string path = output_.empty() ? guard_.default_baseline()
                                             : guard::baseline_path(output_, guard_.suite().name);
    std::string replaces, previous;
    if (file_exists(path)) {
      const Result<guard::Baseline> old = guard::load_baseline(path);
      const std::string age = old.is_ok() ? "recorded " + old->recorded_at : "which cannot be read";
      if (!replace_)
        return error(Code::kInvalid,
                     "'{}' already holds a baseline ({}); --replace promotes a new one over it",
                     path, age);
      if (trim(note_).empty())
        return error(Code::kInvalid,
                     "--replace needs a --note: why what was measured is the new normal");
      replaces = old.is_ok() ? old->recorded_at : "unreadable";
      previous = guard::previous_path(path, old.is_ok() ? old->recorded_at : "");
    }
    PURLIN_TRY(make_directories_durably(parent_path(path)));
    if (rounds_ < 0 || rounds_ > 1000)
      return error(Code::kInvalid, "--rounds takes 1 to 1000, not {}", rounds_);
    PURLIN_ASSIGN(
        guard::Baseline baseline,
        guard::record_baseline(guard_.run(), rounds_ > 0 ? rounds_ : guard_.suite().rounds, note_));
    baseline.replaces = replaces;
    baseline.promoted_by = who();
    if (!previous.empty()) {
      // The old baseline is moved first: a kill between the two steps loses neither.
      PURLIN_ASSIGN(const std::string old, read_file(path));
      PURLIN_TRY(write_atomic(previous, old));
      baseline.previous = base_name(previous);
    }
    guard_.end_progress();
    const std::string document = to_json(baseline).dump(2) + "\n";
    PURLIN_TRY(write_atomic(path, document));
    if (json_) {
      context.write(document);
      return kExitOk;
    }
    Table table;
    table.column("kernel");
    table.column("shape");
    table.column("config");
    table.column("p50", Table::Align::kRight);
    table.column("p95", Table::Align::kRight);
    table.column("processes", Table::Align::kRight);
    for (const guard::BaselineItem& item : baseline.items)
      table.row({item.kernel, item.problem.text(), item.config.text(), format_ns(item.p50_ns()),
                 format_ns(item.p95_ns()), std::to_string(item.processes.size())});
    context.print(table.render(context.terminal));
    context.print(fmt::format(
        "baseline of '{}' written to {}{}\n", baseline.suite, path,
        replaces.empty()
            ? ""
            : fmt::format(", in place of the one of {}, kept as {}", replaces, previous)));
    return kExitOk;
  }

 private:
  std::string who() const {
    if (!by_.empty()) return by_;
    if (const std::string user = environment_variable("PURLIN_USER"); !user.empty()) return user;
    const passwd* account = ::getpwuid(::getuid());
    return account != nullptr ? account->pw_name : fmt::format("uid {}", ::getuid());
  }

  SuiteRun guard_;
  std::string output_, note_, by_;
  bool replace_ = false, json_ = false;
  int rounds_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_guard_baseline_command() { return std::make_unique<GuardBaseline>(); }

}  // namespace purlin::cli
