// SPDX-License-Identifier: Apache-2.0
// Source lines for sampled stalls. The capture leaves the code of sampled modules next to the
// processes' files, if it has line tables; lines are looked up here, when the program has ended,
// and not inside it. Free functions. What cannot be looked up stays an offset and is noted.
#pragma once

#include "model/profile/profile.h"

#include <functional>
#include <string>
#include <string_view>

namespace purlin::profile {

// "3f2a….cubin": the file of a module in the spool, by StallFunction::code.
std::string module_file(std::uint64_t code);

struct FoundLine {
  std::string file;
  std::uint32_t line = 0;  // 0 = not known
};
// (module's bytes, function, offset)
using LineLookup = std::function<FoundLine(std::string_view, const std::string&, std::uint64_t)>;

// Each site once; stops after `limit_s` seconds, with a note.
void find_lines(Profile& profile, const std::string& spool, const LineLookup& lookup,
                double limit_s = 30);
// With CUPTI's lookup, which is opened only where modules were left.
void find_lines(Profile& profile, const std::string& spool);

}  // namespace purlin::profile
