// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/worktree.h"

#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"

#include <vector>

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxLog = std::size_t{16} << 20;

// The stdout of a git command, with as little of the user's configuration as possible.
Result<std::string> git(const std::string& folder, std::vector<std::string> arguments) {
  Process::Options process;
  process.argv = {
      "git", "-C", folder, "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"};
  process.argv.insert(process.argv.end(), arguments.begin(), arguments.end());
  process.environment = {{"GIT_TERMINAL_PROMPT", "0"}, {"LC_ALL", "C"}};
  // Hooks and `git bisect run` set these, and they name another repository.
  process.unset = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"};
  process.out = process.err = Process::Stream::kPipe;
  PURLIN_ASSIGN(const Captured ran, run_captured(process, 600));
  if (ran.timed_out || !ran.exit.ok())
    return error(Code::kInvalid, "git {} in '{}': {}", join(arguments, " "), folder,
                 ran.timed_out ? "took too long" : trim(ran.err));
  return std::string(trim(ran.out));
}

std::string last_lines(std::string_view text, std::size_t count) {
  const std::vector<std::string> lines = split(trim(text), '\n');
  const std::size_t first = lines.size() > count ? lines.size() - count : 0;
  return join({lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end()}, "\n  ");
}

// Next to the worktree: a build might remove a file inside it.
std::string stamp_of(const std::string& path) { return path + ".built"; }

// A revision without its submodules would not build, and the reason would be hard to see.
Status fetch_submodules(const WorktreeOptions& options, const std::string& path) {
  if (!file_exists(join_path(path, ".gitmodules"))) return Status::ok();
  const Result<std::string> fetched =
      git(path, {"submodule", "--quiet", "update", "--init", "--recursive"});
  if (fetched.is_ok()) return Status::ok();
  return error(Code::kFailed, "{}: its submodules cannot be fetched: {}",
               options.commit.substr(0, 12), fetched.status().message());
}

Status build(const WorktreeOptions& options, const std::string& path) {
  Process::Options process;
  // Both streams of the build as one, in the order of writing.
  process.argv = {"sh", "-c", "exec 2>&1\n" + options.build};
  process.directory = path;
  process.environment = {{"PURLIN_COMMIT", options.commit}};
  process.out = Process::Stream::kPipe;
  PURLIN_ASSIGN(const Captured ran, run_captured(process, options.build_timeout_s, kMaxLog));
  if (ran.timed_out)
    return error(Code::kFailed, "{}: '{}' did not end within {} s", options.commit.substr(0, 12),
                 options.build, options.build_timeout_s);
  if (ran.exit.ok()) return Status::ok();
  return error(Code::kFailed, "{}: '{}' ended with {}:\n  {}", options.commit.substr(0, 12),
               options.build, ran.exit.text(), last_lines(ran.out, 20));
}

}  // namespace

Result<std::string> resolve_commit(const std::string& folder, const std::string& revision) {
  if (revision.empty() || revision[0] == '-')
    return error(Code::kInvalid, "'{}' is no git revision", revision);
  Result<std::string> commit =
      git(folder, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"});
  if (commit.is_ok()) return commit;
  // No repository, or one of another owner: git says which.
  const Result<std::string> shallow = git(folder, {"rev-parse", "--is-shallow-repository"});
  if (!shallow.is_ok())
    return error(shallow.status().code(), "{}; run it in the repository, or give --repo",
                 shallow.status().message());
  return error(Code::kInvalid, "'{}' names no commit of the repository at '{}'{}", revision, folder,
               *shallow == "true" ? "; the clone is shallow, so it lacks older commits: git fetch "
                                    "--unshallow --tags"
                                  : "");
}

Result<std::string> repository_root(const std::string& folder) {
  return git(folder, {"rev-parse", "--show-toplevel"});
}

Result<std::string> make_worktree(const WorktreeOptions& options) {
  const std::string path = join_path(options.parent, options.commit);
  PURLIN_TRY(make_directories(options.parent));
  const Result<std::string> built = read_file(stamp_of(path), 1 << 20);
  if (built.is_ok() && *built == options.build && is_directory(path)) return path;
  // An incomplete worktree of a killed run.
  if (file_exists(path)) PURLIN_TRY(remove_worktree(options.repository, path));
  // Git still lists a worktree whose folder the user removed.
  PURLIN_TRY(forget_worktrees(options.repository, options.parent));
  PURLIN_ASSIGN(const std::string said,
                git(options.repository,
                    {"worktree", "add", "--quiet", "--detach", "--force", path, options.commit}));
  PURLIN_TRY(fetch_submodules(options, path));
  if (!options.build.empty()) PURLIN_TRY(build(options, path));
  PURLIN_TRY(write_atomic(stamp_of(path), options.build));
  return path;
}

Result<std::vector<std::string>> commits_between(const std::string& folder, const std::string& good,
                                                 const std::string& bad) {
  if (good == bad)
    return error(Code::kInvalid, "good and bad are one commit, {}: there is nothing between them",
                 good.substr(0, 12));
  if (git(folder, {"merge-base", "--is-ancestor", bad, good}).is_ok())
    return error(Code::kInvalid,
                 "{} comes after {}: they are swapped; give the earlier revision, which is fast, "
                 "first",
                 good.substr(0, 12), bad.substr(0, 12));
  PURLIN_ASSIGN(const std::string said,
                git(folder, {"rev-list", "--first-parent", "--reverse", bad, "^" + good}));
  const std::vector<std::string> after = split(said, '\n');
  // The walk along first parents from `bad` must end at `good` itself.
  const Result<std::string> parent =
      said.empty() ? error(Code::kInvalid, "")
                   : git(folder, {"rev-parse", "--verify", "--quiet", after.front() + "^"});
  if (!parent.is_ok() || *parent != good)
    return error(Code::kInvalid,
                 "{} does not come before {} along first parents: name a commit of that line "
                 "(git log --first-parent {})",
                 good.substr(0, 12), bad.substr(0, 12), bad.substr(0, 12));
  std::vector<std::string> commits = {good};
  commits.insert(commits.end(), after.begin(), after.end());
  return commits;
}

std::optional<MergedBranch> merged_branch(const std::string& folder, const std::string& commit) {
  const Result<std::string> tip = git(folder, {"rev-parse", "--verify", "--quiet", commit + "^2"});
  if (!tip.is_ok()) return std::nullopt;
  const Result<std::string> base = git(folder, {"merge-base", commit + "^1", *tip});
  if (!base.is_ok()) return std::nullopt;
  const Result<std::vector<std::string>> branch = commits_between(folder, *base, *tip);
  if (!branch.is_ok()) return std::nullopt;
  return MergedBranch{*base, *tip, branch->size() - 1};
}

Result<std::string> describe_commit(const std::string& folder, const std::string& commit) {
  return git(folder, {"show", "--no-patch", "--abbrev=12", "--date=short",
                      "--format=%h %ad %an: %s", "--end-of-options", commit});
}

Status forget_worktrees(const std::string& repository, const std::string& parent) {
  PURLIN_ASSIGN(const std::string listed, git(repository, {"worktree", "list", "--porcelain"}));
  constexpr std::string_view kEntry = "worktree ";
  for (const std::string& line : split(listed, '\n')) {
    if (!starts_with(line, kEntry)) continue;
    const std::string path = line.substr(kEntry.size());
    if (parent_path(path) != parent || file_exists(path)) continue;
    (void)git(repository, {"worktree", "unlock", path});  // fails where it has no lock
  }
  const Result<std::string> pruned = git(repository, {"worktree", "prune"});
  return pruned.is_ok() ? Status::ok() : pruned.status();
}

Status remove_worktree(const std::string& repository, const std::string& path) {
  PURLIN_TRY(remove_file(stamp_of(path)));
  PURLIN_TRY(remove_tree(path));
  return forget_worktrees(repository, parent_path(path));
}

}  // namespace purlin::guard
