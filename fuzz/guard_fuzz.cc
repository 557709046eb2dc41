// SPDX-License-Identifier: Apache-2.0
// What the guard reads from outside: suites, sample files and baselines; the first byte chooses.
#include "guard/baseline.h"
#include "guard/samples.h"
#include "guard/suite.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      (void)purlin::guard::parse_suite(text, "fuzz.toml").is_ok();
      break;
    case 1: {
      const auto samples = purlin::guard::parse_samples(text, "fuzz.csv");
      if (samples.is_ok()) (void)purlin::guard::compare_samples(*samples, *samples, {}, {});
      break;
    }
    default: {
      const auto json = purlin::Json::parse(text, {.max_bytes = 1 << 20, .max_depth = 50});
      if (json.is_ok()) (void)purlin::guard::baseline_from_json(*json).is_ok();
    }
  }
  return 0;
}
