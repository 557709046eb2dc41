// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace format (protos/perfetto/trace in google/perfetto), written without its library:
// a Trace is a sequence of TracePacket, each a track's descriptor or the begin or end of a slice.
// The few fields used are named below; docs/formats/export.md lists them.
#include "base/text.h"
#include "profile/export/events.h"
#include "profile/export/perfetto_gpu.h"
#include "profile/export/protobuf.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace purlin::profile {
namespace {

// Field numbers, by message.
namespace field {
constexpr int kTracePacket = 1;                                                        // Trace
constexpr int kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,  //
    kSequenceFlags = 13, kTrackDescriptor = 60;            // TracePacket
constexpr int kEventNames = 2;                             // InternedData
constexpr int kInternedId = 1, kInternedName = 2;          // EventName
constexpr int kUuid = 1, kTrackName = 2, kParentUuid = 5;  // TrackDescriptor
constexpr int kAnnotation = 4, kType = 9, kNameId = 10, kTrackUuid = 11, kCategory = 22,  //
    kFlowId = 47;                                            // TrackEvent
constexpr int kUint = 3, kString = 6, kAnnotationName = 10;  // DebugAnnotation
}  // namespace field
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;  // TracePacket::sequence_flags
constexpr std::uint64_t kSequence = 1;

class PerfettoWriter {
 public:
  PerfettoWriter(const Profile& profile, const ExportSink& sink)
      : profile_(profile),
        timeline_(profile.timeline),
        buffer_(sink),
        tracks_([this](std::size_t track, std::int64_t end) { end_slice(track, end); }),
        gpu_(profile) {}

  Result<ExportCounts> write() {
    linked_ = linked_calls(timeline_);
    shared_ = shared_devices(timeline_);
    // Timestamps are unsigned there: only a clock that runs below zero is moved.
    base_ = std::min<std::int64_t>(0, earliest(timeline_));
    const std::int64_t first_event = std::max<std::int64_t>(earliest(timeline_), 0);
    for (const Message& packet : gpu_.begin(static_cast<std::uint64_t>(first_event))) put(packet);
    Message first;  // interned names are counted from here
    first.number(field::kSequenceId, kSequence).number(field::kSequenceFlags, kStateCleared);
    put(first);
    for_each_event(timeline_, [this](const Event& event) {
      begin_slice(event);
      return buffer_.flush_if_full();
    });
    tracks_.finish();
    if (!buffer_.flush()) return buffer_.status();
    counts_.tracks = tracks_.all().size();
    return counts_;
  }

 private:
  void put(const Message& packet) {
    Message trace;
    trace.message(field::kTracePacket, packet);
    buffer_.text() += trace.data();
  }

  // Devices and processes first, then their streams and threads.
  static std::uint64_t owner_uuid(const Track& track) {
    return (track.on_device ? std::uint64_t{1} << 40 : std::uint64_t{1} << 41) + track.owner;
  }
  static std::uint64_t track_uuid(std::size_t track) { return (std::uint64_t{1} << 42) + track; }

  void describe(std::uint64_t uuid, const std::string& name, std::uint64_t parent) {
    Message descriptor, packet;
    descriptor.number(field::kUuid, uuid).bytes(field::kTrackName, name);
    if (parent != 0) descriptor.number(field::kParentUuid, parent);
    packet.number(field::kSequenceId, kSequence).message(field::kTrackDescriptor, descriptor);
    put(packet);
  }
  void describe_new_tracks() {
    for (; described_ < tracks_.all().size(); ++described_) {
      const Track& track = tracks_.all()[described_];
      const std::uint64_t owner = owner_uuid(track);
      if (owners_.insert(owner).second)
        describe(owner,
                 track.on_device ? device_title(profile_, track.owner)
                                 : process_title(profile_, track.owner),
                 0);
      describe(track_uuid(described_), track_title(track, shared_.contains(track.owner)), owner);
    }
  }

  // The id of a name; the packet that uses it first carries it.
  std::uint64_t intern(const std::string& name, Message& packet) {
    const auto [entry, added] = names_.try_emplace(name, names_.size() + 1);
    if (added) {
      Message event_name, interned;
      event_name.number(field::kInternedId, entry->second).bytes(field::kInternedName, name);
      interned.message(field::kEventNames, event_name);
      packet.message(field::kInternedData, interned);
    }
    return entry->second;
  }

  static void annotate(Message& event, std::string_view name, std::string_view value) {
    Message annotation;
    annotation.bytes(field::kAnnotationName, name).bytes(field::kString, value);
    event.message(field::kAnnotation, annotation);
  }
  static void annotate(Message& event, std::string_view name, std::uint64_t value) {
    Message annotation;
    annotation.bytes(field::kAnnotationName, name).number(field::kUint, value);
    event.message(field::kAnnotation, annotation);
  }

  std::string text_at(std::uint32_t index) const {
    return index < timeline_.names.size() ? timeline_.names[index] : "";
  }
  std::string name_of(const Event& event) {
    if (event.call != nullptr) return text_at(event.call->name);
    if (event.op != nullptr) return text_at(event.op->name);
    if (event.range != nullptr) return text_at(event.range->name);
    const Activity& activity = *event.activity;
    if (activity.kind != ActivityKind::kKernel)
      return activity.row < profile_.copies.size() ? "copy " + profile_.copies[activity.row].kind
                                                   : "copy";
    if (activity.row >= profile_.kernels.size()) return "";
    if (kernels_.empty()) kernels_.resize(profile_.kernels.size());
    std::string& name = kernels_[activity.row];
    if (name.empty()) name = demangle(profile_.kernels[activity.row].name);
    return name;
  }
  static std::string_view category_of(const Event& event) {
    if (event.call != nullptr) return "call";
    if (event.op != nullptr) return "op";
    if (event.range != nullptr) return event.range->kind == RangeKind::kStep ? "step" : "range";
    return event.activity->kind == ActivityKind::kKernel ? "kernel" : "copy";
  }

  void begin_slice(const Event& event) {
    const std::size_t track = tracks_.place(event.where, event.begin, event.end);
    describe_new_tracks();
    Message packet, slice;
    packet.number(field::kTimestamp, static_cast<std::uint64_t>(event.begin - base_))
        .number(field::kSequenceId, kSequence)
        .number(field::kSequenceFlags, kNeedsState);
    slice.number(field::kType, kSliceBegin)
        .number(field::kTrackUuid, track_uuid(track))
        .number(field::kNameId, intern(name_of(event), packet))
        .bytes(field::kCategory, category_of(event));
    std::uint32_t flow = kNone;
    if (event.call != nullptr && linked_[event.index]) flow = event.index;
    if (event.activity != nullptr) {
      const Activity& activity = *event.activity;
      if (activity.call < linked_.size()) {
        flow = activity.call;
        ++counts_.links;
      }
      if (activity.kind != ActivityKind::kKernel) {
        annotate(slice, "bytes", activity.bytes);
      } else if (activity.row < profile_.kernels.size()) {
        const KernelRow& row = profile_.kernels[activity.row];
        annotate(slice, "launch", to_text(row.launch));
        if (row.registers != 0) annotate(slice, "registers", row.registers);
        if (!row.shape.empty()) annotate(slice, "shape", row.shape);
      }
      if (activity.graph != 0) annotate(slice, "graph", activity.graph);
    }
    if (event.op != nullptr && event.op->shape != 0)
      annotate(slice, "shape", text_at(event.op->shape));
    if (flow != kNone) slice.fixed64(field::kFlowId, std::uint64_t{flow} + 1);
    packet.message(field::kTrackEvent, slice);
    put(packet);
    ++counts_.events;
    if (event.activity != nullptr && event.activity->kind == ActivityKind::kKernel)
      for (const Message& of_gpu : gpu_.launch(*event.activity, name_of(event),
                                               static_cast<std::uint64_t>(event.begin - base_),
                                               static_cast<std::uint64_t>(event.end - base_)))
        put(of_gpu);
  }

  void end_slice(std::size_t track, std::int64_t end) {
    Message packet, slice;
    slice.number(field::kType, kSliceEnd).number(field::kTrackUuid, track_uuid(track));
    packet.number(field::kTimestamp, static_cast<std::uint64_t>(end - base_))
        .number(field::kSequenceId, kSequence)
        .message(field::kTrackEvent, slice);
    put(packet);
  }

  const Profile& profile_;
  const Timeline& timeline_;
  ExportBuffer buffer_;
  Tracks tracks_;
  ExportCounts counts_;
  std::vector<bool> linked_;
  std::map<std::uint32_t, bool> shared_;
  std::vector<std::string> kernels_;  // demangled when first used
  std::unordered_map<std::string, std::uint64_t> names_;
  std::set<std::uint64_t> owners_;
  std::size_t described_ = 0;
  std::int64_t base_ = 0;
  PerfettoGpu gpu_;
};

}  // namespace

Result<ExportCounts> export_perfetto(const Profile& profile, const ExportSink& sink) {
  PURLIN_TRY(require_timeline(profile));
  return PerfettoWriter(profile, sink).write();
}

}  // namespace purlin::profile
