// SPDX-License-Identifier: Apache-2.0
#include "backlog/task.h"

#include "backlog/file.h"
#include "base/hash.h"

#include <algorithm>
#include <cmath>

namespace purlin::backlog {
namespace {

double not_negative(const Json& json) {
  const double value = json.as_double();
  return std::isfinite(value) ? std::max(value, 0.0) : 0;
}

}  // namespace

std::string TaskKey::id() const {
  FieldHasher hasher;
  hasher.add(kind).add(kernel).add(shape).add(device).add(toolkit).add(driver);
  return hasher.hex().substr(0, 12);
}

Json to_json(const Task& task) {
  Json json = Json::object({{"schema", kBacklogSchema},
                            {"id", task.id()},
                            {"kind", task.key.kind},
                            {"kernel", task.key.kernel},
                            {"shape", task.key.shape},
                            {"spec", task.spec},
                            {"device", task.key.device},
                            {"toolkit", task.key.toolkit},
                            {"driver", task.key.driver},
                            {"reason", task.reason},
                            {"ratio", task.ratio},
                            {"queued_at", task.queued_at},
                            {"seen", task.seen},
                            {"launches", task.launches}});
  if (!task.dtype.empty()) json.set("dtype", task.dtype);
  if (task.launch_ns > 0) json.set("launch_ns", task.launch_ns);
  if (task.headroom) json.set("headroom", *task.headroom);
  return json;
}

Task task_from_json(const Json& json) {
  Task task;
  task.key.kind = json["kind"].as_string();
  task.key.kernel = json["kernel"].as_string();
  task.key.shape = json["shape"].as_string();
  task.key.device = json["device"].as_string();
  task.key.toolkit = json["toolkit"].as_string();
  task.key.driver = json["driver"].as_string();
  task.spec = json["spec"].as_string();
  task.dtype = json["dtype"].as_string();
  task.launches = static_cast<std::uint64_t>(std::max<std::int64_t>(json["launches"].as_int(), 0));
  task.launch_ns = not_negative(json["launch_ns"]);
  if (json["headroom"].is_number()) task.headroom = std::min(not_negative(json["headroom"]), 1.0);
  task.ratio = json["ratio"].as_double();
  task.reason = json["reason"].as_string();
  task.queued_at = json["queued_at"].as_string();
  task.first_queued_at = task.queued_at;
  return task;
}

}  // namespace purlin::backlog
