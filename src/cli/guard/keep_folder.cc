// SPDX-License-Identifier: Apache-2.0
// `purlin keep-folder DIR`: removes the folder of a guard verb when that verb has been killed.
#include "base/files.h"
#include "base/os/keeper.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/guard/scratch.h"

namespace purlin::cli {
namespace {

// A build that outlives the verb may still write into the folder: it is removed until it stays so.
constexpr int kAttempts = 50;
constexpr std::int64_t kPauseNs = 100'000'000;
constexpr int kAbsentFor = 3;

class KeepFolder : public Command {
 public:
  std::string_view name() const override { return "keep-folder"; }
  std::string_view summary() const override {
    return "Remove the folder of another purlin process after it was killed";
  }
  VerbText text() const override {
    return {.description =
                "Waits for the end of stdin, which a kill of its writer causes, too. It then "
                "removes the folder, and git's notes of worktrees in it. The verbs of `purlin "
                "guard` start it."};
  }
  bool hidden() const override { return true; }
  void declare(Flags& flags) override {
    flags.positional("DIR", folder_, "The folder");
    flags.option("--repo", root_, "Root of the repository of the worktrees", "DIR");
  }
  Result<int> run(Context&) override {
    PURLIN_TRY(keep_until_gone([&] { return remove(); }));
    return kExitOk;
  }

 private:
  Status remove() const {
    Status last;
    int absent = 0;
    for (int i = 0; i < kAttempts && absent < kAbsentFor; ++i) {
      absent = file_exists(folder_) ? 0 : absent + 1;
      last = remove_scratch(folder_, root_);
      system_clock().sleep_ns(kPauseNs);
    }
    return last;
  }

  std::string folder_, root_;
};

}  // namespace

std::unique_ptr<Command> make_keep_folder_command() { return std::make_unique<KeepFolder>(); }

}  // namespace purlin::cli
