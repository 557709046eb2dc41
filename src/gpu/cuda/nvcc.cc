// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/nvcc.h"

#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"
#include "base/time.h"
#include "gpu/launching.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <elf.h>
#include <memory>
#include <unistd.h>

namespace purlin::gpu {
namespace {

constexpr double kVersionTimeoutS = 60;
constexpr double kCompileTimeoutS = 900;  // where the request sets none
constexpr std::size_t kMaxLogBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxCubinBytes = std::size_t{256} << 20;
constexpr unsigned char kEntryPoint = 0x10;  // st_other of a kernel, in NVIDIA's ELF

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (std::string path = environment_variable("PURLIN_NVCC"); !path.empty()) return {path};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string home = environment_variable(variable); !home.empty())
      paths.push_back(join_path(home, "bin/nvcc"));
  for (const std::string& folder : split(environment_variable("PATH"), ':'))
    if (!folder.empty()) paths.push_back(join_path(folder, "nvcc"));
  paths.emplace_back("/usr/local/cuda/bin/nvcc");
  return paths;
}

// "… release 13.0, V13.0.88" -> "13.0.88"
std::string release_of(std::string_view text) {
  const std::size_t at = text.find(", V");
  if (at == std::string_view::npos) return "";
  std::string_view rest = text.substr(at + 3);
  return std::string(rest.substr(0, rest.find_first_of(" \r\n")));
}

// What affects a binary's bytes and is not in the request.
std::string environment_flags() {
  std::string flags;
  for (const char* name :
       {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPLUS_INCLUDE_PATH", "CPATH"})
    if (const std::string value = environment_variable(name); !value.empty())
      flags += fmt::format(" {}={}", name, value);
  return flags;
}

// The config as definitions, which may hold commas (-D may not), then the source under its own name
// and lines, then a kernel whose name contains the entry's name in the binary.
std::string marked_source(const CompileRequest& request) {
  std::string text;
  for (const std::string& option : macro_options(request.config)) {
    const std::size_t equals = option.find('=');
    text += fmt::format("#define {} {}\n", option.substr(2, equals - 2), option.substr(equals + 1));
  }
  text += fmt::format("#line 1 \"{}\"\n{}\n", request.name, request.source);
  text += fmt::format(
      "#line 1 \"entry\"\n"
      "template <auto* kernel> __global__ void purlin_entry() {{}} "
      "template __global__ void purlin_entry<&{}>();\n",
      request.entry);
  return text;
}

// From the first error on: warnings of headers may fill pages.
std::string_view from_first_error(std::string_view log) {
  const std::size_t found = log.find("error");
  if (found == std::string_view::npos) return log;
  const std::size_t line = log.rfind('\n', found);
  return line == std::string_view::npos ? log : log.substr(line + 1);
}

template <class Row>
std::optional<Row> row_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Row)) return std::nullopt;
  Row row;
  std::memcpy(&row, bytes.data() + offset, sizeof row);
  return row;
}

std::string text_at(std::string_view bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return "";
  const std::string_view rest = bytes.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

// Names of a cubin's kernels.
std::vector<std::string> kernels_of(std::string_view cubin) {
  std::vector<std::string> names;
  const auto header = row_at<Elf64_Ehdr>(cubin, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return names;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = row_at<Elf64_Shdr>(cubin, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section || section->sh_type != SHT_SYMTAB) continue;
    const auto strings = row_at<Elf64_Shdr>(
        cubin, header->e_shoff + std::uint64_t{section->sh_link} * sizeof(Elf64_Shdr));
    if (!strings) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section->sh_size;
         at += sizeof(Elf64_Sym)) {
      const auto symbol = row_at<Elf64_Sym>(cubin, section->sh_offset + at);
      if (!symbol) break;
      if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && (symbol->st_other & kEntryPoint) != 0)
        names.push_back(text_at(cubin, strings->sh_offset + symbol->st_name));
    }
  }
  return names;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return text != nullptr ? text.get() : "";
}

// A template's instance is recognised by its full text, "void purlin_entry<&(void
// ns::f<float>(float*))>()", because a mangled name within another is abbreviated differently. A
// plain function is recognised by its mangled name: the full text omits its parameters.
bool marks(const std::string& marker, const std::string& marked, const std::string& name) {
  if (!starts_with(name, "_Z")) return false;
  return starts_with(marked, fmt::format("void purlin_entry<&({})>", demangled(name))) ||
         starts_with(marker, fmt::format("_Z12purlin_entryIXadL{}EE", name));
}

}  // namespace

bool names_an_arch(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return starts_with(option, "-arch") || starts_with(option, "--gpu-architecture");
  });
}

Result<std::string> choose_arch(const std::vector<std::string>& archs, const std::string& device) {
  if (archs.empty()) return device;
  for (const std::string& arch : archs) {
    const std::size_t end = arch.find_last_of("0123456789");  // sm_90a is sm_90 and more
    if (end != std::string::npos && arch.substr(0, end + 1) == device) return arch;
  }
  return error(Code::kInvalid, "the source is for {}, this device is {}; add it to 'arch'",
               join(archs, ", "), device);
}

std::optional<std::string> marked_entry(std::string_view cubin, const std::string& entry) {
  constexpr std::string_view kMarker = "_Z12purlin_entryI";
  const std::vector<std::string> names = kernels_of(cubin);
  for (const std::string& marker : names) {
    if (!starts_with(marker, kMarker)) continue;
    const std::string marked = demangled(marker);
    for (const std::string& name : names)
      if (!starts_with(name, kMarker) && marks(marker, marked, name)) return name;
  }
  // extern "C": as written.
  if (std::find(names.begin(), names.end(), entry) != names.end()) return entry;
  return std::nullopt;
}

Result<Nvcc::Found> Nvcc::find() {
  const std::lock_guard lock(mutex_);
  if (found_) return *found_;
  const auto look = [this]() -> Result<Found> {
    const std::vector<std::string> paths =
        path_.empty() ? candidates() : std::vector<std::string>{path_};
    for (const std::string& path : paths) {
      if (::access(path.c_str(), X_OK) != 0) continue;
      Process::Options options;
      options.argv = {path, "--version"};
      PURLIN_ASSIGN(const Captured said, run_captured(options, kVersionTimeoutS, kMaxLogBytes));
      const std::string release = release_of(said.out);
      if (!said.exit.ok() || release.empty())
        return error(Code::kUnavailable, "'{} --version' reports no version ({}): {}", path,
                     said.timed_out ? "it did not end" : said.exit.text(), trim(said.err));
      return Found{path, "nvcc " + release + environment_flags()};
    }
    return error(Code::kUnavailable,
                 "the kernel asks for nvcc, which is not found ({}); install the CUDA toolkit, or "
                 "set PURLIN_NVCC to the compiler",
                 path_.empty() ? "not under $CUDA_HOME, in PATH or in /usr/local/cuda" : path_);
  };
  found_ = look();
  return *found_;
}

Result<std::string> Nvcc::version() {
  PURLIN_ASSIGN(const Found found, find());
  return found.version;
}

Result<Binary> Nvcc::compile(const CompileRequest& request, const std::string& arch) {
  PURLIN_ASSIGN(const Found found, find());
  PURLIN_ASSIGN(const std::string folder, make_temporary_directory("purlin-nvcc"));
  const auto remove = [](const std::string* path) { static_cast<void>(remove_tree(*path)); };
  const std::unique_ptr<const std::string, decltype(remove)> cleanup(&folder, remove);
  const std::string source = join_path(folder, "kernel.cu"),
                    cubin = join_path(folder, "kernel.cubin");
  PURLIN_TRY(write_atomic(source, marked_source(request)));

  Process::Options options;
  options.argv = {found.path, "-cubin", "-o", cubin};
  if (!names_an_arch(request.options)) options.argv.push_back("-arch=" + arch);
  options.argv.insert(options.argv.end(), request.options.begin(), request.options.end());
  for (const std::string& include : request.include_directories)
    options.argv.push_back("-I" + absolute_path(include));
  options.argv.push_back(source);
  options.environment = {{"TMPDIR", folder}};  // a compiler that is killed leaves files behind
  // A worker is killed as a group, and the compilers that nvcc starts have to go with it.
  options.new_group = ::getpgrp() != ::getpid();
  const double limit_s = request.timeout_s > 0 ? request.timeout_s : kCompileTimeoutS;
  const std::int64_t start = system_clock().monotonic_ns();
  PURLIN_ASSIGN(const Captured done, run_captured(options, limit_s, kMaxLogBytes));
  const std::string log(trim(done.err + done.out));
  if (done.timed_out)
    return error(Code::kTimeout, "{}: {} did not end within {:g} s", request.name, found.version,
                 limit_s);
  options.argv.back() = request.name;
  if (!done.exit.ok())
    return error(Code::kInvalid, "{} does not compile for entry '{}' with '{}' ({}):\n{}",
                 request.name, request.entry, join(options.argv, " "), done.exit.text(),
                 log.empty() ? std::string_view("(no log)") : from_first_error(log));
  Binary binary;
  PURLIN_ASSIGN(binary.image, read_file(cubin, kMaxCubinBytes));
  std::optional<std::string> entry = marked_entry(binary.image, request.entry);
  if (!entry)
    return error(Code::kInvalid,
                 "{}: no kernel '{}' in what nvcc made; is it a __global__ function?", request.name,
                 request.entry);
  binary.entry = *std::move(entry);
  binary.log = log;
  binary.compile_s = static_cast<double>(system_clock().monotonic_ns() - start) * 1e-9;
  return binary;
}

}  // namespace purlin::gpu
