// SPDX-License-Identifier: Apache-2.0
#include "model/device/ceilings.h"

#include <cmath>

namespace purlin {
namespace {

constexpr std::size_t kMaxCeilings = 100;  // of one list in a document

const Ceiling* find(const std::vector<Ceiling>& list, std::string_view name) {
  for (const Ceiling& ceiling : list)
    if (ceiling.name == name) return &ceiling;
  return nullptr;
}

Json list_json(const std::vector<Ceiling>& list) {
  Json out = Json::array();
  for (const Ceiling& ceiling : list) {
    Json item = Json::object(
        {{"name", ceiling.name}, {"peak", ceiling.peak}, {"provenance", ceiling.provenance}});
    if (ceiling.clock_mhz > 0) item.set("clock_mhz", ceiling.clock_mhz);
    if (ceiling.median > 0) item.set("median", ceiling.median);
    if (ceiling.sheet > 0) item.set("sheet", ceiling.sheet);
    out.push(std::move(item));
  }
  return out;
}

Result<std::vector<Ceiling>> list_from_json(const Json& json, std::string_view key) {
  std::vector<Ceiling> list;
  if (!json[key].is_array() || json[key].size() > kMaxCeilings)
    return error(Code::kCorrupt, "'{}' must be a list of at most {} ceilings", key, kMaxCeilings);
  for (const Json& item : json[key].items()) {
    Ceiling ceiling;
    PURLIN_ASSIGN(ceiling.name, item.string_at("name"));
    PURLIN_ASSIGN(ceiling.peak, item.double_at("peak"));
    if (!std::isfinite(ceiling.peak) || ceiling.peak <= 0)
      return error(Code::kCorrupt, "'{}' of '{}': the peak must be above zero", key, ceiling.name);
    ceiling.provenance = item["provenance"].as_string();
    ceiling.clock_mhz = item["clock_mhz"].as_double();
    ceiling.median = item["median"].as_double();
    ceiling.sheet = item["sheet"].as_double();
    list.push_back(std::move(ceiling));
  }
  return list;
}

}  // namespace

const Ceiling* Ceilings::compute_for(std::string_view dtype, bool tensor) const {
  if (tensor)
    if (const Ceiling* ceiling = find(compute, std::string(dtype) + " tensor"); ceiling != nullptr)
      return ceiling;
  return find(compute, dtype);
}

const Ceiling* Ceilings::memory_for(std::string_view level) const { return find(memory, level); }

Json to_json(const Ceilings& ceilings) {
  return Json::object({{"device", ceilings.device},
                       {"compute", list_json(ceilings.compute)},
                       {"memory", list_json(ceilings.memory)}});
}

Result<Ceilings> ceilings_from_json(const Json& json) {
  Ceilings ceilings;
  PURLIN_ASSIGN(ceilings.device, json.string_at("device"));
  PURLIN_ASSIGN(ceilings.compute, list_from_json(json, "compute"));
  PURLIN_ASSIGN(ceilings.memory, list_from_json(json, "memory"));
  return ceilings;
}

}  // namespace purlin
