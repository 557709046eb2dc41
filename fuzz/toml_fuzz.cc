// SPDX-License-Identifier: Apache-2.0
// TOML: any text is a document or an error that names a place.
#include "base/toml.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

void walk(const purlin::Toml& node) {
  if (node.type_name().empty() || node.where().empty()) std::abort();
  if (node.array() != nullptr)
    for (const purlin::Toml& item : *node.array()) walk(item);
  if (node.table() != nullptr)
    for (const auto& [name, member] : *node.table()) walk(member);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const purlin::Result<purlin::Toml> read = purlin::Toml::parse(text, "fuzz.toml");
  if (read.is_ok()) {
    walk(*read);
  } else if (read.status().message().rfind("fuzz.toml:", 0) != 0) {
    std::abort();
  }
  return 0;
}
