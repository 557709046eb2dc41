// SPDX-License-Identifier: Apache-2.0
// `purlin manual`, hidden: writes the man pages and the completion scripts for the installation,
// or prints the reference of the documentation.
#include "base/files.h"
#include "base/gzip.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/help/completion.h"
#include "cli/help/man.h"
#include "cli/help/reference.h"

namespace purlin::cli {
namespace {

class ManualCommand : public Command {
 public:
  std::string_view name() const override { return "manual"; }
  std::string_view summary() const override {
    return "Write the man pages and completions, or print the reference";
  }
  VerbText text() const override {
    return {.description =
                "Without --install, it prints docs/reference/cli.md, or environment.md there. With "
                "it, the folder gets man1, bash, zsh and fish."};
  }
  bool hidden() const override { return true; }
  void declare(Flags& flags) override {
    flags.option("--install", folder_, "Write man pages and completions into this folder", "DIR");
    flags.option("--page", page_,
                 {"Page to print: cli or environment", "", {{"cli", ""}, {"environment", ""}}},
                 "NAME");
  }
  Result<int> run(Context& context) override {
    if (page_ != "cli" && page_ != "environment")
      return error(Code::kInvalid, "--page '{}': give cli or environment", page_);
    const Manual all = manual();
    if (folder_.empty()) {
      context.print(page_ == "cli" ? reference(all) : environment_reference(all));
      return kExitOk;
    }
    for (const ManPage& page : man_pages(all)) {
      PURLIN_ASSIGN(const std::string packed, gzip(page.text));
      PURLIN_TRY(write("man1", page.file + ".gz", packed));
    }
    PURLIN_TRY(write("bash", "purlin", bash_completion(all)));
    PURLIN_TRY(write("zsh", "_purlin", zsh_completion(all)));
    PURLIN_TRY(write("fish", "purlin.fish", fish_completion(all)));
    return kExitOk;
  }

 private:
  Status write(std::string_view kind, std::string_view file, const std::string& text) const {
    const std::string folder = join_path(folder_, kind);
    PURLIN_TRY(make_directories(folder));
    return write_atomic(join_path(folder, file), text);
  }

  std::string folder_, page_ = "cli";
};

}  // namespace

std::unique_ptr<Command> make_manual_command() { return std::make_unique<ManualCommand>(); }

}  // namespace purlin::cli
