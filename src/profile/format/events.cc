// SPDX-License-Identifier: Apache-2.0
#include "profile/format/events.h"

#include <algorithm>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin::profile::wire {
namespace {

// Differences wrap, so that any two values have one and a damaged file is no undefined behaviour.
std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b);
}

std::int64_t difference(std::int64_t a, std::int64_t b) {
  return difference(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// A link is encoded relative to the previous one.
void put_link(Encoder& out, std::uint32_t& previous, std::uint32_t link) {
  out.signed_varint(std::int64_t{link} - std::int64_t{previous});
  previous = link;
}

std::uint32_t get_link(Decoder& in, std::uint32_t& previous) {
  const std::int64_t link = sum(previous, in.signed_varint());
  if (link < 0 || link >= std::int64_t{kNone}) in.fail();
  return previous = static_cast<std::uint32_t>(link);
}

}  // namespace

std::size_t EventsEncoder::Hash::operator()(const Identity& identity) const {
  return XXH3_64bits(identity.data(), sizeof identity);
}

EventsEncoder::Known& EventsEncoder::begin(const Identity& identity, std::size_t width,
                                           std::int64_t start_ns, std::int64_t since_ns,
                                           std::int64_t duration_ns) {
  const auto number = static_cast<std::uint32_t>(known_.size());
  const auto [position, added] = known_.try_emplace(identity, Known{number, 0, 0});
  Known& known = position->second;
  body_.varint(known.number);
  if (added)
    for (std::size_t i = 0; i < width; ++i) body_.varint(identity[i]);
  body_.signed_varint(difference(start_ns, since_ns));
  body_.signed_varint(difference(duration_ns, known.duration_ns));
  known.duration_ns = duration_ns;
  ++count_;
  return known;
}

std::string EventsEncoder::finish() {
  Encoder out;
  out.fixed64(static_cast<std::uint64_t>(base_ns_));
  out.varint(count_);
  out.raw(body_.bytes());
  body_.clear();
  known_.clear();
  count_ = 0;
  link_ = 0;
  return out.bytes();
}

EventsDecoder::EventsDecoder(std::string_view payload, std::size_t width)
    : in_(payload), width_(width) {
  head_.base_ns = previous_ns_ = static_cast<std::int64_t>(in_.fixed64());
  head_.count = in_.count(kMinEventBytes);
}

EventsDecoder::Known* EventsDecoder::begin(std::int64_t& start_ns) {
  const std::uint64_t number = in_.varint();
  if (number > known_.size()) in_.fail();
  if (in_.failed()) return nullptr;
  if (number == known_.size()) {
    Known& known = known_.emplace_back();
    for (std::size_t i = 0; i < width_; ++i) known.identity[i] = in_.varint32();
  }
  Known& known = known_[static_cast<std::size_t>(number)];
  start_ns = sum(previous_ns_, in_.signed_varint());
  known.duration_ns = sum(known.duration_ns, in_.signed_varint());
  if (known.duration_ns < 0) in_.fail();
  return in_.failed() ? nullptr : &known;
}

void ActivityEncoder::add(const Activity& activity) {
  if (count_ == 0) base_ns_ = previous_ns_ = activity.start_ns;
  const bool linked = activity.call != kNone;
  const auto kind = static_cast<std::uint32_t>(activity.kind);
  const std::int64_t duration_ns = std::max<std::int64_t>(activity.duration_ns, 0);
  Known& known = begin({kind * 2 + (linked ? 1u : 0u), activity.row, activity.process,
                        activity.device, activity.stream, activity.graph},
                       6, activity.start_ns, previous_ns_, duration_ns);
  if (activity.kind != ActivityKind::kKernel) {
    body_.signed_varint(difference(activity.bytes, known.bytes));
    known.bytes = activity.bytes;
  }
  if (linked) put_link(body_, link_, activity.call);
  previous_ns_ = sum(activity.start_ns, duration_ns);
}

bool ActivityDecoder::next(Activity& activity) {
  Known* known = begin(activity.start_ns);
  if (known == nullptr) return false;
  const Identity& identity = known->identity;
  if (identity[0] > 5 || identity[3] > 0xFFFF) return in_.fail(), false;
  activity.kind = static_cast<ActivityKind>(identity[0] / 2);
  activity.row = identity[1];
  activity.process = identity[2];
  activity.device = static_cast<std::uint16_t>(identity[3]);
  activity.stream = identity[4];
  activity.graph = identity[5];
  activity.duration_ns = known->duration_ns;
  activity.bytes = 0;
  if (activity.kind != ActivityKind::kKernel)
    activity.bytes = known->bytes += static_cast<std::uint64_t>(in_.signed_varint());
  activity.call = identity[0] % 2 == 1 ? get_link(in_, link_) : kNone;
  previous_ns_ = sum(activity.start_ns, activity.duration_ns);
  return !in_.failed();
}

void CallEncoder::add(const Call& call) {
  if (count_ == 0) base_ns_ = previous_ns_ = call.start_ns;
  const bool linked = call.op != kNone;
  const auto kind = static_cast<std::uint32_t>(call.kind);
  begin({kind * 2 + (linked ? 1u : 0u), call.name, call.process, call.thread, 0, 0}, 4,
        call.start_ns, previous_ns_, std::max<std::int64_t>(call.duration_ns, 0));
  if (linked) put_link(body_, link_, call.op);
  previous_ns_ = call.start_ns;
}

bool CallDecoder::next(Call& call) {
  const Known* known = begin(call.start_ns);
  if (known == nullptr) return false;
  const Identity& identity = known->identity;
  if (identity[0] / 2 > static_cast<std::uint32_t>(CallKind::kOther)) return in_.fail(), false;
  call.kind = static_cast<CallKind>(identity[0] / 2);
  call.name = identity[1];
  call.process = identity[2];
  call.thread = identity[3];
  call.duration_ns = known->duration_ns;
  call.op = identity[0] % 2 == 1 ? get_link(in_, link_) : kNone;
  previous_ns_ = call.start_ns;
  return !in_.failed();
}

// A parent is encoded relative to the op: 0 would be the op, and means none.
void OpEncoder::add(const Op& op) {
  if (count_ == 0) base_ns_ = previous_ns_ = op.start_ns;
  begin({op.name, op.shape, op.dtype, op.process, op.thread, 0}, 5, op.start_ns, previous_ns_,
        std::max<std::int64_t>(op.duration_ns, 0));
  body_.signed_varint(op.parent == kNone ? 0 : std::int64_t{index_} - std::int64_t{op.parent});
  ++index_;
  previous_ns_ = op.start_ns;
}

bool OpDecoder::next(Op& op, std::uint32_t index) {
  const Known* known = begin(op.start_ns);
  if (known == nullptr) return false;
  const Identity& identity = known->identity;
  op.name = identity[0];
  op.shape = identity[1];
  op.dtype = identity[2];
  op.process = identity[3];
  op.thread = identity[4];
  op.duration_ns = known->duration_ns;
  const std::int64_t distance = in_.signed_varint();
  const std::int64_t parent = difference(std::int64_t{index}, distance);
  if (distance != 0 && (parent < 0 || parent >= std::int64_t{kNone})) in_.fail();
  op.parent = distance == 0 ? kNone : static_cast<std::uint32_t>(parent);
  previous_ns_ = op.start_ns;
  return !in_.failed();
}

void RangeEncoder::add(const Range& range) {
  if (count_ == 0) base_ns_ = previous_ns_ = range.start_ns;
  begin({static_cast<std::uint32_t>(range.kind), range.name, range.process, range.thread, 0, 0}, 4,
        range.start_ns, previous_ns_, std::max<std::int64_t>(range.duration_ns, 0));
  previous_ns_ = range.start_ns;
}

bool RangeDecoder::next(Range& range) {
  const Known* known = begin(range.start_ns);
  if (known == nullptr) return false;
  const Identity& identity = known->identity;
  if (identity[0] > static_cast<std::uint32_t>(RangeKind::kProfiler)) return in_.fail(), false;
  range.kind = static_cast<RangeKind>(identity[0]);
  range.name = identity[1];
  range.process = identity[2];
  range.thread = identity[3];
  range.duration_ns = known->duration_ns;
  previous_ns_ = range.start_ns;
  return !in_.failed();
}

}  // namespace purlin::profile::wire
