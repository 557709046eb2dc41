// SPDX-License-Identifier: Apache-2.0
// What the user's config caches hold about the kernels of a page: the document `cache`, as
// `purlin cache ls --json` prints it, of the entries that may be about one of them. Without host,
// user and samples: a page is passed on. Free function. Failure: none; a cache that cannot be read
// is a warning.
#pragma once

#include "cli/frame/command.h"
#include "page/page.h"

namespace purlin::cli {

// Nothing for a page without a profile, or with a document `cache`.
void add_kernel_cache(const Context& context, page::Page& page);

}  // namespace purlin::cli
