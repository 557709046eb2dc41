// SPDX-License-Identifier: Apache-2.0
// GuardScratch: a temporary folder of a guard verb, for worktrees and files of commands. It goes
// with the object. A keeper (base/os/keeper.h) removes it and git's notes of its worktrees when a
// signal ends the verb, as CI systems do. Belongs to one thread.
#pragma once

#include "base/os/keeper.h"
#include "base/status.h"
#include "cli/frame/command.h"

#include <optional>
#include <string>

namespace purlin::cli {

class GuardScratch {
 public:
  GuardScratch() = default;
  ~GuardScratch();
  GuardScratch(const GuardScratch&) = delete;
  GuardScratch& operator=(const GuardScratch&) = delete;

  // `repository`: a folder in the repository of the worktrees; one without any is fine. Without a
  // keeper it warns, and continues.
  Result<std::string> open(Context& context, const std::string& repository);
  // Warns where something stays.
  void close(Context& context);

 private:
  Status remove();
  std::string folder_, root_;
  std::optional<Keeper> keeper_;
};

// Removes such a folder, and git's notes of worktrees in it; `root`: of the repository, or "".
// kInvalid for another folder.
Status remove_scratch(const std::string& folder, const std::string& root);

}  // namespace purlin::cli
