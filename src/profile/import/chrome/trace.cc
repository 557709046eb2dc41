// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/trace.h"

#include "base/json/json.h"
#include "base/text.h"
#include "profile/import/chrome/collector.h"
#include "profile/import/chrome/environment.h"
#include "profile/import/chrome/link.h"
#include "profile/import/chrome/reader.h"
#include "profile/import/impossible_times.h"
#include "profile/ops/graph_captures.h"

#include <fmt/core.h>

#include <algorithm>

namespace purlin::profile {
namespace {

void note(Profile& profile, const char* cause, std::string text, std::uint64_t count = 0) {
  profile.coverage.notes.push_back({cause, std::move(text), static_cast<double>(count), 0});
}

// What the text of the trace made impossible to read.
void note_text(const TraceReader& reader, const Records& records, Profile& profile) {
  if (!reader.damage().is_ok()) {
    profile.partial = true;
    const std::string_view missing = reader.reached_end()
                                         ? "the events there are missing, later events were read"
                                         : "later events are missing";
    const std::string more =
        reader.damaged_places() > 1
            ? fmt::format(" (the first of {} damaged places)", reader.damaged_places())
            : "";
    note(profile, "damaged",
         fmt::format("{}{}; {} read, {}", reader.damage().message(), more,
                     counted(reader.events(), "event"), missing));
  }
  if (reader.oversized() > 0)
    note(profile, "oversized_events",
         fmt::format("events of more than {} MiB were skipped", TraceReader::kMaxEventBytes >> 20),
         reader.oversized());
  if (!reader.unreadable_members().empty())
    note(profile, "members_unreadable",
         fmt::format("the metadata of the trace under {} is not valid JSON",
                     json_quote(reader.unreadable_members())));
  if (records.bad_times > 0)
    note(profile, "bad_times", "events without a time, or with an impossible one, were left out",
         records.bad_times);
  if (records.negative_durations > 0)
    note(profile, "negative_durations", "events that end before they begin were left out",
         records.negative_durations);
  if (records.untimed_work > 0)
    note(profile, "bad_times",
         "kernels and memcpys have the time 0: the driver gave none. They are in no sum",
         records.untimed_work);
  if (records.far_times > 0)
    note(profile, "bad_times",
         "events lie more than a day away from the recording: their times are of no use, and they "
         "were left out",
         records.far_times);
  if (records.python_frames > 0)
    note(profile, "python_frames", "Python stack frames are in the trace and were not imported",
         records.python_frames);
  if (records.names.full())
    note(profile, "names_full", "the trace exceeds the limit of names; the rest share one name");
}

// What the trace does not hold, in the order of how much that takes away.
void note_links(const LinkStats& stats, const Records& facts, bool has_calls, bool has_ops,
                Profile& profile) {
  const bool kineto = profile.source == "kineto";
  if (stats.counters_only)
    note(profile, "durations_unknown",
         "kernels were replayed to read counters: the trace holds no durations for them",
         stats.counters);
  else if (stats.kernels == 0)
    note(profile, "no_device_work", "the trace holds no kernels: was the GPU recorded?");
  if (stats.counters_unplaced > 0)
    note(profile, "counters_unplaced", "launches have counters that could be of several kernels",
         stats.counters_unplaced);
  if (stats.kernels > 0 && !has_calls)
    note(profile, "no_calls",
         "no calls of the runtime were recorded: launches, their latency and ops are unknown",
         stats.kernels);
  else if (stats.kernels_without_call > 0)
    note(
        profile, "no_correlation",
        "kernels have no launching call in the trace (launched before the recording, or its record "
        "was lost)",
        stats.kernels_without_call);
  if (stats.graph_kernels > 0)
    note(profile, "graph_kernels_without_op",
         "kernels ran inside CUDA graphs: the trace does not record the op", stats.graph_kernels);
  if (kineto && stats.kernels > stats.graph_kernels && !has_ops)
    note(profile, "no_ops", "no ops were recorded: profile with ProfilerActivity.CPU as well");
  else if (kineto && has_ops && !facts.ops_with_dims)
    note(profile, "no_shapes", "inputs' shapes were not recorded: profile with record_shapes=True");
  if (stats.launches_captured > 0)
    profile.coverage.notes.push_back(captured_note(stats.launches_captured));
  if (stats.launches_without_work > 0 && !stats.counters_only)
    note(profile, "launches_without_kernel",
         fmt::format("launching calls without a kernel in the trace, of {}",
                     counted(stats.launches, "call")),
         stats.launches_without_work);
  const std::uint64_t other = facts.left_out_copies + facts.left_out_other;
  if (facts.left_out_kernels + other > 0)
    note(profile, "timeline_full",
         fmt::format("{} and {} beyond the limit of the timeline; the kernels are counted, without "
                     "op and shape",
                     counted(facts.left_out_kernels, "kernel"), counted(other, "other event")),
         facts.left_out_kernels + other);
  if (stats.kernels_in_other_row > 0)
    note(profile, "kernel_rows_full",
         "launches of kernels beyond the limit are in \"(other kernels)\"",
         stats.kernels_in_other_row);
  if (facts.not_understood > 0)
    note(profile, "not_understood", "events of a kind unknown to Purlin were left out",
         facts.not_understood);
  if (facts.copies_without_bytes > 0)
    note(profile, "copies_without_bytes", "memcpys without a number of bytes",
         facts.copies_without_bytes);
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::optional<Format> looks_like_chrome_trace(std::string_view prefix) {
  if (prefix.substr(0, 3) == "\xEF\xBB\xBF") prefix.remove_prefix(3);
  const std::size_t first = prefix.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (prefix[first] != '{' && prefix[first] != '['))
    return std::nullopt;
  for (const std::string_view mark :
       {"\"deviceProperties\"", "\"baseTimeNanoseconds\"", "\"cpu_op\"", "\"Operator\"",
        "\"cuda_runtime\"", "\"PyTorch Profiler", "\"record_shapes\"", "\"External id\"",
        "\"external id\""})
    if (has(prefix, mark)) return Format::kKineto;
  for (const std::string_view mark : {"\"/device:", "\"/host:", "\"hlo_op\"", "\"highres-ticks\""})
    if (has(prefix, mark)) return Format::kXla;
  if (has(prefix, "\"traceEvents\"") || has(prefix, "\"ph\"") || has(prefix, "\"displayTimeUnit\""))
    return Format::kChrome;
  return std::nullopt;
}

Result<Profile> import_chrome_trace(Input input, const std::string& name,
                                    const ImportOptions& options) {
  constexpr std::uint64_t kEventsPerReport = 1 << 16;
  TraceReader reader(std::move(input));
  TraceCollector collector(options);
  ChromeEvent event;
  for (std::uint64_t count = 1; reader.next(event, collector.wants_flow()); ++count) {
    collector.add(event);
    if (options.progress && count % kEventsPerReport == 0)
      options.progress(reader.input().file_offset(), reader.input().file_size());
  }
  if (!reader.damage().is_ok() && reader.events() == 0)
    return reader.damage().with_context(name + ": no event could be read");
  if (!reader.found_events())
    return error(Code::kInvalid, "{}: JSON, but no Chrome trace: it has no list \"traceEvents\"",
                 name);
  Records records = collector.finish();
  const bool kineto = records.has_kineto || reader.members().find("deviceProperties") != nullptr;
  const bool has_work =
      !records.kernels.empty() || !records.copies.empty() || !records.counters.empty();
  if (!kineto && !records.has_xla && !has_work)
    return error(Code::kInvalid,
                 "{}: a Chrome trace of {} events, none of which is work of a GPU that Purlin "
                 "knows (traces of PyTorch, JAX and TensorFlow are)",
                 name, reader.events());

  Profile profile;
  profile.source = records.has_xla ? "xla" : kineto ? "kineto" : "chrome";
  LinkOptions link;
  link.max_sketch_buckets = options.max_sketch_buckets;
  link.max_kernel_rows = std::max<std::size_t>(options.max_kernel_rows, 2);
  link.base_ns = base_time_ns(reader.members());
  link.device = read_environment(reader.members(), records, profile);
  note_text(reader, records, profile);
  note_warnings(reader.members(), profile);

  const std::int64_t begin = std::min(records.first_ns, records.window_begin_ns),
                     end = std::max(records.last_ns, records.window_end_ns);
  if (begin <= end) {
    profile.wall_ns = end - begin;
    set_times(begin + link.base_ns, end + link.base_ns, profile, records);
  }
  const bool has_calls = !records.calls.empty(), has_ops = !records.ops.empty();
  const LinkStats stats = link_trace(records, link, profile);
  Coverage& coverage = profile.coverage;
  coverage.launches_seen = static_cast<double>(stats.kernels);
  // Streams of CUDA and HIP are in order. Lanes of other tools may hold anything.
  if (kineto && records.other_backend.empty()) keep_possible_times(profile);
  note_links(stats, records, has_calls, has_ops, profile);
  if (stats.counters_only) {
    coverage.launches_counted = static_cast<double>(stats.counters);
  } else if (has_calls) {
    coverage.launches_lost = static_cast<double>(stats.launches_without_work);
    coverage.launches_counted = coverage.launches_seen + coverage.launches_lost;
  }
  if (profile.source == "xla") {
    constexpr std::uint64_t kExporterKeeps = 1'000'000;
    if (reader.events() >= kExporterKeeps)
      note(profile, "exporter_limit",
           "the exporter of XLA traces keeps a million events: this one may have been cut there");
  }
  return profile;
}

Result<Profile> import_chrome_trace(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(Input input, Input::open(path));
  return import_chrome_trace(std::move(input), path, options);
}

}  // namespace purlin::profile
