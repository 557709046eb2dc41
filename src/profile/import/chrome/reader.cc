// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/reader.h"

#include "profile/import/chrome/json_scan.h"

#include <algorithm>
#include <cstring>

namespace purlin::profile {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kMinWindowBytes = std::size_t{4} << 10;

}  // namespace

TraceReader::TraceReader(Input input) : input_(std::move(input)) {
  // No more than a small file needs: it is the zeroing that costs.
  std::size_t bytes = kReadBytes;
  if (!input_.compressed() && input_.file_size() > 0)
    bytes = std::clamp<std::uint64_t>(input_.file_size() + 1, kMinWindowBytes, kReadBytes);
  window_.resize(bytes + kScanPadding);
}

void TraceReader::note_damage(const char* what, std::uint64_t at) {
  ++damaged_places_;
  if (damage_.is_ok()) damage_ = error(Code::kCorrupt, "{} at byte {}", what, at);
}

bool TraceReader::damaged(const char* what, std::uint64_t at) {
  note_damage(what, at);
  state_ = State::kDone;
  return false;
}

// The text has ended inside something that began at `began`.
bool TraceReader::cut(const char* where, std::uint64_t began) {
  if (!input_failed_) ++damaged_places_;
  if (damage_.is_ok())
    damage_ = error(Code::kCorrupt, "the text ends at byte {}, inside {} that began at byte {}",
                    offset_of(end_), where, began);
  state_ = State::kDone;
  return false;
}

bool TraceReader::refill() {
  if (input_failed_) return false;
  std::size_t room = window_.size() - kScanPadding;
  if (at_ == 0 && end_ == room) {
    if (room >= kMaxEventBytes) return false;
    room *= 2;
    window_.resize(room + kScanPadding);
  } else if (at_ > 0) {
    std::memmove(window_.data(), p(), end_ - at_);
    end_ -= at_;
    at_ = 0;
  }
  bool grew = false;
  while (end_ < room) {
    Result<std::size_t> got = input_.read(window_.data() + end_, room - end_);
    if (!got.is_ok()) {
      input_failed_ = true;
      ++damaged_places_;
      if (damage_.is_ok()) damage_ = got.status();
      break;
    }
    if (*got == 0) break;
    end_ += *got;
    grew = true;
  }
  std::memset(window_.data() + end_, 0, kScanPadding);
  return grew;
}

bool TraceReader::skip_space() {
  while (true) {
    at_ = static_cast<std::size_t>(profile::skip_space(p()) - window_.data());
    if (at_ < end_) return true;
    if (!refill()) return false;
  }
}

// One value of any size, without keeping it.
bool TraceReader::step_over_value() {
  bool in_text = false, escaped = false, word = false;
  std::uint64_t depth = 0;
  while (true) {
    for (; at_ < end_; ++at_) {
      const char c = window_[at_];
      if (in_text) {
        if (escaped) {
          escaped = false;
        } else if (c == '\\') {
          escaped = true;
        } else if (c == '"') {
          in_text = false;
          if (depth == 0) return ++at_, true;
        }
      } else if (c == '"') {
        in_text = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return word;  // closes what the value is in
        if (--depth == 0) return ++at_, true;
      } else if (depth == 0) {
        if (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t') return word;
        word = true;
      }
    }
    if (!refill()) return false;
  }
}

bool TraceReader::read_key(std::string& key) {
  while (true) {
    const char* const quote = find_quote(p() + 1, end());
    if (quote != nullptr) {
      key.assign(p() + 1, quote);
      at_ = static_cast<std::size_t>(quote + 1 - window_.data());
      return true;
    }
    if (!refill()) return false;
  }
}

void TraceReader::start() {
  constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";
  if (!skip_space()) {
    if (!input_failed_) damaged("there is no JSON: the text is empty", 0);
    state_ = State::kDone;
    return;
  }
  if (end_ - at_ >= 3 && std::memcmp(p(), kByteOrderMark, 3) == 0) at_ += 3;
  if (!skip_space() || (*p() != '[' && *p() != '{')) {
    damaged("this is no JSON object or array", offset_of(at_));
    return;
  }
  bare_ = *p() == '[';
  found_events_ = bare_;
  state_ = bare_ ? State::kEvents : State::kMembers;
  ++at_;
}

// Other text behind the document is no concern of ours.
void TraceReader::end_of_document() {
  state_ = State::kDone;
  if (skip_space() && (*p() == '{' || *p() == '['))
    note_damage("a second JSON document follows the first, and was not read", offset_of(at_));
}

// One member of the outer object; at "traceEvents" the state changes.
void TraceReader::member() {
  const std::uint64_t began = offset_of(at_);
  if (!skip_space()) {
    cut("the outer object", began);
    return;
  }
  if (*p() == ',') {
    ++at_;
    return;
  }
  if (*p() == '}') {
    ++at_;
    end_of_document();
    return;
  }
  std::string key;
  if (*p() != '"') {
    damaged("a member's name is missing", offset_of(at_));
    return;
  }
  if (!read_key(key) || !skip_space()) {
    cut("a member", began);
    return;
  }
  if (*p() != ':') {
    damaged("a ':' is missing", offset_of(at_));
    return;
  }
  ++at_;
  if (!skip_space()) {
    cut("a member", began);
    return;
  }
  if (key == "traceEvents" && *p() == '[') {
    ++at_;
    found_events_ = true;
    list_began_ = offset_of(at_);
    state_ = State::kEvents;
    return;
  }
  while (true) {
    const char* const behind = skip_value(p(), end());
    if (behind == p()) {
      damaged("a value is missing", offset_of(at_));
      return;
    }
    if (behind != nullptr) {
      const std::string_view text(p(), static_cast<std::size_t>(behind - p()));
      Json::Limits limits;
      limits.max_depth = 64;
      Result<Json> value = Json::parse(text, limits);
      constexpr std::size_t kMaxMembers = 256, kMaxNames = 200;
      if (value.is_ok() && members_.size() < kMaxMembers && text.size() <= kMaxMemberBytes)
        members_.set(key, std::move(value).value());
      else if (unreadable_members_.size() < kMaxNames)
        unreadable_members_ += (unreadable_members_.empty() ? "" : ", ") + key.substr(0, kMaxNames);
      at_ += text.size();
      return;
    }
    if (end_ - at_ > kMaxMemberBytes || !refill()) break;
  }
  if (!step_over_value()) cut("a member", began);
}

// From a place that makes no sense to the next "{" with a member that events begin with. Inside an
// event that is damaged itself there may be such, too: what follows it then is damage again.
bool TraceReader::find_next_event() {
  constexpr std::size_t kLongestStart = 64;
  while (true) {
    const char* p = this->p();
    while (p < end()) {
      p = static_cast<const char*>(std::memchr(p, '{', static_cast<std::size_t>(end() - p)));
      if (p == nullptr || end() - p < static_cast<std::ptrdiff_t>(kLongestStart)) break;
      const char* const key = profile::skip_space(p + 1);
      for (const std::string_view member : {"\"ph\"", "\"name\"", "\"cat\"", "\"pid\"", "\"ts\""})
        if (std::strncmp(key, member.data(), member.size()) == 0) {
          at_ = static_cast<std::size_t>(p - window_.data());
          return true;
        }
      ++p;
    }
    // Too near the end of the window to be seen whole: look again with more behind it.
    at_ = p == nullptr ? end_ : static_cast<std::size_t>(p - window_.data());
    if (!refill()) return false;
  }
}

bool TraceReader::event(ChromeEvent& event, bool flows) {
  while (true) {
    if (!skip_space()) return cut("the list of events", list_began_);
    if (*p() == ',') {
      ++at_;
      continue;
    }
    if (*p() == ']') {
      ++at_;
      state_ = State::kMembers;
      reached_end_ = true;
      if (bare_) end_of_document();
      return false;
    }
    if (*p() != '{') {
      note_damage("an event is no JSON object", offset_of(at_));
      if (!find_next_event()) return cut("what is damaged", offset_of(at_));
      continue;
    }
    const char* text = p() + 1;
    const Parse parsed = parse_event(text, end(), flows, event);
    if (parsed == Parse::kDone) {
      at_ = static_cast<std::size_t>(text - window_.data());
      ++events_;
      return true;
    }
    if (parsed == Parse::kMalformed) {
      at_ = static_cast<std::size_t>(text - window_.data());
      note_damage("an event makes no sense", offset_of(at_));
      if (!find_next_event()) return cut("what is damaged", offset_of(at_));
      continue;
    }
    const std::uint64_t began = offset_of(at_);
    if (refill()) continue;
    if (end_ - at_ < kMaxEventBytes || !step_over_value()) return cut("an event", began);
    ++oversized_;
  }
}

bool TraceReader::next(ChromeEvent& out, bool flows) {
  while (state_ != State::kDone) {
    switch (state_) {
      case State::kStart:
        start();
        break;
      case State::kMembers:
        member();
        break;
      case State::kEvents:
        if (event(out, flows)) return true;
        break;
      case State::kDone:
        break;
    }
  }
  return false;
}

}  // namespace purlin::profile
