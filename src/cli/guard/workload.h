// SPDX-License-Identifier: Apache-2.0
// What the guard's verbs that compare two sides share: the flags that say what is run (a suite, or
// a command that prints times) and where revisions come from. Owned by the verb's Command; one
// thread.
#pragma once

#include "cli/frame/command.h"
#include "guard/suite/contender.h"

#include <string>
#include <vector>

namespace purlin::cli {

class GuardWorkload {
 public:
  GuardWorkload() = default;
  // For a verb whose file says what is run.
  struct Choice {
    std::string suite, repository, build, work, device, cache;
  };
  GuardWorkload(Choice choice, guard::CommandSpec command);

  void declare(Flags& flags);
  // `bare`: the verb brings its own commands, and none may be given here.
  Result<guard::Workload> open(bool bare) const;

  // The folder for worktrees: --work, or a new one that clean_up() removes with git's notes of it.
  Result<std::string> open_work();
  void clean_up(Context& context);
  // Checks `revision` out under `work` and builds it.
  Result<guard::Variant> revision(Context& context, const std::string& revision,
                                  const std::string& work) const;
  const std::string& repository() const { return repository_; }
  const std::string& build() const { return build_; }
  // Of all the flags that decide what is run, for journals.
  std::string identity() const;
  // Of the device and host, now.
  static Environment environment(const guard::Workload& workload);

 private:
  guard::CommandSpec command_;
  std::string suite_path_, repository_ = ".", build_, work_, device_name_, cache_;
  std::string timeout_, format_ = "samples", scratch_;
  std::vector<std::string> tags_;
};

// "90s", "5m"; kInvalid naming the flag.
Result<double> guard_duration(std::string_view flag, const std::string& text);

}  // namespace purlin::cli
