// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/span_log.h"

#include "profile/capture/ranges/op_text.h"
#include "profile/capture/session/clock.h"

#include <utility>

namespace purlin::profile::capture {

std::uint64_t SpanLog::start(std::string_view name) {
  const std::uint64_t number = next_++;
  if (!keeping()) return number;
  try {
    Span span = {std::string(name.substr(0, kMaxRangeName)), wall_ns(), 0};
    const std::lock_guard<std::mutex> lock(mutex_);
    if (open_.size() >= kMaxOpen) {
      ++lost_;
    } else {
      open_.emplace(number, std::move(span));
      open_count_ = open_.size();
    }
  } catch (...) {
    ++lost_;
  }
  return number;
}

void SpanLog::end(std::uint64_t number) {
  if (open_count_ == 0) return;  // of those that were kept
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto open = open_.find(number);
  if (open == open_.end()) return;
  open->second.end_ns = wall_ns();
  try {
    if (ended_.size() < kMaxEnded)
      ended_.push_back(std::move(open->second));
    else
      ++lost_;
  } catch (...) {
    ++lost_;
  }
  open_.erase(open);
  open_count_ = open_.size();
}

std::vector<SpanLog::Span> SpanLog::take(bool all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Span> spans = std::exchange(ended_, {});
  if (!all) return spans;
  for (auto& [number, span] : open_) {
    span.end_ns = wall_ns();
    spans.push_back(std::move(span));
  }
  open_.clear();
  open_count_ = 0;
  return spans;
}

}  // namespace purlin::profile::capture
