// SPDX-License-Identifier: Apache-2.0
// A module as CUPTI shows it, generated for tests: one function, "f", of given operations.
#pragma once

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <string>
#include <vector>

namespace purlin::profile {

inline std::string module_of(const std::vector<std::uint64_t>& operations) {
  const std::string names = std::string("\0.names\0.text.f\0", 16);
  std::string code;
  for (const std::uint64_t operation : operations) {
    const std::uint64_t instruction[2] = {0x7000 | operation, 0};
    code.append(reinterpret_cast<const char*>(instruction), sizeof instruction);
  }
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof header + names.size() + code.size();
  Elf64_Shdr sections[3] = {};
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = names.size();
  sections[2].sh_name = 8;
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_offset = sizeof header + names.size();
  sections[2].sh_size = code.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + names + code +
         std::string(reinterpret_cast<const char*>(sections), sizeof sections);
}

}  // namespace purlin::profile
