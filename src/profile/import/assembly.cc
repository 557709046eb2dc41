// SPDX-License-Identifier: Apache-2.0
#include "profile/import/assembly.h"

#include "base/text.h"
#include "profile/import/impossible_times.h"
#include "profile/ops/graph_captures.h"

#include <algorithm>
#include <numeric>

namespace purlin::profile {
namespace {

constexpr std::string_view kOtherKernels = "(other kernels)";
constexpr std::size_t kMaxRowCounters = 2'000'000;  // over all rows

template <class Value>
void append_bytes(std::string& key, const Value& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& key, std::string_view text) {
  append_bytes(key, text.size());
  key += text;
}

}  // namespace

std::uint32_t Assembly::text(std::string_view text) {
  if (text.empty()) return 0;
  std::vector<std::string>& names = profile_.timeline.names;
  const auto [at, added] =
      texts_.try_emplace(std::string(text), static_cast<std::uint32_t>(names.size()));
  if (added) names.emplace_back(text);
  return at->second;
}

std::uint32_t Assembly::process(std::uint64_t key, std::int64_t pid) {
  const auto next = static_cast<std::uint32_t>(profile_.processes.size());
  const auto [at, added] = processes_.try_emplace(key, next);
  if (added) profile_.processes.emplace_back().pid = pid;
  return at->second;
}

std::uint32_t Assembly::kernel_row(const LaunchIdentity& identity) {
  key_.clear();
  append_bytes(key_, identity.launch.grid);
  append_bytes(key_, identity.launch.block);
  append_bytes(key_, identity.launch.cluster);
  append_bytes(key_, identity.launch.dynamic_shared_bytes);
  append_bytes(key_, identity.registers);
  append_bytes(key_, identity.static_shared_bytes);
  append_bytes(key_, identity.local_bytes);
  append_bytes(key_, identity.device);
  append_text(key_, identity.name);
  append_text(key_, identity.op);
  append_text(key_, identity.shape);
  append_text(key_, identity.dtype);
  if (const auto at = rows_.find(key_); at != rows_.end()) return at->second;
  if (profile_.kernels.size() >= options_.max_kernel_rows && identity.name != kOtherKernels) {
    ++rows_left_out_;
    return other_row(identity.device);
  }
  const auto row = static_cast<std::uint32_t>(profile_.kernels.size());
  rows_.emplace(key_, row);
  KernelRow& added = profile_.kernels.emplace_back();
  added.name = identity.name;
  added.launch = identity.launch;
  added.registers = identity.registers;
  added.static_shared_bytes = identity.static_shared_bytes;
  added.local_bytes = identity.local_bytes;
  added.device = identity.device;
  added.op = identity.op;
  added.shape = identity.shape;
  added.dtype = identity.dtype;
  return row;
}

std::uint32_t Assembly::other_row(int device) {
  LaunchIdentity other;
  other.name = kOtherKernels;
  other.device = device;
  return kernel_row(other);
}

// The row that the launch is counted in: its own, while there is room for its duration there.
std::uint32_t Assembly::add_duration(std::uint32_t row, double ns, double launches) {
  if (sketches_.add(profile_.kernels[row].duration, ns, launches)) return row;
  sketches_left_out_ += launches;
  row = other_row(profile_.kernels[row].device);
  profile_.kernels[row].duration.add(ns, launches);
  return row;
}

std::uint32_t Assembly::copy_row(std::string_view kind, int device) {
  std::vector<CopyRow>& rows = profile_.copies;  // a handful
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const CopyRow& row) {
    return row.kind == kind && row.device == device;
  });
  const auto index = static_cast<std::uint32_t>(same - rows.begin());
  if (same == rows.end()) {
    rows.emplace_back().kind = kind;
    rows.back().device = device;
  }
  return index;
}

void Assembly::add(Activity activity) {
  const auto duration = static_cast<double>(activity.duration_ns);
  if (activity.kind == ActivityKind::kKernel) {
    activity.row = add_duration(activity.row, duration, 1);
    KernelRow& row = profile_.kernels[activity.row];
    const std::int64_t end = activity.start_ns + activity.duration_ns;
    const bool first = row.duration.count() <= 1;
    row.first_ns = first ? activity.start_ns : std::min(row.first_ns, activity.start_ns);
    row.last_ns = first ? end : std::max(row.last_ns, end);
    ++profile_.coverage.launches_seen;
  } else {
    CopyRow& row = profile_.copies[activity.row];
    row.duration.add(duration);
    row.bytes += static_cast<double>(activity.bytes);
  }
  if (room(0)) {
    profile_.timeline.activities.push_back(activity);
    ++events_;
  } else {
    ++profile_.timeline.left_out;
  }
}

void Assembly::add_untimed(std::uint32_t kernel_row, double duration_ns, double launches) {
  add_duration(kernel_row, duration_ns, launches);
  profile_.coverage.launches_seen += launches;
}

void Assembly::add_counter(std::uint32_t kernel_row, std::string_view name, double value,
                           double launches, std::size_t& at) {
  std::vector<Counter>& counters = profile_.kernels[kernel_row].counters;
  if (at >= counters.size() || counters[at].name != name)
    at = static_cast<std::size_t>(
        std::find_if(counters.begin(), counters.end(),
                     [&](const Counter& counter) { return counter.name == name; }) -
        counters.begin());
  if (at == counters.size()) {
    if (counters_ >= kMaxRowCounters) {
      ++counters_left_out_;
      return;
    }
    ++counters_;
    counters.push_back({std::string(name), 0, 0});
  }
  Counter& counter = counters[at++];
  counter.launches += launches;
  counter.value += (value - counter.value) * launches / counter.launches;
}

std::uint32_t Assembly::add(const Call& call, std::size_t reserve) {
  if (!room(reserve)) return ++host_left_out_, kNone;
  ++events_;
  profile_.timeline.calls.push_back(call);
  return static_cast<std::uint32_t>(profile_.timeline.calls.size() - 1);
}

std::uint32_t Assembly::add(const Op& op, std::size_t reserve) {
  if (!room(reserve)) return ++host_left_out_, kNone;
  ++events_;
  profile_.timeline.ops.push_back(op);
  return static_cast<std::uint32_t>(profile_.timeline.ops.size() - 1);
}

bool Assembly::add(const Range& range, std::size_t reserve) {
  if (!room(reserve)) return ++host_left_out_, false;
  ++events_;
  profile_.timeline.ranges.push_back(range);
  return true;
}

void Assembly::note(std::string_view cause, std::string text, double count, double seconds) {
  profile_.coverage.notes.push_back({std::string(cause), std::move(text), count, seconds});
}

void Assembly::finish() {
  Timeline& timeline = profile_.timeline;
  if (timeline.left_out > 0)
    note("timeline_full",
         fmt::format(
             "{} left off the timeline, which holds at most {} events; the totals include them",
             counted(timeline.left_out, "activity"), options_.max_timeline_events),
         static_cast<double>(timeline.left_out));
  if (host_left_out_ > 0)
    note("timeline_full",
         fmt::format("{} (calls, ops, ranges) left out: the timeline holds at most {} events",
                     counted(host_left_out_, "host event"), options_.max_timeline_events));
  if (rows_left_out_ > 0)
    note("kernel_rows_full",
         fmt::format("{} merged into '{}': a profile holds at most {} rows",
                     counted(rows_left_out_, "launch"), kOtherKernels, options_.max_kernel_rows),
         rows_left_out_);
  if (sketches_left_out_ > 0)
    note("sketches_full",
         fmt::format("{} merged into '{}': a profile cannot hold the range of all durations",
                     counted(sketches_left_out_, "launch"), kOtherKernels),
         sketches_left_out_);
  if (counters_left_out_ > 0)
    note("counters_full",
         fmt::format("{} left out: a profile holds at most {} counters over all rows",
                     counted(counters_left_out_, "counter value"), kMaxRowCounters));
  sort_timeline(timeline);
  keep_possible_times(profile_);
  if (const std::size_t captured = set_captured_apart(timeline); captured > 0)
    profile_.coverage.notes.push_back(captured_note(captured));
}

}  // namespace purlin::profile
