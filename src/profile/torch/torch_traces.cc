// SPDX-License-Identifier: Apache-2.0
#include "profile/torch/torch_traces.h"

#include "base/files.h"
#include "base/text.h"
#include "profile/import/flow/flow.h"
#include "profile/import/import.h"
#include "profile/torch/note.h"
#include "profile/torch/trace_merge.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxTraceEvents = 6'000'000;

void torch_note(Profile& profile, const char* cause, std::string text, double count = 0,
                double seconds = 0) {
  profile.coverage.notes.push_back({cause, std::move(text), count, seconds});
}

std::string percent_of(double part, double whole) {
  return fmt::format("{:.0f} %", whole > 0 ? 100 * part / whole : 0.0);
}

// What the trace itself lacks.
void take_notes(Profile& profile, const Profile& trace) {
  constexpr std::array<std::string_view, 8> kKept = {
      "damaged",   "no_device_work",           "no_calls",      "no_correlation",
      "no_shapes", "graph_kernels_without_op", "timeline_full", "data_flow_unknown"};
  for (const CoverageNote& note : trace.coverage.notes)
    if (std::find(kKept.begin(), kKept.end(), note.cause) != kKept.end())
      torch_note(profile, note.cause.c_str(), "trace of PyTorch: " + note.text, note.count,
                 note.seconds);
}

// The profiler slows a step down. Its own time is known from after the trace, when nothing records,
// else from before it, when Purlin's capture may have recorded.
void note_step_time(Profile& profile, const TorchNote& note) {
  if (note.steps <= 0 || note.usual_step_ns <= 0) return;
  profile.coverage.step_ns = note.step_after_ns > 0 ? note.step_after_ns : note.usual_step_ns;
  const double recorded =
      static_cast<double>(note.end_ns - note.start_ns) / static_cast<double>(note.steps);
  const std::string after =
      note.step_after_ns > 0 ? fmt::format(
                                   " and {} after it ({}, by which the report's step is "
                                   "corrected)",
                                   format_ns(note.step_after_ns), counted(note.steps_after, "step"))
                             : std::string();
  torch_note(profile, "torch_step",
             fmt::format("a step took {} in the trace, {} before it{}: PyTorch's profiler slows "
                         "the host down",
                         format_ns(recorded), format_ns(note.usual_step_ns), after),
             static_cast<double>(note.steps));
}

// Without a trace the optimizer's steps still show how long one takes. Of several ranks the
// slowest.
void take_steps_without_trace(Profile& profile, const std::vector<TorchNote>& notes) {
  constexpr std::int64_t kFewest = 30;
  for (const TorchNote& note : notes)
    if (note.optimizer_steps >= kFewest)
      profile.coverage.step_ns = std::max(profile.coverage.step_ns, note.usual_step_ns);
}

// That the trace itself shut CUPTI down is not the doing of another client.
void note_end(Profile& profile, const TorchNote& note) {
  for (CoverageNote& other : profile.coverage.notes)
    if (!note.keeps_cupti && other.cause == "cupti_finalized")
      other = {"torch_end",
               "Purlin's recording ended with the trace of PyTorch. CUPTI was shut down after it, "
               "as it slows launches down while it is there. --windows or --torch off record to "
               "the end",
               other.count, other.seconds};
}

void add_trace(Profile& profile, const TorchNote& note, const Profile& trace) {
  const TraceMerge merge = merge_trace(profile, trace, note.pid);
  profile.coverage.overhead_ns += note.cost_ns;
  const std::string length = format_ns(static_cast<double>(note.end_ns - note.start_ns));
  const std::string seen =
      note.mode == "steps" ? fmt::format("{} ({})", counted(note.steps, "step"), length) : length;
  const std::string cost =
      note.mode == "daemon"
          ? "which took an unknown part of the program's time"
          : fmt::format("for {} more of the program's time", format_ns(note.cost_ns));
  torch_note(profile, "torch_trace",
             fmt::format("PyTorch's profiler recorded {} of process {}, {}. Ops, shapes, calls and "
                         "the timeline are from this trace, totals from Purlin's own recording; {} "
                         "of the kernels' time has an op",
                         seen, note.pid, cost, percent_of(merge.with_op_ns, merge.total_ns)),
             merge.launches, note.cost_ns * 1e-9);
  note_step_time(profile, note);
  note_end(profile, note);
  if (merge.split_launches > 0)
    torch_note(profile, "torch_split",
               "launches of kernels that several ops share were divided in the proportion of the "
               "trace",
               merge.split_launches);
  if (merge.added_launches > 0)
    torch_note(profile, "torch_trace_only",
               fmt::format("launches of {} are known from the trace only, and counted from it",
                           counted(merge.added_kernels, "kernel")),
               merge.added_launches);
  take_notes(profile, trace);
}

// Of the steps that the execution trace recorded, for those of the trace.
void take_data_flow(Profile& trace, Profile& profile, const std::string& spool,
                    const TorchNote& note) {
  if (note.flow.empty()) {
    if (!note.no_flow.empty())
      torch_note(profile, "data_flow_unknown",
                 "the data flow of a step was not recorded: " + note.no_flow);
    return;
  }
  Result<DataFlow> flow = read_data_flow(join_path(spool, note.flow));
  if (flow.is_ok()) {
    trace.data_flow = std::move(flow).value();
    judge_by_timeline(trace);
  } else {
    torch_note(profile, "data_flow_unknown",
               "the data flow of a step is not known: " + flow.status().message());
  }
}

// PyTorch to 2.11 gives a trace up where two of CUPTI's records have one id (pytorch#184792).
std::string hint_for_fault(const std::string& detail) {
  const bool known = detail.find("inserted.second INTERNAL ASSERT FAILED") != std::string::npos;
  return known ? "; this fault of PyTorch comes in few traces (pytorch#184792): run again" : "";
}

// Causes in the order of what they tell. A process that did not use CUDA has nothing to tell.
std::string why_none(const TorchNote& note) {
  if (note.reason == "fault")
    return "PyTorch's profiler failed: " + note.detail + hint_for_fault(note.detail);
  if (note.reason == "own_profiler") return "the program used its own profiler, which has priority";
  if (note.reason == "too_large") return "the trace was too large: " + note.detail;
  if (note.reason == "unfinished") return "the program ended before its trace was written";
  if (note.reason == "no_kernels") return "PyTorch's profiler saw no kernels";
  if (note.reason == "no_all_threads")
    return fmt::format(
        "the program makes no optimizer steps, and PyTorch {} cannot record all threads",
        note.torch);
  if (note.reason == "ended") return "the program ended during the warm-up of the trace";
  if (note.reason == "not_steady")
    return fmt::format("the program ended before its steps were steady, after {}",
                       counted(note.optimizer_steps, "optimizer step"));
  if (note.reason == "other_rank") return "it is not the rank that is traced (--torch-rank)";
  return "";
}

bool used_cuda(const Profile& profile, const TorchNote& note) {
  return note.cuda || std::any_of(profile.processes.begin(), profile.processes.end(),
                                  [&](const ProcessInfo& process) {
                                    return process.pid == note.pid && process.layer == "cuda";
                                  });
}

void note_no_trace(Profile& profile, const std::vector<TorchNote>& notes) {
  for (const TorchNote& note : notes) {
    const std::string why = why_none(note);
    // A later one of the same process says more.
    if (std::any_of(notes.begin(), notes.end(), [&](const TorchNote& other) {
          return other.pid == note.pid && other.number > note.number;
        }))
      continue;
    const bool early = note.reason == "not_steady" || note.reason == "other_rank";
    if (why.empty() || (early && !used_cuda(profile, note))) continue;
    torch_note(profile, "torch_no_trace",
               fmt::format("launches have no ops of PyTorch: process {}: {}", note.pid, why));
    return;
  }
}

bool is_python(const std::string& word) {
  const std::string name = base_name(word);
  return starts_with(name, "python") || starts_with(name, "pypy");
}

// "python3 -Iu": an option of the interpreter by which it does not load sitecustomize.
std::string isolating_option(const std::vector<std::string>& command) {
  auto word = std::find_if(command.begin(), command.end(), is_python);
  if (word == command.end()) return "";
  constexpr std::string_view kWithValue = "cmWX";
  for (++word; word != command.end() && word->size() > 1 && (*word)[0] == '-'; ++word) {
    if ((*word)[1] == '-') continue;
    const std::string flags = word->substr(1, word->find_first_of(kWithValue) - 1);
    if (flags.find_first_of("IES") != std::string::npos) return *word;
    const char last = word->back();
    if (word->find_first_of("cm", 1) != std::string::npos) return "";
    if ((last == 'W' || last == 'X') && word + 1 != command.end()) ++word;
  }
  return "";
}

bool runs_torch(const Profile& profile) {
  return std::any_of(profile.kernels.begin(), profile.kernels.end(), [](const KernelRow& row) {
    return row.name.find("at6native") != std::string::npos ||
           row.name.find("at::native") != std::string::npos;
  });
}

void note_no_hook(Profile& profile, const std::vector<std::string>& command) {
  std::string option = isolating_option(command);
  for (const ProcessInfo& process : profile.processes)
    if (option.empty()) option = isolating_option(split(process.command, ' '));
  if (!option.empty()) {
    torch_note(profile, "torch_no_hook",
               fmt::format("Python was started with {}, which leaves Purlin's hook for PyTorch "
                           "out: launches have no ops of PyTorch",
                           option));
  } else if (runs_torch(profile)) {
    torch_note(profile, "torch_no_hook",
               "PyTorch ran without Purlin's hook, so launches have no ops: PYTHONPATH was "
               "replaced, or the program embeds Python");
  }
}

// A trace has the host's calls and ops as well. Two parts of a run in one timeline would have a gap
// between them.
void drop_timeline_windows(Profile& profile) {
  const bool requested =
      std::any_of(profile.processes.begin(), profile.processes.end(),
                  [](const ProcessInfo& process) { return process.timeline_requested; });
  if (!requested) profile.timeline = Timeline();
}

}  // namespace

std::map<std::string, std::string> torch_variables(const TorchOptions& options,
                                                   const std::string& folder) {
  std::map<std::string, std::string> result = {{"PURLIN_TORCH", "off"}, {"PURLIN_JAX", "off"}};
  const bool traces = options.on && !options.daemon;
  if (folder.empty() || (!traces && !options.jax)) return result;
  if (traces) result["PURLIN_TORCH"] = options.on_request ? "idle" : "hook";
  if (traces) result["PURLIN_TORCH_RANK"] = std::to_string(options.rank);
  if (options.jax) result["PURLIN_JAX"] = "on";
  const std::string before = environment_variable("PYTHONPATH");
  const std::vector<std::string> named = split(before, ':');
  const bool there = !named.empty() && named.front() == folder;  // a capture in a capture
  result["PYTHONPATH"] = there ? before : before.empty() ? folder : folder + ":" + before;
  return result;
}

void add_torch_traces(Profile& profile, const std::string& spool,
                      const std::vector<std::string>& command) {
  std::vector<TorchNote> notes = read_torch_notes(spool);
  bool traced = false;
  for (TorchNote& note : notes) {
    if (note.trace.empty()) {  // a dropped trace took time, too
      profile.coverage.overhead_ns += note.cost_ns;
      continue;
    }
    ImportOptions options;
    options.max_timeline_events = kMaxTraceEvents;
    Result<Profile> trace = import_chrome_trace(join_path(spool, note.trace), options);
    if (trace.is_ok()) {
      if (!traced) drop_timeline_windows(profile);
      if (note.end_ns <= note.start_ns)  // the daemon knows what was recorded from the trace only
        std::tie(note.start_ns, note.end_ns) =
            std::tie(trace->timeline.begin_ns, trace->timeline.end_ns);
      take_data_flow(*trace, profile, spool, note);
      add_trace(profile, note, *trace);
    } else {
      torch_note(profile, "torch_trace_unreadable",
                 "the trace of PyTorch cannot be read: " + trace.status().message());
    }
    traced = true;
  }
  if (traced) return;
  take_steps_without_trace(profile, notes);
  if (notes.empty()) {
    note_no_hook(profile, command);
  } else {
    note_no_trace(profile, notes);
  }
}

}  // namespace purlin::profile
