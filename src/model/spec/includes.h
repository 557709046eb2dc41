// SPDX-License-Identifier: Apache-2.0
// The headers a kernel source includes from its own folders: they are compiled with it, so whatever
// is keyed by the source is keyed by them too.
//
// Conditions are not looked at: a header too many costs a recompilation, one too few would cost the
// truth. A name found in none of the folders belongs to the toolkit, which is known by its version.
// Thread-safety: pure but for `read`. Failure: kInvalid for a source that includes without end.
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

// Directly and indirectly, each once, in the order met: the same sources give the same list
// wherever they lie. A name is looked for beside the file that includes it, then in `directories`.
Result<std::vector<Header>> included_headers(std::string_view source, const std::string& folder,
                                             const std::vector<std::string>& directories,
                                             const HeaderReader& read);

// Of the texts of all that included_headers() yields; "" where there are none.
Result<std::string> headers_hash(std::string_view source, const std::string& folder,
                                 const std::vector<std::string>& directories,
                                 const HeaderReader& read);

// From the file system. What is too large for a header is taken for no file.
std::optional<std::string> read_header(const std::string& path);

// The folders that compiler options add: -Ifolder, or -I and the folder.
std::vector<std::string> include_folders(const std::vector<std::string>& options);

}  // namespace purlin
