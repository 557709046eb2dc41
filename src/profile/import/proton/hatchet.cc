// SPDX-License-Identifier: Apache-2.0
#include "profile/import/proton/hatchet.h"

#include "base/json/json.h"
#include "base/json/json_dialect.h"
#include "base/text.h"
#include "profile/import/assembly.h"
#include "profile/import/csv.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::profile {
namespace {

constexpr std::size_t kMostTreeBytes = std::size_t{512} << 20;
constexpr int kDeepestTree = 1000;
constexpr std::size_t kMostGpus = 1024;
constexpr std::string_view kTime = "time (ns)";

std::string lower_type(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// Numbers are written as texts where they are ids.
std::int64_t id_in(const Json& json) {
  return json.is_string() ? parse_int(json.as_string()).value_or(0) : json.as_int();
}

int small_fact(const Json& facts, std::string_view key) {
  return static_cast<int>(std::clamp<std::int64_t>(facts[key].as_int(), 0, 1 << 30));
}

class HatchetImporter {
 public:
  explicit HatchetImporter(const ImportOptions& options)
      : options_(options), assembly_(profile_, options_) {
    profile_.source = "proton";
  }

  Result<Profile> run(const Json& document, const std::string& name) {
    for (const Json& part : document.items())
      if (part.find("frame") == nullptr) describe(part);
    for (const Json& part : document.items())
      if (part.find("frame") != nullptr) walk(part);
    if (profile_.kernels.empty())
      return error(Code::kInvalid,
                   "{}: the tree has no \"{}\" of a kernel; profile with the backend cupti or "
                   "roctracer",
                   name, kTime);
    assembly_.note("aggregates_only",
                   "totals per kernel and scope: no quantiles, launch shapes or timeline");
    if (odd_ > 0)
      assembly_.note("bad_times", "kernels whose time or count is none were left out", odd_);
    assembly_.finish();
    return std::move(profile_);
  }

 private:
  // {"CUDA": {"0": {"arch": "90", "num_sms": 132, "clock_rate": kHz, …}}}
  void describe(const Json& part) {
    for (const Json::Member& type : part.members())
      for (const Json::Member& device : type.value.members()) {
        const Json& facts = device.value;
        DeviceInfo info;
        const std::string& arch = facts["arch"].as_string();
        info.arch = !arch.empty() && arch.find_first_not_of("0123456789") == std::string::npos
                        ? "sm_" + arch
                        : arch;
        info.compute_units = small_fact(facts, "num_sms");
        info.clock_mhz = small_fact(facts, "clock_rate") / 1000;
        info.memory_clock_mhz = small_fact(facts, "memory_clock_rate") / 1000;
        info.memory_bus_bits = small_fact(facts, "bus_width");
        known_[lower_type(type.key) + ":" + device.key] = std::move(info);
      }
  }

  int device_of(const Json& metrics) {
    std::string type = lower_type(metrics["device_type"].as_string());
    if (type.empty()) type = "cuda";
    const std::string id = fmt::format("{}:{}", type, id_in(metrics["device_id"]));
    const auto found = devices_.find(id);
    if (found != devices_.end()) return found->second;
    std::vector<DeviceInfo>& devices = profile_.environment.devices;
    if (devices.size() >= kMostGpus) return 0;
    const auto known = known_.find(id);
    DeviceInfo info = known == known_.end() ? DeviceInfo{} : known->second;
    info.id = id;
    info.backend = type;
    info.kind = "gpu";
    info.vendor = type == "hip" ? "AMD" : type == "cuda" ? "NVIDIA" : "";
    devices.push_back(std::move(info));
    return devices_[id] = static_cast<int>(devices.size()) - 1;
  }

  // Without recursion: a tree may be deep. The scope is the innermost name around a kernel.
  void walk(const Json& root) {
    struct Place {
      const Json* node;
      const std::string* scope;
    };
    static const std::string none;
    std::vector<Place> open = {{&root, &none}};
    while (!open.empty()) {
      const auto [node, scope] = open.back();
      open.pop_back();
      const std::string& name = (*node)["frame"]["name"].as_string();
      kernel(*node, name, *scope);
      const Json::Array& children = (*node)["children"].items();
      for (auto child = children.rbegin(); child != children.rend(); ++child)
        open.push_back({&*child, name == "ROOT" ? &none : &name});
    }
  }

  void kernel(const Json& node, const std::string& name, const std::string& scope) {
    const Json& metrics = node["metrics"];
    const Json* time = metrics.find(kTime);
    if (time == nullptr || name.empty()) return;
    const double total = time->as_double(-1), count = metrics["count"].as_double(1);
    if (!(total >= 0) || !(total < 1e18) || !(count >= 1) || !(count < 1e15)) {
      ++odd_;
      return;
    }
    LaunchIdentity identity;
    identity.name = name;
    identity.op = scope;
    identity.device = device_of(metrics);
    assembly_.add_untimed(assembly_.kernel_row(identity), total / count, count);
  }

  ImportOptions options_;
  Profile profile_;
  Assembly assembly_;
  std::map<std::string, DeviceInfo> known_;
  std::map<std::string, int> devices_;
  double odd_ = 0;
};

}  // namespace

bool looks_like_hatchet(std::string_view prefix) {
  const std::size_t first = prefix.find_first_not_of(" \t\r\n");
  const auto has = [&](std::string_view word) {
    return prefix.find(word) != std::string_view::npos;
  };
  return first != std::string_view::npos && prefix[first] == '[' && has("\"frame\"") &&
         has("\"metrics\"");
}

Result<Profile> import_hatchet(Input input, const std::string& name, const ImportOptions& options) {
  const Result<std::string> text = input.read_all(kMostTreeBytes);
  if (!text.is_ok()) return in_file(text.status(), name);
  const Result<Json> document =
      Json::parse(without_non_finite(*text), {kMostTreeBytes, kDeepestTree});
  if (!document.is_ok()) return in_file(document.status(), name);
  return HatchetImporter(options).run(*document, name);
}

Result<Profile> import_hatchet(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(Input input, Input::open(path));
  return import_hatchet(std::move(input), path, options);
}

}  // namespace purlin::profile
