// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cubin.h"

#include <cstring>
#include <elf.h>
#include <string>

namespace purlin::gpu {
namespace {

// Records of .nv.info: format, attribute, size, then a symbol and its value.
constexpr unsigned char kSizedValue = 4, kRegisterCount = 0x2f, kFrameSize = 0x11;
constexpr std::size_t kInfoHead = 4, kInfoPair = 8;
// Where this symbol is, the section of shared memory begins with what the driver keeps for itself,
// which is no part of the kernel's own.
constexpr std::string_view kReservedSymbol = "__nv_reservedSMEM_offset_0_alias";
constexpr std::uint64_t kReservedBytes = 1024;

template <class T>
std::optional<T> value_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view string_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

class Cubin {
 public:
  // False for what is no ELF image of this kind.
  bool open(std::string_view image) {
    image_ = image;
    const auto header = value_at<Elf64_Ehdr>(image, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
      return false;
    header_ = *header;
    const auto names = section(header_.e_shstrndx);
    if (!names) return false;
    names_ = contents(*names);
    return true;
  }

  std::optional<Elf64_Shdr> find(std::string_view name) const {
    for (std::uint32_t i = 0; i < header_.e_shnum; ++i)
      if (const auto one = section(i); one && string_at(names_, one->sh_name) == name) return one;
    return std::nullopt;
  }

  std::string_view contents(const Elf64_Shdr& of) const {
    if (of.sh_type == SHT_NOBITS || of.sh_offset > image_.size() ||
        image_.size() - of.sh_offset < of.sh_size)
      return {};
    return image_.substr(of.sh_offset, of.sh_size);
  }

  // Of that name; nullopt without one.
  std::optional<std::uint32_t> symbol(std::string_view name) const {
    const auto table = find(".symtab"), names = find(".strtab");
    if (!table || !names) return std::nullopt;
    const std::string_view symbols = contents(*table), texts = contents(*names);
    for (std::uint32_t i = 0; i < symbols.size() / sizeof(Elf64_Sym); ++i) {
      const auto one = value_at<Elf64_Sym>(symbols, std::uint64_t{i} * sizeof(Elf64_Sym));
      if (string_at(texts, one->st_name) == name) return i;
    }
    return std::nullopt;
  }

 private:
  std::optional<Elf64_Shdr> section(std::uint32_t index) const {
    if (index >= header_.e_shnum) return std::nullopt;
    const std::uint64_t before = std::uint64_t{index} * sizeof(Elf64_Shdr);
    if (header_.e_shoff > image_.size()) return std::nullopt;
    return value_at<Elf64_Shdr>(image_.substr(header_.e_shoff), before);
  }

  std::string_view image_, names_;
  Elf64_Ehdr header_{};
};

}  // namespace

std::optional<Resources> cubin_resources(std::string_view image, std::string_view entry) {
  Cubin cubin;
  if (!cubin.open(image)) return std::nullopt;
  const auto symbol = cubin.symbol(entry);
  const auto info = cubin.find(".nv.info");
  if (!symbol || !info) return std::nullopt;
  Resources found;
  std::string_view records = cubin.contents(*info);
  while (records.size() >= kInfoHead) {
    const auto format = static_cast<unsigned char>(records[0]);
    const auto attribute = static_cast<unsigned char>(records[1]);
    const std::size_t size = format == kSizedValue ? *value_at<std::uint16_t>(records, 2) : 0;
    if (records.size() - kInfoHead < size) break;
    if (size == kInfoPair && *value_at<std::uint32_t>(records, kInfoHead) == *symbol) {
      const std::uint32_t value = *value_at<std::uint32_t>(records, kInfoHead + 4);
      if (attribute == kRegisterCount) found.registers = static_cast<int>(value & 0xFFFF);
      if (attribute == kFrameSize) found.local_bytes = value;
    }
    records.remove_prefix(kInfoHead + size);
  }
  if (found.registers == 0) return std::nullopt;
  if (const auto shared = cubin.find(".nv.shared." + std::string(entry))) {
    const std::uint64_t reserved = cubin.symbol(kReservedSymbol) ? kReservedBytes : 0;
    if (shared->sh_size > reserved)
      found.static_shared_bytes = static_cast<std::int64_t>(shared->sh_size - reserved);
  }
  return found;
}

}  // namespace purlin::gpu
