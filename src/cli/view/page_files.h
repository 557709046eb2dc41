// SPDX-License-Identifier: Apache-2.0
// The page of files: profiles of every kind, two and more compared with the first, and Purlin's own
// documents (tuning results and journals, verdicts, histories, matrices). Free functions. Failure:
// kInvalid for a document that has no view, and the readers' errors.
#pragma once

#include "base/file_stamp.h"
#include "base/status.h"
#include "cli/frame/command.h"
#include "page/page.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

Result<page::Page> page_of_files(const Context& context, const std::vector<std::string>& files);

// The files that are read for them: of a session's folder, its journal.
std::vector<FileStamp> stamps_of_files(const std::vector<std::string>& files);

// A tuning session under way, from its journal: the known part of a `purlin.tune/1`.
Result<Json> tune_of_journal(std::string_view text);

}  // namespace purlin::cli
