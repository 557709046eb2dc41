// SPDX-License-Identifier: Apache-2.0
// Which of Purlin's documents the page shows, and in which view. Pure functions.
#pragma once

#include "base/json/json.h"
#include "page/page.h"

#include <string_view>

namespace purlin::cli {

struct PageView {
  std::string_view schema;    // without its version
  std::string_view document;  // its name on the page
  std::string_view view;
};

// "purlin.tune/1" -> "purlin.tune"
std::string_view schema_name(std::string_view schema);
// nullptr: no view shows it.
const PageView* view_of(std::string_view schema);

// The page of one document. It opens in the view that the document belongs to.
page::Page page_of_document(Json document);

}  // namespace purlin::cli
