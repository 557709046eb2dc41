// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/span_pairs.h"

#include "base/hash.h"
#include "profile/import/chrome/raw_values.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxOpen = 100'000;

std::uint64_t track_hash(const ChromeEvent& event) {
  return hash64(event[Field::kPid]) * 0x9E3779B97F4A7C15ull ^ hash64(event[Field::kTid]);
}

template <class Visit>
void each_member(const ChromeEvent& event, Visit visit) {
  for (unsigned i = 0; i < static_cast<unsigned>(Field::kCount); ++i)
    if (event.has(static_cast<Field>(i))) visit(static_cast<Field>(i));
}

}  // namespace

bool SpanPairs::begin(const ChromeEvent& event) {
  if (open_count_ >= kMaxOpen) return false;
  auto open = std::make_unique<Open>();
  std::size_t bytes = 0;
  each_member(event, [&](Field field) { bytes += event[field].size(); });
  open->text.reserve(bytes);  // views into it stay
  each_member(event, [&](Field field) {
    const std::size_t at = open->text.size();
    open->text += event[field];
    open->event.set(field, std::string_view(open->text).substr(at));
  });
  open_[track_hash(event)].push_back(std::move(open));
  ++open_count_;
  return true;
}

const ChromeEvent* SpanPairs::end(const ChromeEvent& event) {
  const auto track = open_.find(track_hash(event));
  if (track == open_.end()) return nullptr;
  closed_ = std::move(track->second.back());
  track->second.pop_back();
  if (track->second.empty()) open_.erase(track);
  --open_count_;
  ChromeEvent& whole = closed_->event;
  const std::optional<std::int64_t> from = us_to_ns(whole[Field::kTime]);
  const std::optional<std::int64_t> to = us_to_ns(event[Field::kTime]);
  if (!from || !to || *to < *from) return nullptr;
  each_member(event, [&](Field field) {
    if (!whole.has(field)) whole.set(field, event[field]);
  });
  const std::int64_t ns = *to - *from;
  closed_->duration = fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  whole.set(Field::kDuration, closed_->duration);
  whole.set(Field::kPhase, "X");
  return &whole;
}

}  // namespace purlin::profile
