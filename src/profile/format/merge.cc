// SPDX-License-Identifier: Apache-2.0
#include "profile/format/merge.h"

#include "base/files.h"
#include "base/text.h"
#include "profile/format/file.h"
#include "profile/format/timeline_join.h"
#include "profile/ops/op_names.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin::profile {
namespace {

// What decides whether two rows are one, apart from device and build.
std::uint64_t hash_of(const KernelRow& row, int device, const std::string& build) {
  const LaunchShape& launch = row.launch;
  const std::uint32_t numbers[] = {launch.grid[0],
                                   launch.grid[1],
                                   launch.grid[2],
                                   launch.block[0],
                                   launch.block[1],
                                   launch.block[2],
                                   launch.cluster[0],
                                   launch.cluster[1],
                                   launch.cluster[2],
                                   launch.dynamic_shared_bytes,
                                   row.registers,
                                   row.static_shared_bytes,
                                   row.local_bytes,
                                   static_cast<std::uint32_t>(device),
                                   static_cast<std::uint32_t>(row.origin)};
  std::uint64_t hash = XXH3_64bits(numbers, sizeof numbers);
  for (const std::string* text : {&row.name, &row.op, &row.shape, &row.dtype, &build})
    hash = XXH3_64bits_withSeed(text->data(), text->size(), hash);
  return hash;
}

bool same(const KernelRow& known, const KernelRow& row, int device, const std::string& build) {
  return known.device == device && known.origin == row.origin && known.launch == row.launch &&
         known.registers == row.registers && known.static_shared_bytes == row.static_shared_bytes &&
         known.local_bytes == row.local_bytes && known.name == row.name && known.op == row.op &&
         known.shape == row.shape && known.dtype == row.dtype && known.build == build;
}

std::string key_of(const DeviceInfo& device) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", device.id, device.name, device.uuid, device.driver,
                     device.arch);
}

// The rank of a part of a distributed run, -1 where it has none or several.
int rank_of(const Profile& part) {
  int rank = -1;
  for (const ProcessInfo& process : part.processes) {
    if (process.rank < 0 || (rank >= 0 && process.rank != rank)) return -1;
    rank = process.rank;
  }
  return rank;
}

// A key for each device of a part. Without UUIDs the first GPUs of two hosts look the same. Two
// ranks do not share a GPU, so where timelines would be mixed up, rank tells them apart; and what
// a part holds apart stays so.
std::vector<std::string> device_keys(const Profile& part) {
  const int rank = part.timeline.empty() ? -1 : rank_of(part);
  std::unordered_map<std::string, int> seen;
  std::vector<std::string> keys;
  for (const DeviceInfo& device : part.environment.devices) {
    std::string key = key_of(device);
    if (device.uuid.empty() && rank >= 0) key += fmt::format("\nrank {}", rank);
    const int before = seen[key]++;
    keys.push_back(before == 0 ? key : fmt::format("{}\n#{}", key, before));
  }
  return keys;
}

std::string key_of(const CopyRow& row, int device) {
  return fmt::format("{} {}", device, row.kind);
}

std::string key_of(const CoverageNote& note) { return note.cause + "\n" + note.text; }

// Of two that differ, the smaller is chosen, so that the order does not matter.
void settle(std::string& into, const std::string& from) {
  if (into.empty() || (!from.empty() && from < into)) into = from;
}

// Rows of what a capture or an importer just made do not tell their build: it is the environment's.
// Merged ones do, and "" means that it is not known.
bool tell_builds(const Profile& profile) {
  return std::any_of(profile.kernels.begin(), profile.kernels.end(),
                     [](const KernelRow& row) { return !row.build.empty(); });
}

// "v1" and "v1, v2" make "v1, v2".
std::string join_builds(const std::string& a, const std::string& b) {
  if (a == b || b.empty()) return a;
  if (a.empty()) return b;
  std::set<std::string> labels;
  for (const std::string* list : {&a, &b})
    for (const std::string& label : split(*list, ','))
      if (!trim(label).empty()) labels.emplace(trim(label));
  return join({labels.begin(), labels.end()}, ", ");
}

void merge_row(KernelRow& into, const KernelRow& from) {
  merge_counters(into.counters, from.counters);
  if (from.duration.empty()) return;
  into.first_ns = into.duration.empty() ? from.first_ns : std::min(into.first_ns, from.first_ns);
  into.last_ns = into.duration.empty() ? from.last_ns : std::max(into.last_ns, from.last_ns);
  into.duration.merge(from.duration);
}

}  // namespace

// Where the part's things went.
struct Merger::Moved {
  std::vector<int> devices;
  std::vector<std::uint32_t> kernels, copies;
  std::uint32_t processes = 0;  // how many there were before

  int device(int index) const {
    const auto at = static_cast<std::size_t>(index);
    return index >= 0 && at < devices.size() ? devices[at] : index;
  }
};

Merger::Merger(Profile& into, std::size_t max_timeline_events)
    : into_(into), max_events_(max_timeline_events) {
  for (const std::string& key : device_keys(into)) devices_.emplace(key, devices_.size());
  const bool told = tell_builds(into);
  for (std::size_t i = 0; i < into.kernels.size(); ++i) {
    KernelRow& row = into.kernels[i];
    if (!told) row.build = into.environment.build;
    rows_.emplace(hash_of(row, row.device, row.build), i);
  }
  for (std::size_t i = 0; i < into.copies.size(); ++i)
    copies_.emplace(key_of(into.copies[i], into.copies[i].device), i);
  for (std::size_t i = 0; i < into.coverage.notes.size(); ++i)
    notes_.emplace(key_of(into.coverage.notes[i]), i);
  const auto number = [](const std::vector<std::string>& texts, auto& numbers) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      numbers.emplace(texts[i], static_cast<std::uint32_t>(i));
  };
  number(into.stalls.files, stall_files_);
  number(into.stalls.reasons, stall_reasons_);
  for (std::size_t i = 0; i < into.timeline.names.size(); ++i)
    names_.emplace(into.timeline.names[i], static_cast<std::uint32_t>(i));
}

Merger::~Merger() { finish(); }

void Merger::finish() {
  if (unsorted_) sort_timeline(into_.timeline);
  if (loose_sites_ > 0) into_.stalls.combine();
  loose_sites_ = 0;
  unsorted_ = false;
}

std::size_t Merger::timeline_events() const { return event_count(into_.timeline); }

void Merger::add(const Profile& from) {
  Moved moved;
  moved.processes = static_cast<std::uint32_t>(into_.processes.size());
  add_kernels(from, moved);
  add_copies(from, moved);
  add_waits(from);
  into_.processes.insert(into_.processes.end(), from.processes.begin(), from.processes.end());
  add_timeline(from, moved);
  add_stalls(from, moved);
  merge_data_flow(into_.data_flow, from.data_flow);
  add_coverage(from.coverage);
  into_.partial = into_.partial || from.partial;
  into_.wall_ns = std::max(into_.wall_ns, from.wall_ns);
  into_.exit_code = std::max(into_.exit_code, from.exit_code);
  settle(into_.command, from.command);
  if (into_.labels.empty()) into_.labels = from.labels;
  // "mixed" stays mixed.
  if (into_.source.empty()) into_.source = from.source;
  if (!from.source.empty() && from.source != into_.source) into_.source = "mixed";
}

void Merger::add_environment(const Profile& part, Moved& moved) {
  const Environment& from = part.environment;
  Environment& into = into_.environment;
  const std::vector<std::string> keys = device_keys(part);
  for (std::size_t i = 0; i < from.devices.size(); ++i) {
    const auto [known, added] = devices_.try_emplace(keys[i], into.devices.size());
    moved.devices.push_back(static_cast<int>(known->second));
    if (added) into.devices.push_back(from.devices[i]);
  }
  settle(into.host_os, from.host_os);
  settle(into.host_kernel, from.host_kernel);
  settle(into.host_cpu, from.host_cpu);
  settle(into.recorded_at, from.recorded_at);
  into.host_cpus = std::max(into.host_cpus, from.host_cpus);
}

void Merger::add_kernels(const Profile& from, Moved& moved) {
  add_environment(from, moved);
  if (!from.kernels.empty())
    into_.environment.build = join_builds(into_.environment.build, from.environment.build);
  const bool told = tell_builds(from);
  moved.kernels.reserve(from.kernels.size());
  for (const KernelRow& row : from.kernels)
    moved.kernels.push_back(
        add_kernel(row, moved.device(row.device), told ? row.build : from.environment.build));
}

std::uint32_t Merger::add_kernel(const KernelRow& row, int device, const std::string& build) {
  const std::uint64_t hash = hash_of(row, device, build);
  const auto [begin, end] = rows_.equal_range(hash);
  for (auto known = begin; known != end; ++known)
    if (same(into_.kernels[known->second], row, device, build)) {
      merge_row(into_.kernels[known->second], row);
      return static_cast<std::uint32_t>(known->second);
    }
  rows_.emplace(hash, into_.kernels.size());
  into_.kernels.push_back(row);
  into_.kernels.back().device = device;
  into_.kernels.back().build = build;
  return static_cast<std::uint32_t>(into_.kernels.size() - 1);
}

void Merger::add_copies(const Profile& from, Moved& moved) {
  for (const CopyRow& row : from.copies) {
    const int device = moved.device(row.device);
    const auto [known, added] = copies_.try_emplace(key_of(row, device), into_.copies.size());
    moved.copies.push_back(static_cast<std::uint32_t>(known->second));
    if (added) {
      into_.copies.push_back(row);
      into_.copies.back().device = device;
    } else {
      into_.copies[known->second].bytes += row.bytes;
      into_.copies[known->second].duration.merge(row.duration);
    }
  }
}

void Merger::add_waits(const Profile& from) {
  for (const WaitRow& row : from.waits) {
    const auto known = std::find_if(into_.waits.begin(), into_.waits.end(),
                                    [&](const WaitRow& other) { return other.kind == row.kind; });
    if (known == into_.waits.end()) {
      into_.waits.push_back(row);
    } else {
      known->duration.merge(row.duration);
    }
  }
}

std::uint32_t Merger::name(const std::string& text) {
  Timeline& timeline = into_.timeline;
  const auto [known, added] =
      names_.try_emplace(text, static_cast<std::uint32_t>(timeline.names.size()));
  if (added) timeline.names.push_back(text);
  return known->second;
}

void Merger::add_timeline(const Profile& from, const Moved& moved) {
  Timeline& into = into_.timeline;
  join_bounds(into, from.timeline);
  into.left_out += from.timeline.left_out;
  const std::size_t held = timeline_events();
  const std::size_t added = event_count(from.timeline);
  if (added == 0) return;
  if (added > max_events_ - std::min(held, max_events_)) {
    into.left_out += from.timeline.activities.size();
    return;
  }
  unsorted_ = true;
  const auto process = [&](std::uint32_t index) { return index + moved.processes; };
  append_events(into, from.timeline,
                {moved.kernels, moved.copies, [&](int device) { return moved.device(device); },
                 process, [this](const std::string& text) { return name(text); }});
}

// Parts are appended, and combined once there are many.
void Merger::add_stalls(const Profile& from, const Moved& moved) {
  SampledStalls& into = into_.stalls;
  into.windows += from.stalls.windows;
  into.sampled_ns += from.stalls.sampled_ns;
  into.widen_period(from.stalls.least_period, from.stalls.most_period);
  into.dropped += from.stalls.dropped;
  into.untold += from.stalls.untold;
  const auto moved_texts = [](const std::vector<std::string>& texts, auto& numbers, auto& all) {
    std::vector<std::uint32_t> out;
    for (const std::string& text : texts) {
      const auto [known, added] = numbers.try_emplace(text, static_cast<std::uint32_t>(all.size()));
      if (added) all.push_back(text);
      out.push_back(known->second);
    }
    return out;
  };
  const auto files = moved_texts(from.stalls.files, stall_files_, into.files);
  const auto reasons = moved_texts(from.stalls.reasons, stall_reasons_, into.reasons);
  const bool told = tell_builds(from);
  for (const StallFunction& part : from.stalls.functions) {
    StallFunction& function = into.functions.emplace_back();
    function.name = part.name;
    function.device = moved.device(part.device);
    function.build = told || !part.build.empty() ? part.build : from.environment.build;
    function.code = part.code;
    for (const StallSite& old : part.sites) {
      StallSite& site = function.sites.emplace_back();
      site.offset = old.offset;
      site.file = files[old.file];
      site.line = old.line;
      for (const StallCount& count : old.counts) site.add(reasons[count.reason], count.samples);
    }
    loose_sites_ += part.sites.size() + 1;
  }
  if (loose_sites_ <= 2 * SampledStalls::kMaxSites) return;
  into.combine();
  loose_sites_ = 1;
}

void Merger::add_coverage(const Coverage& from) {
  Coverage& into = into_.coverage;
  // CUDA's launches are not counted, OpenCL's are: a count of some of the launches seen is none.
  const auto uncounted = [](const Coverage& part) {
    return part.launches_seen > 0 && part.launches_counted == 0;
  };
  into.launches_counted =
      uncounted(into) || uncounted(from) ? 0 : into.launches_counted + from.launches_counted;
  into.launches_seen += from.launches_seen;
  into.launches_lost += from.launches_lost;
  into.launches_sampled_out += from.launches_sampled_out;
  into.overhead_ns += from.overhead_ns;
  into.step_ns = std::max(into.step_ns, from.step_ns);  // ranks wait for the slowest
  into.sampling.budget = std::max(into.sampling.budget, from.sampling.budget);
  into.sampling.governed_ns += from.sampling.governed_ns;
  into.sampling.recorded_ns += from.sampling.recorded_ns;
  into.sampling.windows += from.sampling.windows;
  into.sampling.total_ns += from.sampling.total_ns;
  into.sampling.total_variance += from.sampling.total_variance;
  into.sampling.counted_windows += from.sampling.counted_windows;
  into.sampling.timed_windows += from.sampling.timed_windows;
  into.sampling.presence = std::max(into.sampling.presence, from.sampling.presence);
  into.sampling.one_in = std::max(into.sampling.one_in, from.sampling.one_in);
  into.sampling.hidden_ns += from.sampling.hidden_ns;
  into.sampling.unsure_ns += from.sampling.unsure_ns;
  if (from.sampling.waits)
    into.sampling.waits = into.sampling.waits.value_or(true) && *from.sampling.waits;
  into.bytes_written += from.bytes_written;
  for (const CoverageNote& note : from.notes) {
    const auto [known, added] = notes_.try_emplace(key_of(note), into.notes.size());
    if (added) {
      into.notes.push_back(note);
    } else {
      into.notes[known->second].count += note.count;
      into.notes[known->second].seconds += note.seconds;
    }
  }
}

void merge_data_flow(DataFlow& into, const DataFlow& from) {
  const auto weight = [](const DataFlow& flow) {
    return std::tuple(flow.recorded(), flow.ops, flow.facts.size(), flow.steps, flow.same_data,
                      flow.host_numbers, flow.sequence_ops, flow.sequence_hash);
  };
  const auto before = [](const FlowFact& a, const FlowFact& b) {
    return std::tie(a.op, a.ordinal, a.kind) < std::tie(b.op, b.ordinal, b.kind);
  };
  if (weight(into) < weight(from) ||
      (weight(into) == weight(from) &&
       std::lexicographical_compare(from.facts.begin(), from.facts.end(), into.facts.begin(),
                                    into.facts.end(), before)))
    into = from;
}

void merge_counters(std::vector<Counter>& into, const std::vector<Counter>& from) {
  if (from.empty()) return;
  std::unordered_map<std::string_view, std::size_t> known;
  into.reserve(into.size() + from.size());  // names stay where they are
  for (std::size_t i = 0; i < into.size(); ++i) known.emplace(into[i].name, i);
  for (const Counter& counter : from) {
    const auto [position, added] = known.try_emplace(counter.name, into.size());
    if (added) {
      into.push_back(counter);
      continue;
    }
    Counter& mean = into[position->second];
    const double launches = mean.launches + counter.launches;
    if (launches > 0)
      mean.value = (mean.value * mean.launches + counter.value * counter.launches) / launches;
    mean.launches = launches;
  }
}

void merge_into(Profile& into, const Profile& from) { Merger(into).add(from); }

Result<Profile> read_spool(const std::string& directory, const ReadOptions& options) {
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(directory));
  Profile merged;
  Merger merger(merged, options.max_timeline_events);
  std::vector<CoverageNote> unreadable;
  for (const std::string& name : names) {
    if (!ends_with(name, ".plprof")) continue;
    ReadOptions rest = options;
    rest.max_timeline_events -= std::min(rest.max_timeline_events, merger.timeline_events());
    const std::string path = join_path(directory, name);
    // A process of the command may have put a link there, out of the folder.
    Result<Profile> part = is_link(path)
                               ? error(Code::kIo, "'{}' is a link, no file of a process", path)
                               : read_profile(path, rest);
    if (part.is_ok()) {
      name_ops(*part);
      merger.add(*part);
    } else {
      merged.partial = true;
      unreadable.push_back(
          {"unreadable_process_file",
           fmt::format("the capture of one process is lost: {}", part.status().message()), 0, 0});
    }
  }
  merger.finish();
  auto& notes = merged.coverage.notes;
  notes.insert(notes.end(), unreadable.begin(), unreadable.end());
  if (merged.source.empty()) merged.source = "purlin";
  return merged;
}

}  // namespace purlin::profile
