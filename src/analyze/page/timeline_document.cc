// SPDX-License-Identifier: Apache-2.0
#include "analyze/page/timeline_document.h"

#include "analyze/page/slice_rows.h"
#include "analyze/report/identity.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "profile/export/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::size_t kNameCharacters = 300;

std::string_view class_of(CallKind kind) {
  switch (kind) {
    case CallKind::kLaunch:
      return "launch";
    case CallKind::kGraphLaunch:
      return "graph launch";
    case CallKind::kCopy:
      return "copy call";
    case CallKind::kSync:
      return "wait";
    case CallKind::kAllocation:
      return "allocation";
    case CallKind::kOther:
      break;
  }
  return "call";
}

std::string_view class_of(RangeKind kind) {
  switch (kind) {
    case RangeKind::kStep:
      return "step";
    case RangeKind::kDataLoader:
      return "data loader";
    case RangeKind::kCommunication:
      return "communication";
    case RangeKind::kProfiler:
      return "profiler";
    case RangeKind::kUser:
      break;
  }
  return "range";
}

// What slices are: each kernel, copy kind, call, op and range once.
class PageItems {
 public:
  PageItems(const Profile& profile, GroupBy group_by) : profile_(profile) {
    const Report rows = build_rows(profile, group_by, {}, &row_of_);
    for (const KernelStat& row : rows.kernels) {
      ids_.push_back(row_id(row, group_by));
      labels_.push_back(elide_middle(row.label, kNameCharacters));
      classes_.push_back(row.name.op_class);
    }
    by_kernel_ =
        group_by == GroupBy::kKernel || group_by == GroupBy::kShape || group_by == GroupBy::kLaunch;
  }

  std::uint32_t of(const profile::Event& event) {
    if (event.call != nullptr)
      return named('c', event.call->name, class_of(event.call->kind),
                   static_cast<int>(event.call->kind));
    if (event.op != nullptr) return op(*event.op);
    if (event.range != nullptr)
      return named('r', event.range->name, class_of(event.range->kind),
                   static_cast<int>(event.range->kind));
    return event.activity->kind == ActivityKind::kKernel ? kernel(event.activity->row)
                                                         : copy(event.activity->row);
  }
  std::uint32_t plain(std::string_view name, std::string_view item_class) {
    list_.push(Json::object({{"name", name}, {"class", item_class}}));
    return count_++;
  }
  Json take() { return std::move(list_); }

 private:
  using ItemKey = std::tuple<char, std::uint32_t, std::uint32_t>;

  template <class Make>
  std::uint32_t once(ItemKey key, Make&& make) {
    const auto [found, added] = known_.try_emplace(key, count_);
    if (added) {
      list_.push(make());
      ++count_;
    }
    return found->second;
  }
  std::string text(std::uint32_t index) const {
    const std::vector<std::string>& names = profile_.timeline.names;
    return index < names.size() ? elide_middle(names[index], kNameCharacters) : "";
  }
  std::uint32_t named(char kind, std::uint32_t name, std::string_view item_class, int sort) {
    return once({kind, name, static_cast<std::uint32_t>(sort)}, [&] {
      return Json::object({{"name", text(name)}, {"class", item_class}});
    });
  }
  std::uint32_t op(const Op& op) {
    return once({'o', op.name, op.shape}, [&] {
      Json item = Json::object({{"name", text(op.name)}, {"class", "op"}});
      if (op.shape != 0) item.set("shape", text(op.shape));
      return item;
    });
  }
  std::uint32_t copy(std::uint32_t row) {
    return once({'m', row, 0}, [&] {
      return Json::object(
          {{"name", row < profile_.copies.size() ? "copy " + profile_.copies[row].kind : "copy"},
           {"class", "copy"}});
    });
  }
  std::uint32_t kernel(std::uint32_t row) {
    return once({'k', row, 0}, [&] {
      Json item = Json::object({{"name", "kernel"}, {"class", "other"}});
      if (row >= row_of_.size()) return item;
      const KernelRow& kernel = profile_.kernels[row];
      const std::size_t group = row_of_[row];
      item.set("name", by_kernel_
                           ? labels_[group]
                           : elide_middle(describe_kernel(kernel.name).brief, kNameCharacters));
      item.set("class", classes_[group]).set("kernel", ids_[group]);
      item.set("launch", to_text(kernel.launch));
      if (kernel.registers != 0) item.set("registers", kernel.registers);
      if (!kernel.shape.empty()) item.set("shape", elide_middle(kernel.shape, kNameCharacters));
      if (!kernel.op.empty()) item.set("op", elide_middle(kernel.op, kNameCharacters));
      return item;
    });
  }

  const Profile& profile_;
  std::vector<std::size_t> row_of_;
  std::vector<std::string> ids_, labels_;
  std::vector<std::string_view> classes_;
  bool by_kernel_ = false;
  std::map<ItemKey, std::uint32_t> known_;
  std::uint32_t count_ = 0;
  Json list_ = Json::array();
};

class TimelineWriter {
 public:
  TimelineWriter(std::string name, const Profile& profile, const TimelineAnalysis& analysis,
                 GroupBy group_by)
      : name_(std::move(name)),
        profile_(profile),
        timeline_(profile.timeline),
        analysis_(analysis),
        items_(profile, group_by),
        origin_(profile::earliest(timeline_)) {}

  page::Document write() {
    lay_out();
    call_slice_.assign(timeline_.calls.size(), kNone);
    for (const auto& [key, rows] : threads_) put_thread(key, rows);
    const std::size_t host = begin_.size();
    for (const auto& [key, rows] : streams_) put_stream(key, rows);
    put_idle();
    put_steps();
    put_phases();
    Json head = Json::object({{"schema", "purlin.page-timeline/1"},
                              {"origin_ns", std::to_string(origin_)},
                              {"span_ns", end_ - origin_},
                              {"window", window()},
                              {"steps_from", analysis_.steps_from},
                              {"left_out", timeline_.left_out},
                              {"first_linked", host},
                              {"tracks", std::move(tracks_)},
                              {"items", items_.take()},
                              {"gaps", described_gaps()}});
    page::Document document(std::move(name_), std::move(head));
    document.add("begin", std::span<const double>(begin_));
    if (longest_ < std::int64_t{0xFFFFFFFF}) {
      const std::vector<std::uint32_t> fits(duration_.begin(), duration_.end());
      document.add("duration", std::span<const std::uint32_t>(fits));
    } else {
      document.add("duration", std::span<const double>(duration_));
    }
    document.add("item", std::span<const std::uint32_t>(item_));
    document.add("link", std::span<const std::uint32_t>(link_));
    document.add("bytes", std::span<const double>(bytes_));
    document.add("bytes_of", std::span<const std::uint32_t>(bytes_of_));
    document.add("share", std::span<const std::uint8_t>(share_));
    return document;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // owner, process, id

  void lay_out() {
    profile::for_each_event(timeline_, [this](const profile::Event& event) {
      const Key key{event.where.owner, event.where.process, event.where.id};
      SliceRows& rows = event.activity != nullptr ? streams_[key] : threads_[key];
      const std::uint32_t record =
          event.activity != nullptr || event.call != nullptr ? event.index : kNone;
      rows.add({event.begin, event.end, items_.of(event), record});
      end_ = std::max(end_, event.end);
      return true;
    });
    end_ = std::max(end_, origin_ + 1);
  }

  Json& track(std::string_view kind, const Json& owner, std::string title) {
    Json json =
        Json::object({{"kind", kind}, {"title", std::move(title)}, {"first", begin_.size()}});
    for (const Json::Member& member : owner.members()) json.set(member.key, member.value);
    pending_ = std::move(json);
    return pending_;
  }
  void finish(Json rows) {
    pending_.set("rows", std::move(rows));
    tracks_.push(std::move(pending_));
  }
  void put(std::int64_t begin, std::int64_t end, std::uint32_t item) {
    begin_.push_back(static_cast<double>(begin - origin_));
    const std::int64_t duration = std::max<std::int64_t>(end - begin, 0);
    longest_ = std::max(longest_, duration);
    duration_.push_back(static_cast<double>(duration));
    item_.push_back(item);
  }
  template <class Each>
  Json put_rows(const SliceRows& rows, Each&& each) {
    Json counts = Json::array();
    for (const std::vector<PageSlice>& row : rows.rows()) {
      counts.push(row.size());
      for (const PageSlice& slice : row) {
        each(slice);
        put(slice.begin, slice.end, slice.item);
      }
    }
    return counts;
  }

  void put_thread(const Key& key, const SliceRows& rows) {
    const auto [owner, process, id] = key;
    track(
        "thread",
        Json::object({{"process", process}, {"owner", profile::process_title(profile_, process)}}),
        id == kNone ? "ranges without a thread" : fmt::format("thread {}", id));
    finish(put_rows(rows, [this](const PageSlice& slice) {
      if (slice.record < call_slice_.size())
        call_slice_[slice.record] = static_cast<std::uint32_t>(begin_.size());
    }));
  }
  void put_stream(const Key& key, const SliceRows& rows) {
    const auto [device, process, id] = key;
    track("stream",
          Json::object({{"device", device},
                        {"process", process},
                        {"owner", profile::device_title(profile_, device)}}),
          fmt::format("stream {}", id));
    finish(put_rows(rows, [this](const PageSlice& slice) {
      const Activity& activity = timeline_.activities[slice.record];
      link_.push_back(activity.call < call_slice_.size() ? call_slice_[activity.call] : kNone);
      if (activity.kind == ActivityKind::kKernel) return;
      bytes_of_.push_back(static_cast<std::uint32_t>(begin_.size()));
      bytes_.push_back(static_cast<double>(activity.bytes));
    }));
  }

  Json of_device(int device) const {
    return Json::object(
        {{"device", device},
         {"owner", profile::device_title(profile_, static_cast<std::uint32_t>(device))}});
  }
  void put_idle() {
    if (analysis_.idle.empty()) return;
    std::uint32_t causes[kIdleCauses];
    for (std::size_t i = 0; i < kIdleCauses; ++i)
      causes[i] = items_.plain(to_text(static_cast<IdleCause>(i)), "idle");
    for (std::size_t i = 0; i < analysis_.idle.size();) {
      const int device = analysis_.idle[i].device;
      track("idle", of_device(device), "idle, by cause").set("share_at", share_.size());
      std::size_t count = 0;
      for (; i < analysis_.idle.size() && analysis_.idle[i].device == device; ++i, ++count) {
        const IdleInterval& gap = analysis_.idle[i];
        put(gap.start_ns, gap.start_ns + gap.duration_ns,
            causes[static_cast<std::size_t>(gap.cause)]);
        share_.push_back(static_cast<std::uint8_t>(std::clamp(100 * gap.share, 0.0F, 100.0F)));
      }
      finish(Json::array({count}));
    }
  }
  void put_steps() {
    if (analysis_.steps.empty()) return;
    std::vector<const StepTime*> steps;
    for (const StepTime& step : analysis_.steps) steps.push_back(&step);
    std::sort(steps.begin(), steps.end(),
              [](const StepTime* a, const StepTime* b) { return a->start_ns < b->start_ns; });
    SliceRows rows;
    for (const StepTime* step : steps)
      rows.add({step->start_ns, step->start_ns + step->duration_ns,
                items_.plain(elide_middle(step->name, kNameCharacters), "step"), kNone});
    const int device = analysis_.devices.empty() ? 0 : analysis_.devices.front().device;
    track("steps", of_device(device), "steps");
    finish(put_rows(rows, [](const PageSlice&) {}));
  }
  void put_phases() {
    for (std::size_t i = 0; i < analysis_.phases.size();) {
      const int device = analysis_.phases[i].device;
      track("phases", of_device(device), "phases");
      std::size_t count = 0;
      for (; i < analysis_.phases.size() && analysis_.phases[i].device == device; ++i, ++count) {
        const Phase& phase = analysis_.phases[i];
        put(std::clamp(phase.begin_ns, origin_, end_),
            std::clamp(phase.begin_ns + phase.span_ns, origin_, end_),
            items_.plain(to_text(phase.kind), "phase"));
      }
      finish(Json::array({count}));
    }
  }

  Json window() const {
    if (analysis_.devices.empty()) return Json();
    const DeviceTime& device = analysis_.devices.front();
    return Json::object({{"begin", device.begin_ns - origin_},
                         {"end", device.begin_ns - origin_ + device.window_ns}});
  }
  Json described_gaps() const {
    Json list = Json::array();
    for (const Gap& gap : analysis_.gaps)
      list.push(Json::object({{"device", gap.device},
                              {"begin", gap.start_ns - origin_},
                              {"before", elide_middle(gap.before, kNameCharacters)},
                              {"after", elide_middle(gap.after, kNameCharacters)},
                              {"evidence", elide_middle(gap.evidence, kNameCharacters)}}));
    return list;
  }

  std::string name_;
  const Profile& profile_;
  const Timeline& timeline_;
  const TimelineAnalysis& analysis_;
  PageItems items_;
  const std::int64_t origin_;
  std::int64_t end_ = 0, longest_ = 0;
  std::map<Key, SliceRows> streams_, threads_;
  std::vector<std::uint32_t> call_slice_;  // of each call
  Json tracks_ = Json::array(), pending_;
  std::vector<double> begin_, duration_, bytes_;
  std::vector<std::uint32_t> item_, link_, bytes_of_;
  std::vector<std::uint8_t> share_;
};

}  // namespace

std::optional<page::Document> timeline_document(std::string name, const Profile& profile,
                                                const TimelineAnalysis& analysis,
                                                GroupBy group_by) {
  if (event_count(profile.timeline) == 0) return std::nullopt;
  return TimelineWriter(std::move(name), profile, analysis, group_by).write();
}

}  // namespace purlin::analyze
