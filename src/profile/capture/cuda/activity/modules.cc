// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/modules.h"

#include <cstdio>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin::profile::capture::cuda {
namespace {

// As profile/stall_lines names them.
std::string file_of(const std::string& spool, std::uint64_t hash) {
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx.cubin", static_cast<unsigned long long>(hash));
  return spool + name;
}

// First under a name that only this process uses: another process may write the same module.
void write_file(const std::string& path, const std::string& bytes) {
  if (::access(path.c_str(), F_OK) == 0) return;
  const std::string temporary = path + "." + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t got = ::write(fd, bytes.data() + written, bytes.size() - written);
    if (got <= 0) break;
    written += static_cast<std::size_t>(got);
  }
  ::close(fd);
  if (written < bytes.size() || ::rename(temporary.c_str(), path.c_str()) != 0)
    ::unlink(temporary.c_str());
}

template <class T>
bool read_at(std::string_view bytes, std::uint64_t at, T& value) {
  if (at > bytes.size() || bytes.size() - at < sizeof value) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return true;
}

}  // namespace

bool has_line_tables(std::string_view code) {
  Elf64_Ehdr header;
  if (!read_at(code, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
    return false;
  const auto section = [&](std::uint64_t index, Elf64_Shdr& out) {
    const std::uint64_t offset = index * sizeof(Elf64_Shdr);
    return header.e_shoff <= code.size() && read_at(code, header.e_shoff + offset, out);
  };
  Elf64_Shdr names, each;
  if (!section(header.e_shstrndx, names)) return false;
  for (std::uint64_t i = 0; i < header.e_shnum && section(i, each); ++i) {
    const std::uint64_t at = names.sh_offset + each.sh_name;
    if (names.sh_offset > code.size() || at >= code.size() || each.sh_size == 0) continue;
    const std::string_view rest = code.substr(at);
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (name == ".debug_line" || name == ".nv_debug_line_sass") return true;
  }
  return false;
}

std::uint64_t Modules::see(std::string_view code) {
  std::uint64_t hash = XXH3_64bits(code.data(), code.size());
  if (hash == 0) hash = 1;
  try {
    const bool lines = has_line_tables(code);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kept_.count(hash) != 0) return hash;
    if (!lines) {
      kept_.emplace(hash, "");
    } else if (code.size() <= kMaxBytes - bytes_) {
      kept_.emplace(hash, code);
      bytes_ += code.size();
    }
  } catch (...) {  // its lines will not be known
  }
  return hash;
}

bool Modules::use(std::uint64_t hash) {
  std::string code;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = kept_.find(hash);
    if (known == kept_.end()) return false;
    code = std::exchange(known->second, "");
    bytes_ -= code.size();
  }
  if (!code.empty()) write_file(file_of(spool_, hash), code);
  return true;
}

}  // namespace purlin::profile::capture::cuda
