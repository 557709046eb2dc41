// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/kernels_directory.h"

#include "base/files.h"
#include "base/text.h"

namespace purlin::cli {

Result<std::string> kernels_directory() {
  std::vector<std::string> places;
  if (std::string named = environment_variable("PURLIN_KERNELS"); !named.empty())
    places.push_back(named);
  const std::string here = executable_directory();
  places.push_back(join_path(here, "../share/purlin/kernels"));
  // build/PRESET/bin/purlin in a checkout
  places.push_back(join_path(here, "../../../kernels"));
  for (const std::string& place : places)
    if (is_directory(place)) return absolute_path(place);
  return error(Code::kNotFound,
               "the sample kernels are in none of {}; set PURLIN_KERNELS to their folder",
               join(places, ", "));
}

}  // namespace purlin::cli
