// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name/kernel_name.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

// Any text is a kernel's name. What is read of it is a label for a person: never empty, and never
// longer than what was recorded but for a few words.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin::analyze;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const KernelName name = describe_kernel(text);
  if (name.brief.empty() != name.full.empty()) std::abort();
  if (name.brief.size() > name.full.size() + 64 || name.stages < 0) std::abort();
  const KernelName other = describe_kernel(text.substr(0, size / 2));
  const auto labels = tell_apart({&name, &other, &name});
  if (labels.size() != 3) std::abort();
  return 0;
}
