// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"
#include "gpu/device.h"

#include <algorithm>
#include <charconv>

namespace purlin::gpu {

Config LibrarySpace::config(std::size_t row) const {
  Config config;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    config.set(parameters[i], std::int64_t{values[row * parameters.size() + i]});
  return config;
}

Result<std::string> Device::library_version(std::string_view library) {
  return error(Code::kUnavailable, "{} runs nothing of {}; use a CUDA device", info_.id, library);
}

Result<LibrarySpace> Device::library_space(const LibraryOperation& operation, const ProblemShape&) {
  return library_version(operation.library).status();
}

Json to_json(const LibrarySpace& space) {
  Json parameters = Json::array(), proposals = Json::array();
  for (const std::string& name : space.parameters) parameters.push(name);
  // One text: there may be a million of them.
  std::string values;
  for (const std::int32_t value : space.values) {
    if (!values.empty()) values += ' ';
    values += std::to_string(value);
  }
  for (const std::size_t row : space.proposals) proposals.push(static_cast<std::int64_t>(row));
  return Json::object({{"schema", "purlin.library-space/1"},
                       {"version", space.version},
                       {"parameters", std::move(parameters)},
                       {"values", std::move(values)},
                       {"proposals", std::move(proposals)},
                       {"checked", static_cast<std::int64_t>(space.checked)},
                       {"not_rebuilt", static_cast<std::int64_t>(space.not_rebuilt)},
                       {"complete", space.complete},
                       {"seconds", space.seconds}});
}

Result<LibrarySpace> library_space_from_json(const Json& json) {
  const auto bad = [](std::string_view why) {
    return error(Code::kCorrupt, "a library's space: {}", why);
  };
  if (json["schema"].as_string() != "purlin.library-space/1") return bad("not of a known schema");
  LibrarySpace space;
  space.version = json["version"].as_string();
  for (const Json& name : json["parameters"].items()) space.parameters.push_back(name.as_string());
  if (space.parameters != library_parameters()) return bad("its parameters are not the library's");
  const std::string& values = json["values"].as_string();
  for (const char *at = values.data(), *end = at + values.size(); at != end;) {
    std::int32_t number = -1;
    const auto [stop, problem] = std::from_chars(at, end, number);
    if (problem != std::errc() || number < 0 || (stop != end && *stop != ' '))
      return bad("a value is not a number");
    space.values.push_back(number);
    at = stop == end ? end : stop + 1;
  }
  if (space.values.size() % space.parameters.size() != 0) return bad("its last row is cut off");
  for (const Json& row : json["proposals"].items()) {
    const std::int64_t number = row.as_int(-1);
    if (number < 0 || static_cast<std::size_t>(number) >= space.size())
      return bad("a proposal is not one of its rows");
    space.proposals.push_back(static_cast<std::size_t>(number));
  }
  space.checked = static_cast<std::size_t>(std::max<std::int64_t>(json["checked"].as_int(), 0));
  space.not_rebuilt =
      static_cast<std::size_t>(std::max<std::int64_t>(json["not_rebuilt"].as_int(), 0));
  space.complete = json["complete"].as_bool(true);
  space.seconds = json["seconds"].as_double();
  return space;
}

}  // namespace purlin::gpu
