// SPDX-License-Identifier: Apache-2.0
#include "cli/machine_limits.h"

#include "base/files.h"
#include "base/text.h"

#include <fmt/format.h>

#include <sys/resource.h>

namespace purlin::cli {
namespace {

// Less is not enough to compile and measure kernels in worker processes.
constexpr std::uint64_t kLeastMemory = std::uint64_t{1} << 30, kLeastProcesses = 100,
                        kLeastFiles = 256;
constexpr double kLeastCores = 1;
constexpr std::size_t kMaxLimitFile = 4096;

// The words of a small file.
std::vector<std::string> words_of(const std::string& root, const char* file) {
  std::string text = read_file(join_path(root, file), kMaxLimitFile).value_or("");
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

// "max" and the largest numbers are no limit.
std::optional<std::uint64_t> limit_in(const std::string& root, const char* version2,
                                      const char* version1) {
  for (const char* file : {version2, version1})
    if (const std::vector<std::string> words = words_of(root, file); !words.empty()) {
      const std::optional<std::int64_t> value = parse_int(words.front());
      if (!value || *value < 0 || *value > (std::int64_t{1} << 60)) return std::nullopt;
      return static_cast<std::uint64_t>(*value);
    }
  return std::nullopt;
}

std::optional<double> cores_in(const std::string& root) {
  std::vector<std::string> words = words_of(root, "sys/fs/cgroup/cpu.max");
  if (words.size() < 2)
    words = {join(words_of(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us"), ""),
             join(words_of(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us"), "")};
  const std::optional<std::int64_t> quota = parse_int(words[0]), period = parse_int(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

MachineLimits read_limits(const std::string& root) {
  MachineLimits limits;
  limits.container = file_exists(join_path(root, ".dockerenv")) ||
                     file_exists(join_path(root, "run/.containerenv")) ||
                     !environment_variable("KUBERNETES_SERVICE_HOST").empty();
  limits.memory_bytes =
      limit_in(root, "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes");
  limits.processes = limit_in(root, "sys/fs/cgroup/pids.max", "sys/fs/cgroup/pids/pids.max");
  limits.cores = cores_in(root);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max != RLIM_INFINITY)
    limits.open_files = files.rlim_max;
  return limits;
}

Capability examine_limits(const MachineLimits& limits) {
  Capability result{"limits", "Limits", CapabilityState::kOk, "", ""};
  std::vector<std::string> seen, too_few;
  const auto note = [&](bool enough, std::string text, const char* remedy) {
    seen.push_back(std::move(text));
    if (!enough) too_few.emplace_back(remedy);
  };
  if (limits.memory_bytes)
    note(*limits.memory_bytes >= kLeastMemory,
         format_bytes(static_cast<double>(*limits.memory_bytes)) + " of memory", "--memory 4g");
  if (limits.cores)
    note(*limits.cores >= kLeastCores, fmt::format("{:.2g} cores", *limits.cores), "--cpus 2");
  if (limits.processes)
    note(*limits.processes >= kLeastProcesses, fmt::format("{} processes", *limits.processes),
         "--pids-limit 500");
  if (limits.open_files)
    note(*limits.open_files >= kLeastFiles, fmt::format("{} open files", *limits.open_files),
         "--ulimit nofile=4096");
  result.evidence = fmt::format("{}{}", limits.container ? "container: " : "",
                                seen.empty() ? "none" : join(seen, ", "));
  if (too_few.empty()) return result;
  result.state = CapabilityState::kDegraded;
  result.fix = fmt::format("give this {} more: {}", limits.container ? "container" : "service",
                           join(too_few, " "));
  return result;
}

}  // namespace purlin::cli
