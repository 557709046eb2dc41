// SPDX-License-Identifier: Apache-2.0
// The page: style, script and documents as one file that opens offline, or the same served over
// HTTP, document by document. Its content security policy lets nothing else run or load; names in
// documents are inert (docs/design/page.md). Pure functions over values. Failure: kInvalid where
// arrays cannot be compressed.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "page/document.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::page {

struct Page {
  std::string title;
  std::string view;         // that opens first: "overview", "compare", …
  std::vector<Json> files;  // {name, …} of each profile, in the order of document names
  std::vector<Document> documents;
};

// Everything in one file.
Result<std::string> render_file(const Page& page);

// Over HTTP: the shell, and the parts of the documents that it asks for.
struct Served {
  std::string body, content_type, policy;
  bool gzipped = false;
};
Result<std::string> render_shell(const Page& page);
// The policy of the shell and of everything else under it, as a header.
std::string served_policy();
// `path`: "documents/NAME.json", "documents/NAME.bin" or "more.js"; nothing for other paths.
Result<std::optional<Served>> serve(const Page& page, std::string_view path);

// The page of a fleet's server. It asks the server's API for what it shows.
std::string render_fleet();
std::string fleet_policy();

}  // namespace purlin::page
