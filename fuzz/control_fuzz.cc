// SPDX-License-Identifier: Apache-2.0
// What a process may send to the control socket of a captured one.
#include "profile/control_text.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin::profile;
  ControlRequest request;
  if (!parse_control({reinterpret_cast<const char*>(data), size}, request)) return 0;
  ControlRequest again;
  if (!parse_control(to_text(request), again) || again.verb != request.verb ||
      again.length_ns != request.length_ns)
    std::abort();
  return 0;
}
