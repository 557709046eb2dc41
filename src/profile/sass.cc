// SPDX-License-Identifier: Apache-2.0
#include "profile/sass.h"

#include <cstring>
#include <elf.h>
#include <string>

namespace purlin::profile {
namespace {

constexpr std::uint64_t kOperation = 0xfff, kBar = 0xb1d;
constexpr int kDeferred = 4;  // instructions; two were seen on an H200

template <class T>
bool read_at(std::string_view bytes, std::uint64_t at, T& value) {
  if (at > bytes.size() || bytes.size() - at < sizeof value) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return true;
}

// "" without such a section.
std::string_view section_named(std::string_view module, const std::string& name) {
  Elf64_Ehdr header;
  if (!read_at(module, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shoff > module.size())
    return "";
  const auto section = [&](std::uint64_t index, Elf64_Shdr& out) {
    return read_at(module, header.e_shoff + index * sizeof(Elf64_Shdr), out);
  };
  Elf64_Shdr names, each;
  if (!section(header.e_shstrndx, names)) return "";
  for (std::uint64_t i = 0; i < header.e_shnum && section(i, each); ++i) {
    if (names.sh_offset > module.size() || each.sh_name > module.size() - names.sh_offset) continue;
    const std::string_view text = module.substr(names.sh_offset + each.sh_name);
    if (text.substr(0, text.find('\0')) != name || each.sh_type != SHT_PROGBITS ||
        each.sh_offset > module.size() || each.sh_size > module.size() - each.sh_offset)
      continue;
    return module.substr(each.sh_offset, each.sh_size);
  }
  return "";
}

}  // namespace

bool is_barrier(std::string_view module, std::string_view function, std::uint64_t offset) {
  const std::string_view code = section_named(module, ".text." + std::string(function));
  std::uint64_t bits = 0;
  return offset % kInstructionBytes == 0 && read_at(code, offset, bits) &&
         (bits & kOperation) == kBar;
}

std::uint64_t waiting_at(std::string_view module, std::string_view function, std::uint64_t offset) {
  std::uint64_t at = offset;
  for (int back = 0; back <= kDeferred; ++back, at -= kInstructionBytes) {
    if (is_barrier(module, function, at)) return at;
    if (at < kInstructionBytes) break;
  }
  return offset;
}

}  // namespace purlin::profile
