// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/suite_arm.h"

#include "base/files.h"
#include "base/text.h"

namespace purlin::guard {

Result<std::string> moved_path(const std::string& path, const std::string& from,
                               const std::string& to) {
  if (to.empty()) return path;
  const std::string absolute = absolute_path(path), root = absolute_path(from);
  if (absolute == root) return to;
  if (starts_with(absolute, root + "/")) return join_path(to, absolute.substr(root.size() + 1));
  return error(Code::kInvalid, "'{}' lies outside of '{}', so no revision of it can be checked out",
               path, from);
}

Result<SuiteArm> make_suite_arm(const Suite& suite, const DeviceInfo& device,
                                const SuiteArmOptions& options, Runner& runner) {
  SuiteArm made;
  std::vector<KernelItem> items;
  for (const SuiteItem& listed : suite.items) {
    SuiteItem item = listed;
    PURLIN_ASSIGN(item.spec_path, moved_path(item.spec_path, options.from, options.to));
    const Result<ResolvedItem> resolved = resolve_item(item, suite, device, options.cache);
    KernelItem kernel;
    if (resolved.is_ok()) {
      kernel.item = {resolved->target.kernel, resolved->target.problem.text(), item.config};
      kernel.target = resolved->target;
      kernel.code = resolved->snapshot.id();
    } else {
      kernel.item = name_of(listed);  // the name in the suite's own folder, to match the other arm
      kernel.target.spec_path = item.spec_path;
      kernel.problem = Status(Code::kFailed, resolved.status().message());
    }
    made.thresholds[kernel.item] = item.thresholds;
    if (const auto [same, added] = made.files.emplace(kernel.item, item.spec_path); !added)
      return error(Code::kInvalid,
                   "{}: '{}' is in the suite twice, from '{}' and '{}': give the specs different "
                   "names",
                   listed.where, kernel.item.text(), same->second, item.spec_path);
    items.push_back(std::move(kernel));
  }
  made.arm = make_kernel_arm({options.label, suite.per_process, options.environment},
                             std::move(items), runner);
  return made;
}

}  // namespace purlin::guard
