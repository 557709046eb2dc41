// SPDX-License-Identifier: Apache-2.0
// Writes a page where --html says: a file, or standard output for "-". Free functions.
#pragma once

#include "base/status.h"
#include "cli/frame/command.h"
#include "page/page.h"

#include <string>

namespace purlin::cli {

// kInvalid for a folder.
Status check_page_path(const std::string& path);
Status write_page(const Context& context, const page::Page& page, const std::string& path);

}  // namespace purlin::cli
