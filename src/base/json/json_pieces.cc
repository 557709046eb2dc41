// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_pieces.h"

#include <algorithm>

namespace purlin {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

}  // namespace

Status JsonPieces::add(std::string_view part) {
  while (!part.empty()) {
    // Most bytes are neither the end of a text nor a bracket.
    const std::size_t plain =
        std::min(escaped_ ? 0 : part.find_first_of(in_text_ ? "\"\\" : "\"{}[],"), part.size());
    target().append(part.substr(0, plain));
    if (in_text_ && open_.size() == 1) name_.append(part.substr(0, plain));
    if (target().size() > max_bytes_)
      return error(Code::kInvalid, "a part of the JSON document has more than {} bytes",
                   max_bytes_);
    part.remove_prefix(plain);
    if (part.empty()) break;
    PURLIN_TRY(byte(part.front()));
    part.remove_prefix(1);
  }
  return Status::ok();
}

Status JsonPieces::byte(char c) {
  if (!in_text_ && c != '"') return structure(c);
  target() += c;
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = in_text_;
  } else if (c == '"') {
    in_text_ = !in_text_;
    if (in_text_ && open_.size() == 1) name_.clear();
    return Status::ok();
  }
  if (open_.size() == 1) name_ += c;
  return Status::ok();
}

Status JsonPieces::structure(char c) {
  if (c == '{' || c == '[') {
    const bool begins = opens_container();
    target() += c;
    open_ += c;
    if (begins) container_ = c;
    return Status::ok();
  }
  if (c == ',' && inside() && open_.size() == 2) return end_piece();
  if (c == ',') {
    target() += c;
    return Status::ok();
  }
  if (inside() && open_.size() == 2) {
    PURLIN_TRY(end_piece());
    container_ = 0;
  }
  if (!open_.empty()) open_.pop_back();
  target() += c;
  return Status::ok();
}

// A member of the outermost object: its name is the last text, and a colon stands behind it.
bool JsonPieces::opens_container() const {
  if (inside() || open_ != "{") return false;
  const std::size_t last = rest_.find_last_not_of(kBlanks);
  return last != std::string::npos && rest_[last] == ':' &&
         std::find(containers_.begin(), containers_.end(), name_) != containers_.end();
}

Status JsonPieces::end_piece() {
  const bool blank = piece_.find_first_not_of(kBlanks) == std::string::npos;
  if (!blank && take_) PURLIN_TRY(take_(container_ == '{' ? "{" + piece_ + "}" : piece_));
  piece_.clear();
  return Status::ok();
}

Result<std::string> JsonPieces::rest() {
  has_end_ = !inside();
  if (has_end_) return std::move(rest_);
  const std::size_t last = piece_.find_last_not_of(kBlanks);
  const bool complete = open_.size() == 2 && !in_text_ && last != std::string::npos &&
                        (piece_[last] == '}' || piece_[last] == ']');
  if (complete) PURLIN_TRY(end_piece());
  rest_ += container_ == '{' ? "}}" : "]}";
  return std::move(rest_);
}

}  // namespace purlin
