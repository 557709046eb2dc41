// SPDX-License-Identifier: Apache-2.0
#include "cli/page/write_page.h"

#include "base/files.h"

namespace purlin::cli {

Status check_page_path(const std::string& path) {
  if (path.empty() || path == "-") return Status::ok();
  if (is_directory(path))
    return error(Code::kInvalid, "--html '{}' is a folder: name the file to write, such as {}",
                 path, join_path(path, "report.html"));
  if (!is_directory(parent_path(path)))
    return error(Code::kNotFound, "--html '{}': there is no folder '{}'", path, parent_path(path));
  return Status::ok();
}

Status write_page(const Context& context, const page::Page& page, const std::string& path) {
  PURLIN_ASSIGN(const std::string text, page::render_file(page));
  if (path == "-") {
    context.write(text);
    return Status::ok();
  }
  PURLIN_TRY(write_atomic(path, text));
  context.log.info("page: {}", path);
  return Status::ok();
}

}  // namespace purlin::cli
