// SPDX-License-Identifier: Apache-2.0
#include "profile/format/timeline_join.h"

#include <algorithm>

namespace purlin::profile {
namespace {

// Begin and end of a recording without stated bounds.
template <class Events>
void widen(const Events& events, std::int64_t& begin_ns, std::int64_t& end_ns, bool& known) {
  for (const auto& event : events) {
    const std::int64_t end = event.start_ns + event.duration_ns;
    begin_ns = known ? std::min(begin_ns, event.start_ns) : event.start_ns;
    end_ns = known ? std::max(end_ns, end) : end;
    known = true;
  }
}

struct Bounds {
  bool known = false, stated = false;
  std::int64_t begin_ns = 0, end_ns = 0;
};

Bounds bounds_of(const Timeline& timeline, bool look) {
  Bounds bounds = {false, timeline.begin_ns != 0 || timeline.end_ns != 0, timeline.begin_ns,
                   timeline.end_ns};
  bounds.known = bounds.stated;
  if (bounds.stated || !look) return bounds;
  widen(timeline.activities, bounds.begin_ns, bounds.end_ns, bounds.known);
  widen(timeline.calls, bounds.begin_ns, bounds.end_ns, bounds.known);
  widen(timeline.ops, bounds.begin_ns, bounds.end_ns, bounds.known);
  widen(timeline.ranges, bounds.begin_ns, bounds.end_ns, bounds.known);
  return bounds;
}

}  // namespace

void join_bounds(Timeline& into, const Timeline& from) {
  const bool stated =
      into.begin_ns != 0 || into.end_ns != 0 || from.begin_ns != 0 || from.end_ns != 0;
  if (!stated) return;
  const Bounds a = bounds_of(into, true), b = bounds_of(from, true);
  if (!a.known || !b.known) {
    into.begin_ns = a.known ? a.begin_ns : b.begin_ns;
    into.end_ns = a.known ? a.end_ns : b.end_ns;
    return;
  }
  into.begin_ns = std::min(a.begin_ns, b.begin_ns);
  into.end_ns = std::max(a.end_ns, b.end_ns);
}

void append_events(Timeline& into, const Timeline& part, const TimelineMoves& moves) {
  const auto first_call = static_cast<std::uint32_t>(into.calls.size());
  const auto first_op = static_cast<std::uint32_t>(into.ops.size());
  std::vector<std::uint32_t> names;
  names.reserve(part.names.size());
  for (const std::string& text : part.names) names.push_back(moves.name(text));
  const auto named = [&](std::uint32_t index) { return index < names.size() ? names[index] : 0; };
  const auto link = [](std::uint32_t index, std::uint32_t first, std::size_t size) {
    return index < size ? first + index : kNone;
  };
  for (Activity activity : part.activities) {
    const auto& rows = activity.kind == ActivityKind::kKernel ? moves.kernels : moves.copies;
    if (activity.row >= rows.size()) continue;
    activity.row = rows[activity.row];
    activity.process = moves.process(activity.process);
    activity.device = static_cast<std::uint16_t>(moves.device(activity.device));
    activity.call = link(activity.call, first_call, part.calls.size());
    into.activities.push_back(activity);
  }
  for (Call call : part.calls) {
    call.name = named(call.name);
    call.process = moves.process(call.process);
    call.op = link(call.op, first_op, part.ops.size());
    into.calls.push_back(call);
  }
  for (Op op : part.ops) {
    op.name = named(op.name);
    op.shape = named(op.shape);
    op.dtype = named(op.dtype);
    op.process = moves.process(op.process);
    op.parent = link(op.parent, first_op, part.ops.size());
    into.ops.push_back(op);
  }
  for (Range range : part.ranges) {
    range.name = named(range.name);
    range.process = moves.process(range.process);
    into.ranges.push_back(range);
  }
}

}  // namespace purlin::profile
