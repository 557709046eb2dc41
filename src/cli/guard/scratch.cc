// SPDX-License-Identifier: Apache-2.0
#include "cli/guard/scratch.h"

#include "base/files.h"
#include "base/text.h"
#include "guard/arms/worktree.h"

#include <vector>

namespace purlin::cli {
namespace {

constexpr std::string_view kPrefix = "purlin-guard";

}  // namespace

Result<std::string> GuardScratch::open(Context& context, const std::string& repository) {
  PURLIN_ASSIGN(folder_, make_temporary_directory(kPrefix));
  root_ = guard::repository_root(repository).value_or("");
  std::vector<std::string> command = {join_path(executable_directory(), "purlin"), "keep-folder",
                                      folder_};
  if (!root_.empty()) command.insert(command.end(), {"--repo", root_});
  Result<Keeper> keeper = Keeper::start(command);
  if (keeper.is_ok())
    keeper_.emplace(std::move(keeper).value());
  else
    context.log.warn("if this is killed, '{}' stays: {}", folder_, keeper.status().message());
  return folder_;
}

Status GuardScratch::remove() {
  if (folder_.empty()) return Status::ok();
  const Status removed = remove_scratch(folder_, root_);
  folder_.clear();
  if (keeper_) keeper_->dismiss();
  keeper_.reset();
  return removed;
}

void GuardScratch::close(Context& context) {
  if (const Status removed = remove(); !removed.is_ok()) context.log.warn("{}", removed.message());
}

GuardScratch::~GuardScratch() { (void)remove(); }

Status remove_scratch(const std::string& folder, const std::string& root) {
  if (!starts_with(base_name(folder), kPrefix))
    return error(Code::kInvalid, "'{}' is no folder of purlin guard", folder);
  PURLIN_TRY(remove_tree(folder));
  return root.empty() ? Status::ok() : guard::forget_worktrees(root, folder);
}

}  // namespace purlin::cli
