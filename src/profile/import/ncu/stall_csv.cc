// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu/stall_csv.h"

#include "base/csv.h"
#include "base/text.h"
#include "profile/import/assembly.h"
#include "profile/import/csv.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace purlin::profile {
namespace {

constexpr std::string_view kCounter = "smsp__pcsamp_warps_issue_stalled_";
constexpr std::size_t kMaxReasons = 64;

// Lower case, one '_' for every run of other characters.
std::string plain_name(std::string_view text) {
  std::string out;
  for (const char c : trim(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      out += static_cast<char>(std::tolower(byte));
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

struct StallColumns {
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::size_t kernel = kAbsent, reason = kAbsent, samples = kAbsent;
  template <class Cells>
  explicit StallColumns(const Cells& cells) {
    constexpr std::pair<std::string_view, std::size_t StallColumns::*> kNames[] = {
        {"kernel", &StallColumns::kernel},           {"kernel_name", &StallColumns::kernel},
        {"function", &StallColumns::kernel},         {"function_name", &StallColumns::kernel},
        {"functionname", &StallColumns::kernel},     {"stall", &StallColumns::reason},
        {"stall_reason", &StallColumns::reason},     {"stallreason", &StallColumns::reason},
        {"stall_reasons", &StallColumns::reason},    {"reason", &StallColumns::reason},
        {"samples", &StallColumns::samples},         {"sample_count", &StallColumns::samples},
        {"samplecount", &StallColumns::samples},     {"count", &StallColumns::samples},
        {"stallreasoncount", &StallColumns::samples}};
    std::size_t i = 0;
    for (const auto& cell : cells) {
      const std::string text = plain_name(cell);
      for (const auto& [name, member] : kNames)
        if (text == name && this->*member == kAbsent) this->*member = i;
      ++i;
    }
  }
  bool complete() const { return kernel != kAbsent && reason != kAbsent && samples != kAbsent; }
};

}  // namespace

bool looks_like_stall_csv(std::string_view prefix) {
  if (starts_with(prefix, "\xEF\xBB\xBF")) prefix.remove_prefix(3);
  const std::size_t end = prefix.find('\n');
  if (end == std::string_view::npos || end > 4096) return false;
  return StallColumns(csv_cells(prefix.substr(0, end))).complete();
}

std::string stall_reason(std::string_view text) {
  // What older tools and CUPTI's enumeration call them.
  constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
      {"memory_dependency", "long_scoreboard"},
      {"memory_dep", "long_scoreboard"},
      {"sync", "barrier"},
      {"synchronization", "barrier"},
      {"exec_dependency", "wait"},
      {"execution_dependency", "wait"},
      {"inst_fetch", "no_instruction"},
      {"instruction_fetch", "no_instruction"},
      {"no_instructions", "no_instruction"},
      {"pipe_busy", "math_pipe_throttle"},
      {"memory_throttle", "lg_throttle"},
      {"constant_memory_dependency", "imc_miss"},
      {"none", "selected"},
      {"dispatch_stall", "dispatch"},
      {"texture", "tex_throttle"}};
  std::string reason = plain_name(text);
  if (ends_with(reason, "_not_issued")) return "";
  for (const std::string_view prefix :
       {"smsp_", "pcsamp_", "warps_issue_", "warp_issue_", "issue_", "stalled_", "stall_",
        "cupti_pc_sampling_stall_", "cupti_activity_pc_sampling_stall_"})
    if (starts_with(reason, prefix)) reason.erase(0, prefix.size());
  for (const auto& [from, to] : kAliases)
    if (reason == from) return std::string(to);
  return reason;
}

Result<Profile> import_stall_csv(Input input, const std::string& name,
                                 const ImportOptions& options) {
  Profile profile;
  profile.source = "stalls";
  Assembly assembly(profile, options);
  CsvReader reader(std::move(input));
  PURLIN_ASSIGN(const bool any, reader.next());
  if (!any) return error(Code::kInvalid, "{}: the file is empty", name);
  const StallColumns columns(reader.fields());
  if (!columns.complete())
    return error(Code::kInvalid,
                 "{}: no header with a column for the kernel, the stall reason and the samples",
                 name);
  std::map<std::string, std::map<std::string, double>> kernels;
  double bad = 0, beyond = 0;
  for (;;) {
    const auto more = reader.next();
    if (!more.is_ok()) {
      if (kernels.empty()) return in_file(more.status(), name);
      profile.partial = true;
      assembly.note("damaged", fmt::format("{}; read up to there", more.status().message()));
      break;
    }
    if (!*more) break;
    const auto samples = parse_double(trim(reader.field(columns.samples)));
    const std::string_view kernel = trim(reader.field(columns.kernel));
    if (!samples || !(*samples >= 0) || *samples > 1e18 || kernel.empty()) {
      ++bad;
      continue;
    }
    const std::string reason = stall_reason(reader.field(columns.reason));
    if (reason.empty()) continue;
    if (kernels.size() >= options.max_kernel_rows && !kernels.contains(std::string(kernel))) {
      ++beyond;
      continue;
    }
    auto& reasons = kernels[std::string(kernel)];
    if (reasons.size() >= kMaxReasons && !reasons.contains(reason)) {
      ++beyond;
      continue;
    }
    reasons[reason] += *samples;
  }
  for (const auto& [kernel, reasons] : kernels) {
    LaunchIdentity identity;
    identity.name = kernel;
    const std::uint32_t row = assembly.kernel_row(identity);
    std::size_t at = 0;
    for (const auto& [reason, samples] : reasons)
      assembly.add_counter(row, std::string(kCounter) + reason, samples, 1, at);
  }
  if (kernels.empty()) return error(Code::kInvalid, "{}: a header, but no samples", name);
  if (bad > 0) assembly.note("damaged_rows", "rows without a kernel or a number of samples", bad);
  if (beyond > 0) assembly.note("too_many", "rows beyond the bounds were left out", beyond);
  assembly.note("samples_only",
                "stall samples alone: no durations, no launches; give the profile they belong to "
                "with --stalls");
  assembly.finish();
  return profile;
}

Result<Profile> import_stall_csv(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(Input input, Input::open(path));
  return import_stall_csv(std::move(input), path, options);
}

}  // namespace purlin::profile
