// SPDX-License-Identifier: Apache-2.0
#include "profile/stall_lines.h"

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "gpu/source_lines.h"
#include "profile/sass.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

namespace purlin::profile {
namespace {

// The functions of each module that is there.
std::map<std::uint64_t, std::vector<StallFunction*>> by_module(Profile& profile,
                                                               const std::string& spool) {
  std::map<std::uint64_t, std::vector<StallFunction*>> out;
  for (StallFunction& function : profile.stalls.functions)
    if (function.code != 0) out[function.code].push_back(&function);
  std::erase_if(out, [&](const auto& module) {
    return !file_exists(join_path(spool, module_file(module.first)));
  });
  return out;
}

bool waits_at_barriers(const SampledStalls& stalls, const StallSite& site) {
  double barrier = 0;
  for (const StallCount& count : site.counts)
    if (count.reason < stalls.reasons.size() && stalls.reasons[count.reason] == "barrier")
      barrier += count.samples;
  return barrier > site.samples() / 2;
}

}  // namespace

std::string module_file(std::uint64_t code) { return fmt::format("{:016x}.cubin", code); }

void find_lines(Profile& profile, const std::string& spool, const LineLookup& lookup,
                double limit_s) {
  const auto modules = by_module(profile, spool);
  SampledStalls& stalls = profile.stalls;
  std::unordered_map<std::string, std::uint32_t> files;
  for (std::size_t i = 0; i < stalls.files.size(); ++i)
    files.emplace(stalls.files[i], static_cast<std::uint32_t>(i));
  const std::int64_t began = system_clock().monotonic_ns();
  double without = 0;
  for (const auto& [code, functions] : modules) {
    const Result<std::string> module = read_file(join_path(spool, module_file(code)));
    if (!module.is_ok()) continue;
    for (StallFunction* function : functions)
      for (StallSite& site : function->sites) {
        if (site.line != 0 || site.offset == StallSite::kNowhere) continue;
        if (static_cast<double>(system_clock().monotonic_ns() - began) > limit_s * 1e9) {
          without += site.samples();
          continue;
        }
        const std::uint64_t at = waits_at_barriers(stalls, site)
                                     ? waiting_at(*module, function->name, site.offset)
                                     : site.offset;
        const FoundLine found = lookup(*module, function->name, at);
        if (found.line == 0) continue;
        const auto [known, added] =
            files.try_emplace(found.file, static_cast<std::uint32_t>(stalls.files.size()));
        if (added) stalls.files.push_back(found.file);
        site.file = known->second;
        site.line = found.line;
      }
  }
  if (without > 0)
    profile.coverage.notes.push_back({"stall_lines",
                                      fmt::format("source lines were looked up for {:g} s only: {} "
                                                  "with the instruction's offset instead of a line",
                                                  limit_s, counted(without, "sampled stall")),
                                      0, limit_s});
}

void find_lines(Profile& profile, const std::string& spool) {
  if (by_module(profile, spool).empty()) return;
  const Result<gpu::SourceLines> lines = gpu::SourceLines::open();
  if (!lines.is_ok()) {
    profile.coverage.notes.push_back({"stall_lines", lines.status().message(), 0, 0});
    return;
  }
  find_lines(profile, spool,
             [&](std::string_view module, const std::string& function, std::uint64_t offset) {
               const gpu::SourceLine found = lines->find(module, function, offset);
               return FoundLine{found.file, found.line};
             });
}

}  // namespace purlin::profile
