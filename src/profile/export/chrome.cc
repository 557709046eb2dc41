// SPDX-License-Identifier: Apache-2.0
// Chrome's trace event format with PyTorch's categories and argument names, so that what reads
// PyTorch's traces reads these: ours, chrome://tracing, ui.perfetto.dev, HTA.
#include "base/json/json.h"
#include "base/output/escaped.h"
#include "base/text.h"
#include "base/version.h"
#include "model/profile/copy_kind.h"
#include "profile/export/events.h"

#include <algorithm>
#include <set>

namespace purlin::profile {
namespace {

// JSON that a terminal may show: controls of Unicode and marks of direction are escaped, too.
std::string quoted(std::string_view text) { return shown_data(json_quote(text)); }

// Tracks without a number get one from here on.
constexpr std::uint64_t kFirstTrackNumber = 1'000'000'000;

class ChromeWriter {
 public:
  ChromeWriter(const Profile& profile, const ExportSink& sink)
      : profile_(profile), timeline_(profile.timeline), buffer_(sink) {}

  Result<ExportCounts> write() {
    linked_ = linked_calls(timeline_);
    shared_ = shared_devices(timeline_);
    quote_names();
    choose_process_ids();
    base_ = earliest(timeline_);
    begin();
    for_each_event(timeline_, [this](const Event& event) {
      add(event);
      return buffer_.flush_if_full();
    });
    name_tracks();
    text() += "\n]}\n";
    if (!buffer_.flush()) return buffer_.status();
    counts_.tracks = tracks_.all().size();
    return counts_;
  }

 private:
  std::string& text() { return buffer_.text(); }

  void quote_names() {
    for (const std::string& name : timeline_.names) names_.push_back(quoted(name));
    for (const KernelRow& row : profile_.kernels) kernels_.push_back(quoted(demangle(row.name)));
  }

  // Devices are processes 0, 1, … as in PyTorch's traces; a host process whose number is one of
  // these, or that of another host's process, gets another.
  void choose_process_ids() {
    std::set<std::int64_t> used;
    for (const Activity& activity : timeline_.activities) used.insert(activity.device);
    for (std::size_t i = 0; i < profile_.processes.size(); ++i) {
      std::int64_t pid = profile_.processes[i].pid;
      if (pid <= 0 || !used.insert(pid).second)
        pid = static_cast<std::int64_t>(kFirstTrackNumber + i);
      pids_.push_back(pid);
    }
  }
  std::int64_t pid_of(const Track& track) const {
    if (track.on_device) return track.owner;
    return track.owner < pids_.size() ? pids_[track.owner]
                                      : static_cast<std::int64_t>(kFirstTrackNumber + track.owner);
  }

  void begin() {
    text() += fmt::format(
        "{{\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ns\",\n\"baseTimeNanoseconds\": {},\n"
        "\"otherData\": {{\"schema\": \"purlin.chrome/1\", \"tool_version\": {}, \"source\": {}, "
        "\"command\": {}}},\n\"deviceProperties\": [",
        base_, quoted(version()), quoted(profile_.source), quoted(profile_.command));
    const auto& devices = profile_.environment.devices;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const DeviceInfo& device = devices[i];
      text() +=
          fmt::format("{}{{\"id\": {}, \"name\": {}}}", i == 0 ? "" : ", ", i, quoted(device.name));
    }
    text() += "],\n\"traceEvents\": [\n";
  }

  // Microseconds after the base, to the nanosecond.
  void append_time(std::int64_t ns) {
    fmt::format_to(std::back_inserter(text()), "{}{}.{:03}", ns < 0 ? "-" : "",
                   (ns < 0 ? -ns : ns) / 1000, (ns < 0 ? -ns : ns) % 1000);
  }

  std::string_view name_at(std::uint32_t index) const {
    return index < names_.size() ? std::string_view(names_[index]) : "\"\"";
  }

  std::uint64_t tid_of(std::size_t track) {
    while (tids_.size() < tracks_.all().size()) {
      const Track& added = tracks_.all()[tids_.size()];
      const bool plain = added.lane == 0 && !(added.on_device && shared_.contains(added.owner));
      tids_.push_back(plain ? added.id : kFirstTrackNumber + tids_.size());
    }
    return tids_[track];
  }

  void begin_event(std::string_view phase, std::string_view category, std::string_view quoted_name,
                   const Event& event, std::size_t track) {
    if (!first_) text() += ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(text()),
                   "{{\"ph\": \"{}\", \"cat\": \"{}\", \"name\": {}, \"pid\": {}, \"tid\": {}, "
                   "\"ts\": ",
                   phase, category, quoted_name, pid_of(event.where), tid_of(track));
    append_time(event.begin - base_);
  }

  void add_flow(std::string_view phase, std::uint32_t call, const Event& event, std::size_t track) {
    begin_event(phase, "ac2g", "\"ac2g\"", event, track);
    fmt::format_to(std::back_inserter(text()), ", \"id\": {}{}}}", call + 1,
                   phase == "f" ? ", \"bp\": \"e\"" : "");
  }

  void add(const Event& event) {
    const std::size_t track = tracks_.place(event.where, event.begin, event.end);
    if (event.activity != nullptr) {
      const bool kernel = event.activity->kind == ActivityKind::kKernel;
      const bool set = event.activity->kind == ActivityKind::kSet;
      begin_event("X",
                  kernel ? "kernel"
                  : set  ? "gpu_memset"
                         : "gpu_memcpy",
                  activity_name(*event.activity), event, track);
    } else if (event.call != nullptr) {
      const std::string_view name = name_at(event.call->name);
      const bool driver = name.starts_with("\"cu") && !name.starts_with("\"cuda");
      begin_event("X", driver ? "cuda_driver" : "cuda_runtime", name, event, track);
    } else if (event.op != nullptr) {
      begin_event("X", "cpu_op", name_at(event.op->name), event, track);
    } else {
      begin_event("X", event.range->kind == RangeKind::kProfiler ? "overhead" : "user_annotation",
                  name_at(event.range->name), event, track);
    }
    text() += ", \"dur\": ";
    append_time(event.end - event.begin);
    text() += ", \"args\": {";
    add_arguments(event);
    text() += "}}";
    ++counts_.events;
    if (event.call != nullptr && linked_[event.index]) add_flow("s", event.index, event, track);
    if (event.activity != nullptr && event.activity->call < linked_.size()) {
      add_flow("f", event.activity->call, event, track);
      ++counts_.links;
    }
  }

  std::string activity_name(const Activity& activity) const {
    if (activity.kind == ActivityKind::kKernel)
      return activity.row < kernels_.size() ? kernels_[activity.row] : "\"\"";
    if (activity.kind == ActivityKind::kSet) return "\"Memset (Device)\"";
    const std::string_view kind = copy_kind(activity);
    const std::string_view memory = copy_memory(kind);
    const std::string_view host = memory == "pageable" ? "Pageable"
                                  : memory == "pinned" ? "Pinned"
                                                       : "Host";
    if (copy_direction(kind) == "h2d") return fmt::format("\"Memcpy HtoD ({} -> Device)\"", host);
    if (copy_direction(kind) == "d2h") return fmt::format("\"Memcpy DtoH (Device -> {})\"", host);
    if (kind == "d2d") return "\"Memcpy DtoD (Device -> Device)\"";
    if (kind == "h2h") return "\"Memcpy HtoH (Host -> Host)\"";
    if (kind == "p2p") return "\"Memcpy PtoP (Device -> Device)\"";
    return quoted(fmt::format("Memcpy {}", kind));
  }
  std::string_view copy_kind(const Activity& activity) const {
    return activity.row < profile_.copies.size()
               ? std::string_view(profile_.copies[activity.row].kind)
               : "";
  }

  void add_arguments(const Event& event) {
    auto out = std::back_inserter(text());
    if (event.op != nullptr) {
      fmt::format_to(out, "\"External id\": {}", event.index + 1);
      if (event.op->shape != 0) fmt::format_to(out, ", \"shape\": {}", name_at(event.op->shape));
      if (event.op->dtype != 0) fmt::format_to(out, ", \"dtype\": {}", name_at(event.op->dtype));
    } else if (event.call != nullptr) {
      fmt::format_to(out, "\"correlation\": {}", event.index + 1);
      if (event.call->op < timeline_.ops.size())
        fmt::format_to(out, ", \"External id\": {}", event.call->op + 1);
    } else if (event.activity != nullptr) {
      const Activity& activity = *event.activity;
      fmt::format_to(out, "\"device\": {}, \"stream\": {}", activity.device, activity.stream);
      if (activity.call < timeline_.calls.size()) {
        fmt::format_to(out, ", \"correlation\": {}", activity.call + 1);
        if (const std::uint32_t op = timeline_.calls[activity.call].op; op < timeline_.ops.size())
          fmt::format_to(out, ", \"External id\": {}", op + 1);
      }
      if (activity.graph != 0) fmt::format_to(out, ", \"graph id\": {}", activity.graph);
      if (activity.kind != ActivityKind::kKernel)
        fmt::format_to(out, ", \"bytes\": {}", activity.bytes);
      else if (activity.row < profile_.kernels.size())
        add_launch(profile_.kernels[activity.row]);
    }
  }
  void add_launch(const KernelRow& row) {
    const auto& [grid, block] = std::tie(row.launch.grid, row.launch.block);
    fmt::format_to(std::back_inserter(text()),
                   ", \"grid\": [{}, {}, {}], \"block\": [{}, {}, {}], \"shared memory\": {}",
                   grid[0], grid[1], grid[2], block[0], block[1], block[2],
                   std::uint64_t{row.static_shared_bytes} + row.launch.dynamic_shared_bytes);
    if (row.registers > 0)
      fmt::format_to(std::back_inserter(text()), ", \"registers per thread\": {}", row.registers);
    if (!row.shape.empty())
      fmt::format_to(std::back_inserter(text()), ", \"shape\": {}", quoted(row.shape));
  }

  void name_tracks() {
    std::set<std::int64_t> named;
    const auto metadata = [&](std::string_view what, std::int64_t pid, std::uint64_t tid,
                              const std::string& key, const std::string& value) {
      text() += fmt::format(
          "{}{{\"ph\": \"M\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": 0, \"args\": "
          "{{\"{}\": {}}}}}",
          first_ ? "" : ",\n", what, pid, tid, key, value);
      first_ = false;
    };
    for (std::size_t i = 0; i < tracks_.all().size(); ++i) {
      const Track& track = tracks_.all()[i];
      const std::int64_t pid = pid_of(track);
      if (named.insert(pid).second) {
        metadata("process_name", pid, 0, "name",
                 quoted(track.on_device ? device_title(profile_, track.owner)
                                        : process_title(profile_, track.owner)));
        metadata("process_labels", pid, 0, "labels",
                 track.on_device ? fmt::format("\"GPU {}\"", track.owner) : "\"CPU\"");
        metadata("process_sort_index", pid, 0, "sort_index",
                 fmt::format("{}", (track.on_device ? 5'000'000 : 0) + track.owner));
      }
      metadata("thread_name", pid, tid_of(i), "name",
               quoted(track_title(track, shared_.contains(track.owner))));
    }
  }

  const Profile& profile_;
  const Timeline& timeline_;
  ExportBuffer buffer_;
  Tracks tracks_;
  ExportCounts counts_;
  std::vector<bool> linked_;
  std::map<std::uint32_t, bool> shared_;
  std::vector<std::string> names_, kernels_;  // as JSON
  std::vector<std::int64_t> pids_;
  std::vector<std::uint64_t> tids_;  // of tracks
  std::int64_t base_ = 0;
  bool first_ = true;
};

}  // namespace

Result<ExportCounts> export_chrome(const Profile& profile, const ExportSink& sink) {
  PURLIN_TRY(require_timeline(profile));
  return ChromeWriter(profile, sink).write();
}

}  // namespace purlin::profile
