// SPDX-License-Identifier: Apache-2.0
#include "analyze/stalls/stalls.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

// Nsight Compute's mark for a unit that is busy, and where warps are enough to hide latency.
constexpr double kBusyIssue = 0.60, kEnoughWarps = 0.50;

struct Known {
  std::string_view name, meaning, remedy;
  std::string_view crowd;  // why more warps do not help
};

// The reasons as Nsight Compute's documentation has them ("warp scheduler states").
constexpr Known kKnown[] = {
    {"long_scoreboard", "a load from global, local or texture memory", "more_loads_in_flight", ""},
    {"short_scoreboard", "shared memory or special functions", "shared_memory_conflicts", ""},
    {"barrier", "the other warps of the block at a barrier", "fewer_barriers",
     "more warps wait at the same barriers"},
    {"membar", "a memory fence", "fewer_barriers", "more warps wait for the same fences"},
    {"wait", "a fixed latency between two instructions", "more_instruction_parallelism", ""},
    {"math_pipe_throttle", "an arithmetic pipe that is in use", "more_instruction_parallelism",
     "the arithmetic pipe is in use already: more warps queue for it"},
    {"mio_throttle", "the queue of shared memory and special functions", "shared_memory_conflicts",
     "the queue to shared memory is full: more warps make it no shorter"},
    {"lg_throttle", "the queue of global and local memory", "stream_wider",
     "the queue to memory is full: more warps make it no shorter"},
    {"tex_throttle", "the queue of the texture unit", "stream_wider",
     "the texture queue is full: more warps make it no shorter"},
    {"no_instruction", "the next instruction to be fetched", "smaller_code",
     "instructions are not fetched fast enough: more warps do not change that"},
    {"branch_resolving", "a branch target", "unify_branches", ""},
    {"imc_miss", "a constant that is not in its cache", "", ""},
    {"drain", "stores to drain before it ends", "stream_wider", ""},
    {"dispatch", "the dispatcher", "", ""},
    {"gmma", "an asynchronous product of tensor cores", "", "the tensor cores set the pace"},
    {"warpgroup_arrive", "its warp group", "", ""},
    {"sleeping", "its own sleep", "", ""},
    {"misc", "something else", "", ""},
    {"not_selected", "nothing: it could have issued, another warp did", "",
     "warps are ready already: the issue slots are full"},
    {"selected", "nothing: it issued", "", ""},
};

const Known* find(std::string_view name) {
  for (const Known& known : kKnown)
    if (known.name == name) return &known;
  return nullptr;
}

bool is_stall(std::string_view name) { return name != "selected" && name != "not_selected"; }

std::string named(std::string_view reason) {
  if (reason == "no_instructions") return "no_instruction";
  if (reason == "dispatch_stall") return "dispatch";
  return std::string(reason);
}

// "PREFIXreasonSUFFIX" -> reason, "" where it is another counter.
std::string reason_in(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!starts_with(name, prefix) || !ends_with(name, suffix) ||
      name.size() <= prefix.size() + suffix.size())
    return "";
  return named(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
}

// nvprof's: stall_memory_dependency and its kind, in percent.
std::string nvprof_reason(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"stall_memory_dependency", "long_scoreboard"},
      {"stall_sync", "barrier"},
      {"stall_exec_dependency", "wait"},
      {"stall_inst_fetch", "no_instruction"},
      {"stall_pipe_busy", "math_pipe_throttle"},
      {"stall_memory_throttle", "lg_throttle"},
      {"stall_constant_memory_dependency", "imc_miss"},
      {"stall_texture", "tex_throttle"},
      {"stall_not_selected", "not_selected"},
      {"stall_other", "misc"},
      {"stall_sleeping", "sleeping"}};
  for (const auto& [from, to] : kNames)
    if (name == from) return std::string(to);
  return "";
}

StallTable table_of(const std::map<std::string, double>& reasons) {
  StallTable out;
  double stalled = 0;
  for (const auto& [name, samples] : reasons) {
    out.samples += samples;
    if (is_stall(name)) stalled += samples;
  }
  for (const auto& [name, samples] : reasons) {
    if (samples <= 0) continue;
    const Known* known = find(name);
    StallReason reason;
    reason.name = name;
    reason.samples = samples;
    reason.share = samples / out.samples;
    if (is_stall(name)) reason.stalled = samples / stalled;
    if (known != nullptr) {
      reason.meaning = known->meaning;
      reason.remedy = known->remedy;
    }
    out.reasons.push_back(std::move(reason));
  }
  std::stable_sort(
      out.reasons.begin(), out.reasons.end(),
      [](const StallReason& a, const StallReason& b) { return a.samples > b.samples; });
  return out;
}

}  // namespace

std::vector<const StallReason*> StallTable::findings() const {
  std::vector<const StallReason*> out;
  for (const StallReason& reason : reasons)
    if (reason.stalled >= kStallOfStalled && reason.share >= kStallOfAll) out.push_back(&reason);
  return out;
}

StallTable read_stalls(const std::vector<Counter>& counters) {
  // One source: samples where there are any, else warp states per issue, else nvprof's percents.
  std::map<std::string, double> sampled, counted, percents;
  for (const Counter& counter : counters) {
    if (!(counter.value >= 0)) continue;
    if (ends_with(counter.name, "_not_issued")) continue;
    if (auto reason = reason_in(counter.name, "smsp__pcsamp_warps_issue_stalled_", "");
        !reason.empty()) {
      sampled[reason] += counter.value;
    } else if (reason = reason_in(counter.name, "smsp__average_warps_issue_stalled_",
                                  "_per_issue_active.ratio");
               !reason.empty()) {
      counted[reason] += counter.value;
    } else if (reason =
                   reason_in(counter.name, "smsp__average_warp_latency_issue_stalled_", ".ratio");
               !reason.empty()) {
      counted[reason] += counter.value;
    } else if (reason = nvprof_reason(counter.name); !reason.empty()) {
      percents[reason] += counter.value;
    }
  }
  const auto any = [](const std::map<std::string, double>& reasons) {
    return std::any_of(reasons.begin(), reasons.end(),
                       [](const auto& reason) { return reason.second > 0; });
  };
  StallTable out = table_of(any(sampled) ? sampled : any(counted) ? counted : percents);
  out.sampled = any(sampled);
  return out;
}

StallTable read_stalls(const std::vector<Counter>& counters, const StallSites& sampled) {
  if (sampled.empty()) return read_stalls(counters);
  std::map<std::string, double> reasons;
  for (const auto& [name, samples] : sampled.reasons) reasons[named(name)] += samples;
  StallTable out = table_of(reasons);
  out.sampled = true;
  return out;
}

std::string why_occupancy_does_not_help(const StallTable& stalls, const CounterFigures& figures,
                                        double occupancy) {
  const double dram = std::max(figures.dram_busy.value_or(0), figures.memory_busy.value_or(0));
  for (const StallReason& reason : stalls.reasons) {
    const bool ready = reason.name == "not_selected" && reason.share >= kStallOfAll;
    if (!ready && (reason.stalled < kStallOfStalled || reason.share < kStallOfAll)) continue;
    const Known* known = find(reason.name);
    if (reason.name == "long_scoreboard" && dram >= kBusyIssue)
      return fmt::format(
          "warps wait for memory, and the memory is {:.0f}% busy: more warps would "
          "queue for it",
          100 * dram);
    if (known != nullptr && !known->crowd.empty()) return std::string(known->crowd);
  }
  if (occupancy >= kEnoughWarps && !stalls.empty() && dram < kBusyIssue)
    return fmt::format(
        "{:.0f}% of the warp slots are in use, and the warps still wait: each needs more "
        "independent work",
        100 * occupancy);
  return "";
}

}  // namespace purlin::analyze
