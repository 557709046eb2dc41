// SPDX-License-Identifier: Apache-2.0
// Measured ceilings as documents, and where they are kept.
#include "base/files.h"
#include "base/hash.h"
#include "measure/ceilings/ceilings.h"
#include "model/document.h"

#include <fmt/format.h>

namespace purlin::measure {
namespace {

constexpr std::size_t kMaxDocumentBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxDocuments = 1000;

bool same_or_unknown(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b;
}

}  // namespace

Json to_json(const CeilingMeasurement& measurement) {
  Json out = Json::object({{"ceiling", measurement.ceiling}, {"method", measurement.method}});
  if (!measurement.problem.empty()) {
    out.set("problem", measurement.problem);
    return out;
  }
  out.set("best", measurement.best);
  out.set("median", measurement.median);
  out.set("samples", measurement.samples);
  out.set("clock_mhz", measurement.clock_mhz > 0 ? Json(measurement.clock_mhz) : Json());
  return out;
}

Json ceilings_document(const MeasuredCeilings& measured, const DeviceInfo& device) {
  Environment environment = host_environment();
  environment.devices = {device};
  Json document = new_document("purlin.ceilings/1", environment);
  document.set("ceilings", to_json(measured.ceilings));
  Json measurements = Json::array();
  for (const CeilingMeasurement& measurement : measured.measurements)
    measurements.push(to_json(measurement));
  document.set("measurements", std::move(measurements));
  return document;
}

std::string ceilings_directory() { return join_path(user_cache_directory(), "ceilings"); }

Result<std::string> store_ceilings(const Json& document, const DeviceInfo& device,
                                   const std::string& directory) {
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", device.backend, device.name, device.uuid, device.driver);
  PURLIN_TRY(make_directories_durably(directory));
  const std::string path = join_path(directory, fmt::format("{:016x}.json", hash64(key)));
  PURLIN_TRY(write_atomic(path, document.dump(2) + "\n"));
  return path;
}

Ceilings load_ceilings(const DeviceInfo& device, const std::string& directory) {
  Ceilings best;
  if (device.name.empty()) return best;
  int best_match = 0;
  std::string best_time;
  const auto names = list_directory(directory);
  if (!names.is_ok()) return best;
  std::size_t read = 0;
  for (const std::string& name : *names) {
    if (name.size() < 5 || name.compare(name.size() - 5, 5, ".json") != 0) continue;
    if (++read > kMaxDocuments) break;
    const auto text = read_file(join_path(directory, name), kMaxDocumentBytes);
    const auto json = text.is_ok() ? Json::parse(*text) : Result<Json>(text.status());
    if (!json.is_ok() || !check_schema(*json, "purlin.ceilings", 1).is_ok()) continue;
    auto ceilings = ceilings_from_json((*json)["ceilings"]);
    if (!ceilings.is_ok()) continue;
    const Environment environment = environment_from_json((*json)["environment"]);
    if (environment.devices.empty()) continue;
    const DeviceInfo& measured = environment.devices.front();
    if (measured.name != device.name || !same_or_unknown(measured.uuid, device.uuid) ||
        !same_or_unknown(measured.driver, device.driver))
      continue;
    // The same device comes before one of the same model; of equal ones, the newest.
    const int match = 1 + (!device.uuid.empty() && measured.uuid == device.uuid ? 2 : 0) +
                      (!device.driver.empty() && measured.driver == device.driver ? 1 : 0);
    if (match < best_match || (match == best_match && environment.recorded_at <= best_time))
      continue;
    best = std::move(ceilings).value();
    best_match = match;
    best_time = environment.recorded_at;
  }
  return best;
}

}  // namespace purlin::measure
