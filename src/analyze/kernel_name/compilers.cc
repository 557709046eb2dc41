// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name/compilers.h"

#include "analyze/kernel_name/text.h"
#include "base/text.h"

#include <fmt/format.h>

#include <cctype>

namespace purlin::analyze {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_behind(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_decimal(text[end])) ++end;
  return end - at;
}

// "_ZN2at6native4copyI…" cut anywhere -> "at::native::copy".
std::string nested_name(std::string_view symbol) {
  std::string name;
  std::size_t at = 3;
  if (at < symbol.size() && symbol[at] == 'K') ++at;
  while (at < symbol.size()) {
    const std::size_t digits = digits_behind(symbol, at);
    const std::size_t length =
        static_cast<std::size_t>(parse_int(symbol.substr(at, digits)).value_or(0));
    if (digits == 0 || digits > 4 || length == 0) break;
    const std::string_view part = symbol.substr(at + digits, length);
    name += (name.empty() ? "" : "::") +
            std::string(starts_with(part, "_GLOBAL__N_") ? "(anonymous namespace)" : part);
    at += digits + length;
  }
  return name;
}

// flang: "_QMnorm_modPnorm" -> "norm_mod::norm"; names are lower-case, their kinds are not.
std::string of_flang(std::string_view symbol) {
  std::string name;
  for (std::size_t at = 2; at < symbol.size(); ++at) {
    const char c = symbol[at];
    if (c >= 'A' && c <= 'Z')
      name += name.empty() ? "" : "::";
    else
      name += c;
  }
  return name == "main" || name.empty() ? "main" : name;
}

// The function's name as its source has it.
std::string function_of(std::string_view symbol) {
  if (starts_with(symbol, "_Q")) return of_flang(symbol);
  if (starts_with(symbol, "_Z")) return take_apart(readable_symbol(symbol)).name;
  std::string name(symbol);
  if (starts_with(name, "__")) {  // gfortran: "__norm_mod_MOD_norm"
    if (const std::size_t module = name.find("_MOD_"); module != std::string::npos)
      name = name.substr(2, module - 2) + "::" + name.substr(module + 5);
  }
  return name;
}

struct Outlined {
  std::string_view function, place;  // "norm", "l26"
};

// clang, flang, AOMP: "__omp_offloading_<device>_<inode>_<function>_l<line>". Device and inode are
// of the file on the machine that compiled it.
bool of_clang(std::string_view symbol, Outlined& out) {
  constexpr std::string_view kPrefix = "__omp_offloading_";
  if (!starts_with(symbol, kPrefix)) return false;
  std::string_view rest = symbol.substr(kPrefix.size());
  for (int number = 0; number < 2; ++number) {
    const std::size_t end = rest.find_first_not_of("0123456789abcdef");
    if (end == std::string_view::npos || end == 0 || rest[end] != '_') return false;
    rest.remove_prefix(end + 1);
  }
  const std::size_t line = rest.rfind("_l");
  if (line == std::string_view::npos || line == 0) return false;
  const std::size_t digits = digits_behind(rest, line + 2);
  if (digits == 0) return false;
  out = {rest.substr(0, line), rest.substr(line + 1, digits + 1)};
  return true;
}

// nvc, nvfortran: OpenMP "nvkernel_solve_F1L204_2"; OpenACC "solve_204_gpu", "solve_204_gpu__red".
bool of_nvhpc(std::string_view symbol, Outlined& out) {
  if (constexpr std::string_view kPrefix = "nvkernel_"; starts_with(symbol, kPrefix)) {
    const std::string_view rest = symbol.substr(kPrefix.size());
    for (std::size_t at = rest.rfind("_F"); at != std::string_view::npos && at > 0;
         at = rest.rfind("_F", at - 1)) {
      const std::size_t file = digits_behind(rest, at + 2), line = at + 2 + file;
      if (file == 0 || line >= rest.size() || rest[line] != 'L') continue;
      const std::size_t digits = digits_behind(rest, line + 1);
      if (digits == 0) continue;
      out = {rest.substr(0, at), rest.substr(line, digits + 1)};
      return true;
    }
    return false;
  }
  const std::size_t gpu = symbol.rfind("_gpu");
  if (gpu == std::string_view::npos || gpu == 0) return false;
  const std::string_view tail = symbol.substr(gpu + 4);
  if (!tail.empty() && !starts_with(tail, "__")) return false;
  const std::size_t line = symbol.rfind('_', gpu - 1);
  if (line == std::string_view::npos || line == 0 || line + 1 == gpu) return false;
  if (digits_behind(symbol, line + 1) != gpu - line - 1) return false;
  out = {symbol.substr(0, line), symbol.substr(line + 1, gpu - line - 1)};
  return true;
}

// GCC: "solve._omp_fn.0", "solve$_omp_fn$0"; Cray: "solve_$ck_L54_2".
bool of_others(std::string_view symbol, Outlined& out) {
  for (const std::string_view mark : {"._omp_fn.", "$_omp_fn$", "_$ck_"}) {
    const std::size_t at = symbol.find(mark);
    if (at == std::string_view::npos || at == 0) continue;
    out = {symbol.substr(0, at), symbol.substr(at + mark.size())};
    return true;
  }
  return false;
}

}  // namespace

std::string readable_symbol(std::string_view recorded) {
  std::string name = demangle(recorded);
  if (!starts_with(name, "_Z")) return name;
  for (const std::string_view suffix : {".kd", "_param_0"})
    if (ends_with(name, suffix)) name.erase(name.size() - suffix.size());
  if (const std::size_t dot = name.find_first_of(".$ "); dot != std::string::npos) name.resize(dot);
  const std::string whole = demangle(name);
  if (!starts_with(whole, "_Z")) return whole;
  const std::string nested = starts_with(name, "_ZN") ? nested_name(name) : "";
  return nested.empty() ? std::string(recorded) : nested;
}

bool remove_numba_tags(std::string& name) {
  bool removed = false;
  for (std::size_t at = 0; (at = name.find('[', at)) != std::string::npos;) {
    const std::string_view tag = std::string_view(name).substr(at + 1);
    const bool version = tag.size() > 2 && tag[0] == 'v' && is_decimal(tag[1]) &&
                         tag.substr(0, tag.find(']')).find(',') != std::string_view::npos;
    const std::size_t end = name.find(']', at);
    if (end == std::string::npos || !(version || starts_with(tag, "abi:"))) {
      ++at;
      continue;
    }
    removed = removed || version || starts_with(tag, "abi:v");
    name.erase(at, end + 1 - at);
  }
  return removed;
}

bool read_outlined(std::string_view symbol, KernelName& out) {
  Outlined parts;
  if (!of_clang(symbol, parts) && !of_nvhpc(symbol, parts) && !of_others(symbol, parts))
    return false;
  out.outlined = function_of(parts.function);
  out.brief = fmt::format("{} {}", out.outlined, parts.place);
  out.family = ends_with(symbol.substr(0, symbol.find("__")), "_gpu") ? "openacc" : "openmp";
  return true;
}

}  // namespace purlin::analyze
