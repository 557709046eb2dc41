// SPDX-License-Identifier: Apache-2.0
// JsonPieces: cuts a JSON document that arrives in parts into the members or items of its large
// containers, so that the document is never in memory as a whole.
//
// A container is a member of the outermost object, an object or an array. Each of its members or
// items is handed out as a piece. What remains, the rest, is the document with empty containers.
// Whether pieces and rest are JSON is for their parser to say. Thread-safety: belongs to one
// thread. Failure: kInvalid for a piece or a rest over its limit; otherwise what the piece's taker
// returns.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

class JsonPieces {
 public:
  // The name of a member with its value as an object of one member, or an item.
  using Take = std::function<Status(std::string_view piece)>;

  // `take` may be empty: then pieces are only skipped.
  JsonPieces(std::vector<std::string> containers, Take take, std::size_t max_bytes)
      : containers_(std::move(containers)), take_(std::move(take)), max_bytes_(max_bytes) {}

  Status add(std::string_view part);
  // Once all parts were added. Brackets that are open in a container are closed: the document then
  // has no end, and the piece that was not complete is left out.
  Result<std::string> rest();
  bool has_end() const { return has_end_; }

 private:
  Status byte(char c);
  Status structure(char c);
  Status end_piece();
  bool opens_container() const;
  bool inside() const { return container_ != 0; }
  std::string& target() { return inside() ? piece_ : rest_; }

  std::vector<std::string> containers_;
  Take take_;
  std::size_t max_bytes_;
  std::string rest_, piece_;
  std::string open_;    // brackets
  char container_ = 0;  // its opening bracket, while in one
  std::string name_;    // the last text of the outermost object
  bool in_text_ = false, escaped_ = false, has_end_ = true;
};

}  // namespace purlin
