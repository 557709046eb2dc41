// SPDX-License-Identifier: Apache-2.0
#include "profile/format/stall_sites.h"

#include <utility>

namespace purlin::profile::wire {

void StallEncoder::begin(const StallOwner& owner) {
  end_function();
  functions_.varint(owner.name);
  functions_.varint(owner.device);
  functions_.varint(owner.build);
  functions_.fixed64(owner.code);
  ++function_count_;
  open_ = true;
}

void StallEncoder::place(const StallPlace& place, std::size_t reasons) {
  sites_.varint(place.offset + 1);  // 0 = not kept
  sites_.varint(place.file);
  sites_.varint(place.line);
  sites_.varint(reasons);
  ++site_count_;
}

void StallEncoder::count(std::uint32_t reason, std::uint64_t samples) {
  sites_.varint(reason);
  sites_.varint(samples);
}

void StallEncoder::end_function() {
  if (!std::exchange(open_, false)) return;
  functions_.varint(std::exchange(site_count_, 0));
  functions_.raw(sites_.bytes());
  sites_.clear();
}

std::string StallEncoder::finish(const StallWindows& windows) {
  end_function();
  Encoder out;
  out.varint(windows.windows);
  out.varint(windows.sampled_ns);
  out.varint(windows.least_period);
  out.varint(windows.most_period);
  out.varint(windows.dropped);
  out.varint(windows.untold);
  out.varint(std::exchange(function_count_, 0));
  out.raw(functions_.bytes());
  functions_.clear();
  return out.bytes();
}

StallWindows decode_stall_windows(Decoder& in) {
  StallWindows windows;
  windows.windows = in.varint();
  windows.sampled_ns = in.varint();
  windows.least_period = in.varint();
  windows.most_period = in.varint();
  windows.dropped = in.varint();
  windows.untold = in.varint();
  return windows;
}

StallOwner decode_stall_owner(Decoder& in) {
  StallOwner owner;
  owner.name = in.varint32();
  owner.device = in.varint32();
  owner.build = in.varint32();
  owner.code = in.fixed64();
  return owner;
}

StallPlace decode_stall_place(Decoder& in) {
  StallPlace place;
  place.offset = in.varint() - 1;
  place.file = in.varint32();
  place.line = in.varint32();
  return place;
}

}  // namespace purlin::profile::wire
