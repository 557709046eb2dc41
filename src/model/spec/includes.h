// SPDX-License-Identifier: Apache-2.0
// The headers that a kernel source includes from its own folders. They are compiled with the
// source, so a key over the source also covers them.
//
// The search ignores preprocessor conditions: a header too many causes a recompilation, and a
// missing header would make a result wrong. A name found in none of the folders belongs to the
// toolkit, which is identified by its version. Thread-safety: pure except for `read`. Failure:
// kInvalid for a source that includes without end.
#pragma once

#include "base/status.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct Header {
  std::string path;
  std::string text;
};
// nullopt where there is no such file.
using HeaderReader = std::function<std::optional<std::string>(const std::string& path)>;

// Directly and indirectly, each once, in the order of their first include. The same sources give
// the same list in every place. A name is looked for in the folder of the file that includes it,
// then in `directories`.
Result<std::vector<Header>> included_headers(std::string_view source, const std::string& folder,
                                             const std::vector<std::string>& directories,
                                             const HeaderReader& read);

// Of the texts of all headers that included_headers() returns; "" without headers.
Result<std::string> headers_hash(std::string_view source, const std::string& folder,
                                 const std::vector<std::string>& directories,
                                 const HeaderReader& read);

// From the file system. What is too large for a header is taken for no file.
std::optional<std::string> read_header(const std::string& path);

// The folders that compiler options add: -Ifolder, or -I and the folder.
std::vector<std::string> include_folders(const std::vector<std::string>& options);

}  // namespace purlin
