// SPDX-License-Identifier: Apache-2.0
// What a spool file defines once: texts, kernels, their types and origins, names of the timeline. A
// file that continues another one begins with it, so that its ids are the same.
//
// A pure function; only std::bad_alloc is thrown. It ends at the first chunk that is cut short.
#pragma once

#include <string>
#include <string_view>

namespace purlin::profile::capture {

// The chunks of `bytes`, which begin where a chunk begins, that define something.
std::string definitions_of(std::string_view bytes);

}  // namespace purlin::profile::capture
