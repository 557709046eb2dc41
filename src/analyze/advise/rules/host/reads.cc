// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/host/reads.h"

#include "analyze/advise/rules/walk.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/streams.h"
#include "model/profile/copy_kind.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

// Ops that only a read of the host needs, where they come right before it: a test of all values.
constexpr std::string_view kDeciding[] = {"aten::any", "aten::all", "aten::equal",
                                          "aten::count_nonzero"};
constexpr std::string_view kTesting[] = {
    "aten::isnan",      "aten::isinf",       "aten::isfinite",    "aten::ne",
    "aten::eq",         "aten::abs",         "aten::lt",          "aten::le",
    "aten::gt",         "aten::ge",          "aten::logical_not", "aten::logical_and",
    "aten::logical_or", "aten::bitwise_and", "aten::bitwise_or"};
template <std::size_t kCount>
bool one_of(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr std::string_view kScalars[] = {"aten::item", "aten::_local_scalar_dense",
                                         "aten::is_nonzero"};

// Ops that read a value of the device: they go with the wait, and the host's time in them.
constexpr std::string_view kReading[] = {
    "aten::item",  "aten::_local_scalar_dense", "aten::to",     "aten::_to_copy",
    "aten::copy_", "aten::is_nonzero",          "aten::nonzero"};
// Of these names, from an op upwards.
template <std::size_t kCount>
const Op* outermost(const Timeline& timeline, std::uint32_t op,
                    const std::string_view (&names)[kCount]) {
  const Op* out = nullptr;
  int seen = 0;
  for (; op < timeline.ops.size() && ++seen < kMostOpsAbove; op = timeline.ops[op].parent)
    if (one_of(names, name_in(timeline, timeline.ops[op].name))) out = &timeline.ops[op];
  return out;
}
template <std::size_t kCount>
const Op* outermost_of_call(const Timeline& timeline, std::uint32_t call,
                            const std::string_view (&names)[kCount]) {
  return call < timeline.calls.size() ? outermost(timeline, timeline.calls[call].op, names)
                                      : nullptr;
}
std::int64_t begin_of_outermost(const Timeline& timeline, std::uint32_t op) {
  std::int64_t begin = begin_of(timeline.ops[op]);
  int seen = 0;
  for (; op < timeline.ops.size() && ++seen < kMostOpsAbove; op = timeline.ops[op].parent)
    begin = begin_of(timeline.ops[op]);
  return begin;
}

class FindReads {
 public:
  explicit FindReads(const Profile& profile) : profile_(profile), timeline_(profile.timeline) {}

  Reads run(const std::vector<std::uint32_t>& calls) {
    for (const std::uint32_t i : calls) {
      if (const Op* op = outermost_of_call(timeline_, i, kReading))
        found_[begin_of(*op)] = end_of(*op);
      if (is_of_program(outermost_of_call(timeline_, i, kScalars))) out_.values += 1;
    }
    const Streams streams(timeline_);
    for (const StreamWork& stream : streams.all())
      for (std::size_t i = 0; i < stream.activities.size(); ++i) look_at(stream.activities, i);
    for (const auto& [begin, end] : found_)
      if (out_.when.empty() || out_.when.back().end <= begin) out_.when.push_back({begin, end});
    return std::move(out_);
  }

 private:
  // Not of an op that needs a value to know its own size, such as aten::repeat_interleave.
  bool is_of_program(const Op* scalar) const {
    if (scalar == nullptr) return false;
    int seen = 0;
    for (std::uint32_t op = scalar->parent; op < timeline_.ops.size() && ++seen < kMostOpsAbove;
         op = timeline_.ops[op].parent)
      if (name_in(timeline_, timeline_.ops[op].name).find("autograd") == std::string_view::npos)
        return false;
    return true;
  }
  void look_at(std::span<const std::uint32_t> work, std::size_t at) {
    const Activity& one = timeline_.activities[work[at]];
    const Op* op = outermost_of_call(timeline_, one.call, kReading);
    if (op == nullptr || !found_.contains(begin_of(*op))) return;
    const bool copied = one.kind == ActivityKind::kCopy && one.row < profile_.copies.size();
    const bool to_host = copied && copy_direction(profile_.copies[one.row].kind) == "d2h";
    if (one.kind == ActivityKind::kKernel || to_host) out_.work.push_back(work[at]);
    if (!to_host || one.bytes > kReadBytes) return;
    const std::int64_t end = end_of(*op);
    std::int64_t begin = begin_of(*op);
    bool decided = false;
    for (; at > 0; --at) {
      const Activity& before = timeline_.activities[work[at - 1]];
      if (before.kind == ActivityKind::kSet && decided) continue;
      if (before.kind != ActivityKind::kKernel || before.call >= timeline_.calls.size()) break;
      const std::uint32_t its = timeline_.calls[before.call].op;
      if (its >= timeline_.ops.size()) break;
      // A test may be made of other ops: aten::isfinite calls abs, ne, eq and mul.
      if ((decided ? outermost(timeline_, its, kTesting) : outermost(timeline_, its, kDeciding)) ==
          nullptr)
        break;
      decided = true;
      out_.work.push_back(work[at - 1]);
      begin = std::min(begin, begin_of_outermost(timeline_, its));
    }
    if (!decided) return;
    found_[begin] = std::max(found_[begin], end);
    out_.tests += 1;
  }

  const Profile& profile_;
  const Timeline& timeline_;
  std::map<std::int64_t, std::int64_t> found_;  // begin -> end, of the outermost
  Reads out_;
};

bool gives_work(const Call& call) {
  return call.kind == CallKind::kLaunch || call.kind == CallKind::kGraphLaunch ||
         call.kind == CallKind::kCopy;
}

}  // namespace

Reads find_reads(const Profile& profile, const std::vector<std::uint32_t>& calls) {
  return FindReads(profile).run(calls);
}

ReadsInARow reads_in_a_row(const Timeline& timeline) {
  ReadsInARow out;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Op*> last;  // read, by thread
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    const bool waits = waits_for_device(timeline, call);
    if (!waits && !gives_work(call)) continue;
    const Op* op = outermost(timeline, call.op, kScalars);
    const std::pair<std::uint32_t, std::uint32_t> thread{call.process, call.thread};
    if (op == nullptr || call.kind == CallKind::kLaunch || call.kind == CallKind::kGraphLaunch) {
      if (gives_work(call)) last[thread] = nullptr;
      continue;
    }
    if (!waits) continue;
    const Op*& before = last[thread];
    if (before != nullptr && before != op) {
      out.again.push_back(i);
      const Interval between{end_of(*before), begin_of(*op)};
      if (between.begin < between.end &&
          (out.between.empty() || out.between.back().end <= between.begin))
        out.between.push_back(between);
    }
    before = op;
  }
  return out;
}

}  // namespace purlin::analyze
