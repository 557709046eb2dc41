// SPDX-License-Identifier: Apache-2.0
// Shared by the guard verbs that compare two sides: the flags of the workload (a suite, or a
// command that prints times) and of the revisions. Owned by the verb's Command. One thread.
#pragma once

#include "cli/frame/command.h"
#include "cli/guard/scratch.h"
#include "guard/suite/contender.h"

#include <string>
#include <vector>

namespace purlin::cli {

class GuardWorkload {
 public:
  GuardWorkload() = default;
  // For a verb whose file names the workload.
  struct Choice {
    std::string suite, repository, build, work, device, cache;
  };
  GuardWorkload(Choice choice, guard::CommandSpec command);

  void declare(Flags& flags);
  // `bare`: the verb has its own commands, so a suite or a command here is an error.
  Result<guard::Workload> open(bool bare) const;

  // The folder for worktrees: --work, or a new one that clean_up() removes. The files of the
  // workload's commands go to the new one, too.
  Result<std::string> open_work(Context& context, guard::Workload& workload);
  void clean_up(Context& context) { scratch_.close(context); }
  // Checks `revision` out under `work` and builds it.
  Result<guard::Variant> revision(Context& context, const std::string& revision,
                                  const std::string& work) const;
  const std::string& repository() const { return repository_; }
  const std::string& build() const { return build_; }
  // All flags that select the workload, as a text for journals.
  std::string identity() const;
  // The current environment of the device and host.
  static Environment environment(const guard::Workload& workload);

 private:
  guard::CommandSpec command_;
  std::string suite_path_, repository_ = ".", build_, work_, device_name_, cache_;
  std::string timeout_, format_ = "samples";
  std::vector<std::string> tags_;
  GuardScratch scratch_;
};

// "90s", "5m"; kInvalid naming the flag.
Result<double> guard_duration(std::string_view flag, const std::string& text);

}  // namespace purlin::cli
