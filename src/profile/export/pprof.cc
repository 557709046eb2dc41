// SPDX-License-Identifier: Apache-2.0
// The profile format of pprof (proto/profile.proto in google/pprof), gzip-compressed: GPU time as
// stacks of device, the program's ops and the kernel. The few fields used are named below;
// docs/formats/export.md lists them.
#include "base/gzip.h"
#include "base/text.h"
#include "profile/export/export.h"
#include "profile/export/protobuf.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::profile {
namespace {

// Field numbers, by message.
namespace pprof {
constexpr int kSampleType = 1, kSample = 2, kLocation = 4, kFunction = 5, kStrings = 6, kTimeNs = 9,
              kDurationNs = 10, kComment = 13, kDefaultType = 14;           // Profile
constexpr int kValueType = 1, kValueUnit = 2;                               // ValueType
constexpr int kSampleLocation = 1, kSampleValue = 2, kSampleLabel = 3;      // Sample
constexpr int kLabelKey = 1, kLabelText = 2;                                // Label
constexpr int kLocationId = 1, kLocationLine = 4;                           // Location
constexpr int kLineFunction = 1;                                            // Line
constexpr int kFunctionId = 1, kFunctionName = 2, kFunctionSystemName = 3;  // Function
}  // namespace pprof
constexpr std::size_t kMaxOpDepth = 64;

// A stack and its labels, as indices into the tables below: equal ones are one sample.
struct PprofStack {
  std::vector<std::uint64_t> locations;  // the innermost first
  std::uint64_t shape = 0, dtype = 0;    // strings; 0 = none
  bool operator<(const PprofStack& other) const {
    return std::tie(locations, shape, dtype) < std::tie(other.locations, other.shape, other.dtype);
  }
};

struct PprofValues {
  double launches = 0, time_ns = 0;
};

class PprofWriter {
 public:
  explicit PprofWriter(const Profile& profile) : profile_(profile), timeline_(profile.timeline) {
    string("");  // the format's string 0
  }

  Result<std::string> write(ExportCounts& counts) {
    if (timeline_.activities.empty())
      add_rows();
    else
      add_activities();
    counts.events = samples_.size();
    counts.tracks = locations_.size();
    return gzip(encoded());
  }

 private:
  // Sums of a profile without a timeline; sampling is undone by the rows' weights.
  void add_rows() {
    for (const KernelRow& row : profile_.kernels) {
      PprofStack stack = kernel_stack(row);
      if (!row.op.empty()) stack.locations.push_back(location(row.op));
      add(std::move(stack), row.device, {row.duration.count(), row.duration.total_ns()});
    }
    for (const CopyRow& row : profile_.copies)
      add(copy_stack(row), row.device, {row.duration.count(), row.duration.total_ns()});
  }

  void add_activities() {
    for (const Activity& activity : timeline_.activities) {
      const bool kernel = activity.kind == ActivityKind::kKernel;
      PprofStack stack = kernel ? kernel_stack(profile_.kernels[activity.row])
                                : copy_stack(profile_.copies[activity.row]);
      const std::size_t alone = stack.locations.size();
      std::uint32_t op =
          activity.call < timeline_.calls.size() ? timeline_.calls[activity.call].op : kNone;
      for (std::size_t depth = 0; op < timeline_.ops.size() && depth < kMaxOpDepth; ++depth) {
        stack.locations.push_back(location(timeline_.names[timeline_.ops[op].name]));
        op = timeline_.ops[op].parent;
      }
      // Work whose op is known by its row alone: importers keep no call for it.
      if (kernel && stack.locations.size() == alone && !profile_.kernels[activity.row].op.empty())
        stack.locations.push_back(location(profile_.kernels[activity.row].op));
      add(std::move(stack), activity.device, {1, static_cast<double>(activity.duration_ns)});
    }
  }

  PprofStack kernel_stack(const KernelRow& row) {
    return {{location(demangle(row.name), row.name)}, string(row.shape), string(row.dtype)};
  }
  PprofStack copy_stack(const CopyRow& row) { return {{location("[memory] " + row.kind)}, 0, 0}; }

  void add(PprofStack stack, int device, const PprofValues& values) {
    const auto& devices = profile_.environment.devices;
    const auto index = static_cast<std::size_t>(std::max(device, 0));
    std::string name = fmt::format("GPU {}", index);
    if (index < devices.size() && !devices[index].name.empty())
      name += fmt::format(" ({})", devices[index].name);
    stack.locations.push_back(location(name));
    PprofValues& sum = samples_[std::move(stack)];
    sum.launches += values.launches;
    sum.time_ns += values.time_ns;
  }

  std::uint64_t string(std::string_view text) {
    const auto [at, added] = strings_.try_emplace(std::string(text), string_list_.size());
    if (added) string_list_.push_back(&at->first);
    return at->second;
  }
  // One location and one function for each name, with the same number.
  std::uint64_t location(std::string_view name, std::string_view system_name = "") {
    const std::pair key(string(name), string(system_name == name ? "" : system_name));
    return locations_.try_emplace(key, locations_.size() + 1).first->second;
  }

  std::string encoded() {
    Message out;
    const auto type = [&](int field, std::string_view name, std::string_view unit) {
      out.message(field, Message()
                             .number(pprof::kValueType, string(name))
                             .number(pprof::kValueUnit, string(unit)));
    };
    type(pprof::kSampleType, "launches", "count");
    type(pprof::kSampleType, "gpu_time", "nanoseconds");
    const std::uint64_t shape = string("shape"), dtype = string("dtype");
    for (const auto& [stack, values] : samples_)
      out.message(pprof::kSample, sample(stack, values, shape, dtype));
    for (const auto& [names, id] : locations_) {
      out.message(pprof::kLocation,
                  Message()
                      .number(pprof::kLocationId, id)
                      .message(pprof::kLocationLine, Message().number(pprof::kLineFunction, id)));
      Message function;
      function.number(pprof::kFunctionId, id).number(pprof::kFunctionName, names.first);
      if (names.second != 0) function.number(pprof::kFunctionSystemName, names.second);
      out.message(pprof::kFunction, function);
    }
    const std::uint64_t comment = string("recorded by " + profile_.source);
    const std::uint64_t time = string("gpu_time");
    for (const std::string* text : string_list_) out.bytes(pprof::kStrings, *text);
    write_period(out);
    out.number(pprof::kComment, comment).number(pprof::kDefaultType, time);
    return out.data();
  }

  // From the first launch to the last, where the rows know them.
  void write_period(Message& out) const {
    std::int64_t first = 0, last = 0;
    for (const KernelRow& row : profile_.kernels) {
      if (row.first_ns > 0 && (first == 0 || row.first_ns < first)) first = row.first_ns;
      last = std::max(last, row.last_ns);
    }
    if (first <= 0 || last <= first) return;
    out.number(pprof::kTimeNs, static_cast<std::uint64_t>(first));
    out.number(pprof::kDurationNs, static_cast<std::uint64_t>(last - first));
  }

  static Message sample(const PprofStack& stack, const PprofValues& values, std::uint64_t shape,
                        std::uint64_t dtype) {
    Message out;
    for (const std::uint64_t location : stack.locations)
      out.number(pprof::kSampleLocation, location);
    out.number(pprof::kSampleValue, static_cast<std::uint64_t>(std::llround(values.launches)));
    out.number(pprof::kSampleValue, static_cast<std::uint64_t>(std::llround(values.time_ns)));
    for (const auto& [key, value] : {std::pair(shape, stack.shape), std::pair(dtype, stack.dtype)})
      if (value != 0)
        out.message(pprof::kSampleLabel,
                    Message().number(pprof::kLabelKey, key).number(pprof::kLabelText, value));
    return out;
  }

  const Profile& profile_;
  const Timeline& timeline_;
  std::unordered_map<std::string, std::uint64_t> strings_;
  std::vector<const std::string*> string_list_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>
      locations_;  // names -> id, from 1
  std::map<PprofStack, PprofValues> samples_;
};

}  // namespace

Result<ExportCounts> export_pprof(const Profile& profile, const ExportSink& sink) {
  if (profile.kernels.empty() && profile.copies.empty())
    return error(Code::kInvalid, "the profile has no GPU work to write");
  ExportCounts counts;
  PURLIN_ASSIGN(const std::string data, PprofWriter(profile).write(counts));
  PURLIN_TRY(sink(data));
  return counts;
}

}  // namespace purlin::profile
