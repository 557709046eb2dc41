// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "model/problem/rules.h"

namespace purlin {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
constexpr std::size_t kMaxListText = 256;

}  // namespace

std::optional<std::int64_t> elements_of(const Shape& shape) {
  std::int64_t out = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && out > kMaxElements / extent)) return std::nullopt;
    out *= extent;
  }
  return out;
}

const OpInput* OpInputs::at(int index) const {
  if (index < 0 || static_cast<std::size_t>(index) >= inputs_.size()) return nullptr;
  return &inputs_[static_cast<std::size_t>(index)];
}

bool OpInputs::is_tensor(int index) const {
  const OpInput* input = at(index);
  return input != nullptr && (!input->dimensions.empty() || !dtype(index).empty());
}

const Shape& OpInputs::shape(int index) const {
  static const Shape kNothing;
  const OpInput* input = at(index);
  return input != nullptr ? input->dimensions : kNothing;
}

std::string_view OpInputs::dtype(int index) const {
  const OpInput* input = at(index);
  return input != nullptr ? dtype_of(input->dtype) : "";
}

std::optional<std::int64_t> OpInputs::elements(int index) const {
  if (shape(index).empty()) return std::nullopt;
  return elements_of(shape(index));
}

std::optional<std::int64_t> OpInputs::integer(int index) const {
  const OpInput* input = at(index);
  if (input == nullptr) return std::nullopt;
  return parse_int(trim(input->concrete));
}

std::optional<bool> OpInputs::flag(int index) const {
  const OpInput* input = at(index);
  if (input == nullptr) return std::nullopt;
  if (input->concrete == "True" || input->concrete == "true") return true;
  if (input->concrete == "False" || input->concrete == "false") return false;
  return std::nullopt;
}

std::optional<Shape> OpInputs::list(int index) const {
  const OpInput* input = at(index);
  if (input == nullptr || input->concrete.empty() || input->concrete.size() > kMaxListText)
    return std::nullopt;
  std::string_view text = trim(input->concrete);
  if (starts_with(text, "[") && ends_with(text, "]")) text = text.substr(1, text.size() - 2);
  Shape out;
  if (trim(text).empty()) return out;
  for (const std::string& part : split(text, ',')) {
    const std::string_view word = trim(part);
    if (word == "True" || word == "False") {
      out.push_back(word == "True" ? 1 : 0);
      continue;
    }
    const auto value = parse_int(word);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

bool OpInputs::is_list(int index) const {
  const OpInput* input = at(index);
  return input != nullptr && input->dtype == "ScalarList";
}

bool OpInputs::is_none(int index) const {
  const OpInput* input = at(index);
  return input != nullptr && input->dtype.empty() && input->dimensions.empty() &&
         input->concrete.empty();
}

const std::vector<Shape>& OpInputs::members(int index) const {
  static const std::vector<Shape> kNothing;
  const OpInput* input = at(index);
  return input != nullptr ? input->members : kNothing;
}

}  // namespace purlin
