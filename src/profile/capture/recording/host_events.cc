// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/recording/host_events.h"

namespace purlin::profile::capture {

std::uint32_t HostEvents::add_op(const OpIds& op) {
  ops_.push_back(op);
  return static_cast<std::uint32_t>(ops_.size() - 1);
}

std::uint32_t HostEvents::name(std::uint32_t text) {
  const auto [position, added] =
      names_.try_emplace(text, static_cast<std::uint32_t>(names_.size() + 1));
  if (added) new_names_.push_back(text);
  return position->second;
}

std::uint32_t HostEvents::add_call(const Call& call) {
  calls_.add(call);
  return next_call_++;
}

void HostEvents::append(std::string& out) {
  if (!new_names_.empty()) {
    wire::Encoder names;
    names.varint(new_names_.size());
    for (const std::uint32_t text : new_names_) names.varint(text);
    wire::append_chunk(out, wire::ChunkType::kNames, names.bytes());
    new_names_.clear();
  }
  if (ranges_.count() > 0) wire::append_chunk(out, wire::ChunkType::kRanges, ranges_.finish());
  if (calls_.count() > 0) wire::append_chunk(out, wire::ChunkType::kCalls, calls_.finish());
}

}  // namespace purlin::profile::capture
