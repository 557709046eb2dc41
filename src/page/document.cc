// SPDX-License-Identifier: Apache-2.0
#include "page/document.h"

#include <utility>

namespace purlin::page {

Document::Document(std::string name, Json head) : name_(std::move(name)), head_(std::move(head)) {}

template <class Value>
void Document::put(std::string_view key, std::string_view type, std::span<const Value> values) {
  bytes_.resize((bytes_.size() + 7) / 8 * 8);
  arrays_.set(key, Json::object({{"type", type}, {"at", bytes_.size()}, {"count", values.size()}}));
  if (!values.empty())
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void Document::add(std::string_view key, std::span<const double> values) {
  put(key, "f64", values);
}
void Document::add(std::string_view key, std::span<const std::uint32_t> values) {
  put(key, "u32", values);
}
void Document::add(std::string_view key, std::span<const std::uint8_t> values) {
  put(key, "u8", values);
}

Json Document::head() const {
  Json head = head_;
  if (arrays_.size() > 0) head.set("arrays", arrays_);
  return head;
}

}  // namespace purlin::page
