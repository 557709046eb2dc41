// SPDX-License-Identifier: Apache-2.0
// Worktree: a git revision, checked out and built in a separate folder. Two revisions can run side
// by side, and the user's own tree stays unchanged.
//
// A folder that already holds the commit, built by the same command, is used again. Owned by its
// caller; thread-safety: belongs to one thread. Failure: kInvalid for a wrong repository or
// revision. A failed build is kFailed, with the end of its output.
#pragma once

#include "base/status.h"

#include <optional>
#include <string>
#include <vector>

namespace purlin::guard {

// The full hash of the commit that `revision` names in the repository that holds `folder`.
Result<std::string> resolve_commit(const std::string& folder, const std::string& revision);
// The root of the repository that holds `folder`.
Result<std::string> repository_root(const std::string& folder);

struct WorktreeOptions {
  std::string repository;  // any folder inside it
  std::string commit;      // as resolve_commit() gives it
  std::string parent;      // the worktree becomes PARENT/COMMIT
  std::string build;       // run by `sh -c` at its root; "" = nothing to build
  double build_timeout_s = 3600;
};

// Checks out with submodules, and builds; returns the worktree's path. The build sees
// PURLIN_COMMIT.
Result<std::string> make_worktree(const WorktreeOptions& options);
// The commits from `good` to `bad`, both included, oldest first, along first parents: a merge
// counts as one step. kInvalid where `good` is not among them, or comes after `bad`.
Result<std::vector<std::string>> commits_between(const std::string& folder, const std::string& good,
                                                 const std::string& bad);
// What a merge brought into the line of first parents. The branch begins after `base` and ends with
// `tip`; `commits` counts its commits along first parents. nullopt: the commit is no merge, or its
// branch cannot be searched from `base`.
struct MergedBranch {
  std::string base, tip;
  std::size_t commits = 0;
};
std::optional<MergedBranch> merged_branch(const std::string& folder, const std::string& commit);

// "3f2a9c1b6d10 2026-11-20 Name: subject", for people.
Result<std::string> describe_commit(const std::string& folder, const std::string& commit);

// Removes git's notes of the worktrees in `parent`, whose folders no longer exist. A killed git
// leaves a lock on such a note, which goes too.
Status forget_worktrees(const std::string& repository, const std::string& parent);
// Removes the folder and git's note of it.
Status remove_worktree(const std::string& repository, const std::string& path);

}  // namespace purlin::guard
