// SPDX-License-Identifier: Apache-2.0
// The text of CopyRow::kind: a direction, and the host's memory where the recorder knows it:
// "h2d", "h2d pageable", "d2h pinned". Migrations of unified memory are no memcpys: "migration h2d"
// has the direction "migration". Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace purlin {

inline std::string_view copy_direction(std::string_view kind) {
  return kind.substr(0, kind.find(' '));
}
// "pageable", "pinned", or the direction of a migration; "" where not recorded.
inline std::string_view copy_memory(std::string_view kind) {
  const std::size_t space = kind.find(' ');
  return space == std::string_view::npos ? "" : kind.substr(space + 1);
}
// Between host and device, by a call of the program.
inline bool is_host_copy(std::string_view kind) {
  return copy_direction(kind) == "h2d" || copy_direction(kind) == "d2h";
}
// The kind of a copy in this direction from or to this memory of the host.
inline std::string copy_kind_of(std::string_view direction, std::string_view host_memory) {
  std::string kind(direction);
  if (is_host_copy(direction) && (host_memory == "pageable" || host_memory == "pinned"))
    kind.append(" ").append(host_memory);
  return kind;
}
inline std::string migration_kind_of(std::string_view direction) {
  return "migration " + std::string(direction);
}

}  // namespace purlin
