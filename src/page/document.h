// SPDX-License-Identifier: Apache-2.0
// Document: what one view of the page shows: a JSON head, and typed arrays for what is too much for
// JSON. The head's member `arrays` says where each array is in `bytes`. The same document is in a
// file and over HTTP (docs/formats/page.md). A value; one thread.
#pragma once

#include "base/json/json.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace purlin::page {

class Document {
 public:
  // `name`: letters, digits and '-', as in an element's id. `head`: an object with a `schema`.
  Document(std::string name, Json head);

  // Little-endian, aligned to 8 bytes.
  void add(std::string_view key, std::span<const double> values);
  void add(std::string_view key, std::span<const std::uint32_t> values);
  void add(std::string_view key, std::span<const std::uint8_t> values);

  void set(std::string_view key, Json value) { head_.set(key, std::move(value)); }

  const std::string& name() const { return name_; }
  // With its arrays' places.
  Json head() const;
  const std::string& bytes() const { return bytes_; }

 private:
  template <class Value>
  void put(std::string_view key, std::string_view type, std::span<const Value> values);

  std::string name_, bytes_;
  Json head_, arrays_ = Json::object();
};

}  // namespace purlin::page
