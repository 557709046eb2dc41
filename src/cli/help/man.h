// SPDX-License-Identifier: Apache-2.0
// Man pages in roff: purlin.1, one page a group and one page a verb. Pure functions; no failure.
#pragma once

#include "cli/help/page.h"

namespace purlin::cli {

struct ManPage {
  std::string file;  // "purlin-cache-ls.1"
  std::string text;
};

std::vector<ManPage> man_pages(const Manual& manual);

}  // namespace purlin::cli
