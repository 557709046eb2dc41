// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/cupti/interpose.h"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#elif defined(__aarch64__)
constexpr std::uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64};
#else
#error "relocation types of this architecture are not known"
#endif

// The parts of a loaded object that symbol lookup goes through.
struct Object {
  ElfW(Addr) base = 0;
  ElfW(Sym) * symbols = nullptr;
  std::size_t symbol_count = 0;
  const char* strings = nullptr;
  std::size_t strings_size = 0;
  const ElfW(Rela) * tables[2] = {};  // DT_RELA, DT_JMPREL
  std::size_t table_sizes[2] = {};
  struct Segment {
    ElfW(Addr) begin, end;
    int protection;
  };
  std::vector<Segment> segments;  // a later one overrides an earlier one

  int protection_at(ElfW(Addr) address) const {
    int protection = PROT_READ;
    for (const Segment& segment : segments)
      if (address >= segment.begin && address < segment.end) protection = segment.protection;
    return protection;
  }
};

int protection_of(ElfW(Word) flags) {
  return ((flags & PF_R) != 0 ? PROT_READ : 0) | ((flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((flags & PF_X) != 0 ? PROT_EXEC : 0);
}

// glibc relocates these pointers in place on most architectures, and not on all.
template <class T>
T* absolute(ElfW(Addr) base, ElfW(Addr) value) {
  return reinterpret_cast<T*>(value < base ? base + value : value);
}

// The highest symbol of the longest chain, plus one.
std::size_t count_by_gnu_hash(const std::uint32_t* table) {
  const std::uint32_t buckets = table[0], first = table[1], bloom = table[2];
  const std::uint32_t* bucket = table + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i)
    if (bucket[i] > last) last = bucket[i];
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

bool describe(const dl_phdr_info& info, Object& object) {
  const ElfW(Dyn)* dynamic = nullptr;
  object.base = info.dlpi_addr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
    const ElfW(Addr) begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD || header.p_type == PT_GNU_RELRO)
      object.segments.push_back(
          {begin, begin + header.p_memsz,
           header.p_type == PT_LOAD ? protection_of(header.p_flags) : PROT_READ});
  }
  // The program headers come in address order; the part made read-only after relocation is last.
  if (dynamic == nullptr) return false;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* hash = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        object.symbols = absolute<ElfW(Sym)>(object.base, value);
        break;
      case DT_STRTAB:
        object.strings = absolute<const char>(object.base, value);
        break;
      case DT_STRSZ:
        object.strings_size = dynamic->d_un.d_val;
        break;
      case DT_GNU_HASH:
        gnu_hash = absolute<const std::uint32_t>(object.base, value);
        break;
      case DT_HASH:
        hash = absolute<const std::uint32_t>(object.base, value);
        break;
      case DT_RELA:
        object.tables[0] = absolute<const ElfW(Rela)>(object.base, value);
        break;
      case DT_RELASZ:
        object.table_sizes[0] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
        break;
      case DT_JMPREL:
        object.tables[1] = absolute<const ElfW(Rela)>(object.base, value);
        break;
      case DT_PLTRELSZ:
        object.table_sizes[1] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
        break;
      default:
        break;
    }
  }
  if (object.symbols == nullptr || object.strings == nullptr) return false;
  if (hash != nullptr) {
    object.symbol_count = hash[1];
  } else if (gnu_hash != nullptr) {
    object.symbol_count = count_by_gnu_hash(gnu_hash);
  }
  return true;
}

bool contains(const dl_phdr_info& info, const void* address) {
  const auto wanted = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    const ElfW(Addr) begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && wanted >= begin && wanted < begin + header.p_memsz) return true;
  }
  return false;
}

// Writes one word of a page that may be read-only, and restores the protection. Executable pages
// stay executable: older linkers put the symbol table next to the code.
bool write_word(const Object& object, ElfW(Addr) at, ElfW(Addr) value) {
  const int protection = object.protection_at(at);
  const auto page_size = static_cast<ElfW(Addr)>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(at & ~(page_size - 1));
  const std::size_t size =
      (at & (page_size - 1)) + sizeof value > page_size ? 2 * page_size : page_size;
  const bool writable = (protection & PROT_WRITE) != 0;
  if (!writable && ::mprotect(page, size, protection | PROT_WRITE) != 0) return false;
  __atomic_store_n(reinterpret_cast<ElfW(Addr)*>(at), value, __ATOMIC_RELEASE);
  if (!writable) ::mprotect(page, size, protection);
  return true;
}

struct Walk {
  const Replacement* replacements;
  std::size_t count;
  const void* self;
  std::vector<ElfW(Sym)*> symbols;  // in the library, one per replacement
  Object library;
  bool library_found = false;
};

const Replacement* first_of(const Walk& walk) {
  for (std::size_t i = 0; i < walk.count; ++i)
    if (walk.replacements[i].original != nullptr) return &walk.replacements[i];
  return nullptr;
}

int find_symbols(dl_phdr_info* info, std::size_t, void* context) {
  Walk& walk = *static_cast<Walk*>(context);
  Object object;
  if (!contains(*info, first_of(walk)->original) || !describe(*info, object)) return 0;
  walk.library_found = true;
  walk.library = object;
  for (std::size_t s = 0; s < object.symbol_count; ++s) {
    ElfW(Sym)& symbol = object.symbols[s];
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= object.strings_size) continue;
    for (std::size_t i = 0; i < walk.count; ++i) {
      const Replacement& each = walk.replacements[i];
      if (each.original != nullptr &&
          object.base + symbol.st_value == reinterpret_cast<ElfW(Addr)>(each.original) &&
          std::strcmp(object.strings + symbol.st_name, each.name) == 0)
        walk.symbols[i] = &symbol;
    }
  }
  return 1;
}

void rebind(const Object& object, const Walk& walk) {
  for (int t = 0; t < 2; ++t) {
    for (std::size_t r = 0; r < object.table_sizes[t]; ++r) {
      const ElfW(Rela)& relocation = object.tables[t][r];
      const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
      bool slot = false;
      for (const std::uint32_t known : kSlotTypes) slot = slot || type == known;
      if (!slot || ELF64_R_SYM(relocation.r_info) == 0) continue;
      const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
      if (symbol.st_name >= object.strings_size) continue;
      const ElfW(Addr) at = object.base + relocation.r_offset;
      const ElfW(Addr) bound = *reinterpret_cast<const ElfW(Addr)*>(at);
      for (std::size_t i = 0; i < walk.count; ++i) {
        const Replacement& each = walk.replacements[i];
        // The address first: it excludes all but a few of a large library's slots.
        if (each.original == nullptr || bound != reinterpret_cast<ElfW(Addr)>(each.original) ||
            std::strcmp(object.strings + symbol.st_name, each.name) != 0)
          continue;
        write_word(object, at, reinterpret_cast<ElfW(Addr)>(each.replacement));
      }
    }
  }
}

// Returns once no other thread is in the middle of loading an object: dlopen() holds the loader's
// lock until the object is relocated and its constructors have run.
void wait_for_loads_in_progress() {
  if (void* program = ::dlopen(nullptr, RTLD_LAZY)) ::dlclose(program);
}

// Purlin's own object and the library itself keep the originals.
int rebind_object(dl_phdr_info* info, std::size_t, void* context) {
  const Walk& walk = *static_cast<const Walk*>(context);
  Object object;
  if (contains(*info, walk.self) || contains(*info, first_of(walk)->original)) return 0;
  if (describe(*info, object)) rebind(object, walk);
  return 0;
}

}  // namespace

bool interpose(const Replacement* replacements, std::size_t count, std::string& reason) {
  static const char here = 0;
  Walk walk = {replacements, count, &here, std::vector<ElfW(Sym)*>(count), {}, false};
  if (first_of(walk) == nullptr) return reason = "no function to replace", false;
  ::dl_iterate_phdr(&find_symbols, &walk);
  if (!walk.library_found) return reason = "the library is not among the loaded objects", false;
  for (std::size_t i = 0; i < count; ++i) {
    if (replacements[i].original == nullptr || walk.symbols[i] != nullptr) continue;
    return reason = std::string(replacements[i].name) + " is not in the symbol table", false;
  }
  // Addresses are base + value in the loader's unsigned arithmetic, so any address can be given.
  const auto publish = [&](std::size_t i, const void* function) {
    return walk.symbols[i] == nullptr ||
           write_word(walk.library, reinterpret_cast<ElfW(Addr)>(&walk.symbols[i]->st_value),
                      reinterpret_cast<ElfW(Addr)>(function) - walk.library.base);
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (publish(i, replacements[i].replacement)) continue;
    // All functions are replaced, or none.
    for (std::size_t done = 0; done < i; ++done) publish(done, replacements[done].original);
    return reason = "its symbol table cannot be made writable", false;
  }
  // An object that another thread is loading may be bound to an original already, while the loader
  // still writes to its pages. write_word() would make such a page read-only too early, and the
  // loader would fault. Objects that are loaded from here on bind to the replacements.
  wait_for_loads_in_progress();
  ::dl_iterate_phdr(&rebind_object, &walk);
  return true;
}

bool redirect(const void* inside, void* target, const char* prefix, std::string& reason) {
  struct Names {
    const void* inside;
    const char* prefix;
    std::vector<Replacement> found;
  } names = {inside, prefix, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        Names& all = *static_cast<Names*>(context);
        Object object;
        if (!contains(*info, all.inside) || !describe(*info, object)) return 0;
        for (std::size_t s = 0; s < object.symbol_count; ++s) {
          const ElfW(Sym)& symbol = object.symbols[s];
          if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= object.strings_size ||
              ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
            continue;
          const char* name = object.strings + symbol.st_name;
          if (std::strncmp(name, all.prefix, std::strlen(all.prefix)) == 0)
            all.found.push_back(
                {name, reinterpret_cast<void*>(object.base + symbol.st_value), nullptr});
        }
        return 1;
      },
      &names);
  // Asked outside of the walk, during which the loader holds its lock.
  std::vector<Replacement> replacements;
  for (Replacement& each : names.found) {
    each.replacement = ::dlsym(target, each.name);
    if (each.replacement != nullptr) replacements.push_back(each);
  }
  if (replacements.empty()) return reason = "it has none of the functions", false;
  return interpose(replacements.data(), replacements.size(), reason);
}

}  // namespace purlin::profile::capture::cuda
