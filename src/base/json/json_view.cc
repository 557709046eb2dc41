// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace purlin {
namespace {

constexpr int kMaxDepth = 32;
// So that every integer fits, every real is finite and offsets fit their words.
constexpr std::ptrdiff_t kMaxIntegerDigits = 18, kMaxRealText = 64, kMaxExponentDigits = 2;
constexpr std::size_t kMaxText = std::size_t{1} << 30;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::int64_t JsonView::as_int(std::int64_t fallback) const {
  if (is_int()) {
    std::int64_t value = 0;
    std::from_chars(node().text, node().text + node().length, value);
    return value;
  }
  if (!is_number()) return fallback;
  const double real = as_double();
  // As Json has it.
  if (real >= -9223372036854775808.0 && real < 9223372036854775808.0 && real == std::floor(real))
    return static_cast<std::int64_t>(real);
  return fallback;
}

double JsonView::as_double(double fallback) const {
  if (is_int()) return static_cast<double>(as_int());
  if (!is_number()) return fallback;
  double value = 0;
  std::from_chars(node().text, node().text + node().length, value);
  return value;
}

std::string_view JsonView::text() const {
  return nodes_ == nullptr ? std::string_view("null")
                           : std::string_view(node().text, node().length);
}

std::size_t JsonView::size() const { return is_array() || is_object() ? node().count : 0; }

JsonView::Range<JsonView> JsonView::items() const {
  if (!is_array()) return {nullptr, 0, 0, 0};
  return {nodes_, at_ + 1, node().end, node().count};
}

JsonView::Range<JsonView::Member> JsonView::members() const {
  if (!is_object()) return {nullptr, 0, 0, 0};
  return {nodes_, at_ + 1, node().end, node().count};
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  const Node* const nodes = nodes_->data();
  std::uint32_t found = 0;
  for (std::uint32_t at = at_ + 1; at != nodes[at_].end; at = nodes[at + 1].end)
    if (nodes[at].length == key.size() && std::equal(key.begin(), key.end(), nodes[at].text))
      found = at + 1;
  if (found == 0) return std::nullopt;
  return JsonView(nodes_, found);
}

bool JsonScan::scan(std::string_view text) {
  nodes_.clear();
  if (text.size() > kMaxText) return false;
  at_ = text.data();
  end_ = at_ + text.size();
  skip_space();
  if (!value(0)) return false;
  skip_space();
  return at_ == end_;
}

void JsonScan::add(JsonView::Kind kind, const char* text, const char* end) {
  nodes_.push_back({text, static_cast<std::uint32_t>(end - text),
                    static_cast<std::uint32_t>(nodes_.size() + 1), 0, kind, true, false});
}

void JsonScan::skip_space() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) {
    ++at_;
    ++spaces_;
  }
}

// A mark of the grammar, and the space after it.
bool JsonScan::take(char c) {
  if (at_ == end_ || *at_ != c) return false;
  ++at_;
  skip_space();
  return true;
}

bool JsonScan::value(int depth) {
  if (at_ == end_ || depth > kMaxDepth) return false;
  switch (*at_) {
    case '{':
      return object(depth);
    case '[':
      return array(depth);
    case '"':
      return string();
    case 't':
      return word("true", JsonView::Kind::kBool);
    case 'f':
      return word("false", JsonView::Kind::kBool);
    case 'n':
      return word("null", JsonView::Kind::kNull);
    default:
      return number();
  }
}

// At the last mark of what began as node `self`, when so many spaces and objects were passed.
void JsonScan::close(std::size_t self, std::uint32_t count, std::size_t spaces,
                     std::size_t objects) {
  ++at_;
  JsonView::Node& node = nodes_[self];
  node.count = count;
  node.length = static_cast<std::uint32_t>(at_ - node.text);
  node.end = static_cast<std::uint32_t>(nodes_.size());
  node.dense = spaces == spaces_;
  node.objects = objects != objects_;
}

bool JsonScan::object(int depth) {
  const std::size_t self = nodes_.size(), spaces = spaces_, objects = objects_;
  ++objects_;
  add(JsonView::Kind::kObject, at_, at_);
  ++at_;
  skip_space();
  std::uint32_t count = 0;
  if (at_ == end_ || *at_ != '}') {
    do {
      if (at_ == end_ || *at_ != '"' || !string()) return false;
      skip_space();
      if (!take(':') || !value(depth + 1)) return false;
      skip_space();
      ++count;
    } while (take(','));
    if (at_ == end_ || *at_ != '}') return false;
  }
  close(self, count, spaces, objects);
  return true;
}

bool JsonScan::array(int depth) {
  const std::size_t self = nodes_.size(), spaces = spaces_, objects = objects_;
  add(JsonView::Kind::kArray, at_, at_);
  ++at_;
  skip_space();
  std::uint32_t count = 0;
  if (at_ == end_ || *at_ != ']') {
    do {
      if (!value(depth + 1)) return false;
      skip_space();
      ++count;
    } while (take(','));
    if (at_ == end_ || *at_ != ']') return false;
  }
  close(self, count, spaces, objects);
  return true;
}

bool JsonScan::string() {
  const char* const begin = ++at_;
  while (at_ != end_ && *at_ != '"') {
    // Whether other bytes are UTF-8, and what escapes mean, is Json::parse's to say.
    if (*at_ < 0x20 || *at_ > 0x7E || *at_ == '\\') return false;
    ++at_;
  }
  if (at_ == end_) return false;
  add(JsonView::Kind::kString, begin, at_);
  ++at_;
  return true;
}

bool JsonScan::number() {
  const char* const begin = at_;
  const auto digits = [this] {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ - first;
  };
  const bool negative = *at_ == '-';
  if (negative) ++at_;
  const char* const integer = at_;
  const std::ptrdiff_t count = digits();
  if (count == 0 || (*integer == '0' && count > 1)) return false;
  bool real = false;
  if (at_ != end_ && *at_ == '.') {
    real = true;
    ++at_;
    if (digits() == 0) return false;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    real = true;
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    const std::ptrdiff_t exponent = digits();
    if (exponent == 0 || exponent > kMaxExponentDigits) return false;
  }
  if (real ? at_ - begin > kMaxRealText
           : count > kMaxIntegerDigits || (negative && *integer == '0'))
    return false;
  add(real ? JsonView::Kind::kReal : JsonView::Kind::kInt, begin, at_);
  return true;
}

bool JsonScan::word(std::string_view text, JsonView::Kind kind) {
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(text)) return false;
  add(kind, at_, at_ + text.size());
  at_ += text.size();
  return true;
}

}  // namespace purlin
