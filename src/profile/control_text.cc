// SPDX-License-Identifier: Apache-2.0
#include "profile/control_text.h"

namespace purlin::profile {
namespace {

constexpr std::string_view kProtocol = "purlin-control/1 ";

struct Word {
  std::string_view text;
  ControlRequest::Verb verb;
};
constexpr Word kWords[] = {{"status", ControlRequest::Verb::kStatus},
                           {"start", ControlRequest::Verb::kStart},
                           {"stop", ControlRequest::Verb::kStop},
                           {"window", ControlRequest::Verb::kWindow}};

// Whole text, 1 up to the longest window; 0: it is none.
std::int64_t milliseconds(std::string_view text) {
  std::int64_t value = 0;
  if (text.empty() || text.size() > 9) return 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return 0;
    value = value * 10 + (digit - '0');
  }
  return value <= kLongestWindowNs / 1'000'000 ? value : 0;
}

}  // namespace

std::string to_text(const ControlRequest& request) {
  std::string text(kProtocol);
  for (const Word& word : kWords)
    if (word.verb == request.verb) text += word.text;
  if (request.verb == ControlRequest::Verb::kWindow)
    text += ' ' + std::to_string(request.length_ns / 1'000'000);
  return text + '\n';
}

bool parse_control(std::string_view text, ControlRequest& request) {
  if (text.size() > kMaxControlBytes || text.substr(0, kProtocol.size()) != kProtocol) return false;
  text.remove_prefix(kProtocol.size());
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const std::size_t space = text.find(' ');
  const std::string_view verb = text.substr(0, space);
  for (const Word& word : kWords) {
    if (word.text != verb) continue;
    request.verb = word.verb;
    request.length_ns = 0;
    if (word.verb != ControlRequest::Verb::kWindow) return space == std::string_view::npos;
    if (space != std::string_view::npos)
      request.length_ns = milliseconds(text.substr(space + 1)) * 1'000'000;
    return request.length_ns > 0;
  }
  return false;
}

std::string control_name(std::int64_t pid) { return "control-" + std::to_string(pid); }

}  // namespace purlin::profile
