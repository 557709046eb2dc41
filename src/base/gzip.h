// SPDX-License-Identifier: Apache-2.0
// gzip, as recorded search spaces and traces come in and as records are shared. Free functions,
// safe from any thread; a Gunzip belongs to one thread.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace purlin {

// True for the two bytes every gzip file starts with.
bool is_gzip(std::string_view data);
// The contents of all members. kInvalid when they are damaged, cut short, or would be larger than
// max_bytes: a small file can claim to hold terabytes.
Result<std::string> gunzip(std::string_view data, std::size_t max_bytes);

// The same for data that arrives in parts, whose contents leave in parts.
class Gunzip {
 public:
  using Take = std::function<Status(std::string_view part)>;

  Gunzip(Take take, std::size_t max_bytes);
  ~Gunzip();
  Status add(std::string_view data);
  // Once all data was added.
  Status finish() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  Take take_;
  std::size_t max_bytes_, taken_ = 0;
};

// One member, without a name or a time: the same data gives the same bytes.
Result<std::string> gzip(std::string_view data);

}  // namespace purlin
