// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/place_labels.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "blobs/server_blobs.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

constexpr std::size_t kIdDigits = 64, kMaxPods = 4096, kMaxUnknown = 4096, kMaxNameBytes = 253;
constexpr std::size_t kMaxJobFileBytes = 64 << 10, kMaxPodListBytes = std::size_t{16} << 20;
constexpr double kKubeletS = 5;
constexpr std::string_view kLogSuffix = ".log";

std::int64_t to_ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

bool is_container_id(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// "containerd://9f…" -> "9f…"
std::string_view without_engine(std::string_view id) {
  const std::size_t slashes = id.find("://");
  return slashes == id.npos ? id : id.substr(slashes + 3);
}

}  // namespace

void PlaceLabels::complete(RunLabels& labels, int ordinal) {
  if (labels.pod.empty() && is_container_id(labels.container))
    labels.pod = pod_of(labels.container);
  if (!labels.job.empty() || ordinal < 0 || options_.job_mapping.empty()) return;
  labels.job = job_of(ordinal);
  if (!labels.job.empty() && labels.scheduler.empty()) labels.scheduler = "slurm";
}

std::string PlaceLabels::pod_of(const std::string& container) {
  if (const auto known = pods_.find(container); known != pods_.end()) return known->second;
  const std::int64_t now = clock_.monotonic_ns();
  if (const auto known = unknown_.find(container); known != unknown_.end() && now < known->second)
    return "";
  if (listed_ns_ == 0 || now - listed_ns_ >= to_ns(options_.list_s)) {
    listed_ns_ = std::max<std::int64_t>(now, 1);
    ++lookups_;
    if (pods_.size() > kMaxPods) pods_.clear();
    list_logs();
    if (pods_.find(container) == pods_.end()) ask_kubelet();
  }
  if (const auto known = pods_.find(container); known != pods_.end()) return known->second;
  if (unknown_.size() > kMaxUnknown) unknown_.clear();
  unknown_[container] = now + to_ns(options_.negative_s);
  return "";
}

// POD_NAMESPACE_CONTAINER-ID.log. Neither name has a '_'.
void PlaceLabels::list_logs() {
  if (options_.kubelet_logs.empty()) return;
  for (const std::string& name : list_directory(options_.kubelet_logs).value_or({})) {
    if (!ends_with(name, kLogSuffix) || name.size() < kIdDigits + kLogSuffix.size() + 1) continue;
    const std::size_t begin = name.size() - kLogSuffix.size() - kIdDigits;
    const std::string id = name.substr(begin, kIdDigits);
    const std::vector<std::string> parts = split(name.substr(0, begin), '_');
    if (!is_container_id(id) || parts.size() != 3 || parts[0].size() > kMaxNameBytes) continue;
    pods_[id] = parts[1] + '/' + parts[0];
  }
}

void PlaceLabels::ask_kubelet() {
  if (http_ == nullptr || options_.kubelet_url.empty()) return;
  blobs::HttpRequest request;
  request.method = "GET";
  request.url = options_.kubelet_url;
  request.timeout_s = kKubeletS;
  request.direct = true;  // it is this node's
  request.max_bytes = kMaxPodListBytes;
  if (!options_.kubelet_token_file.empty())
    if (const Result<std::string> token =
            blobs::read_token(options_.kubelet_token_file, options_.kMaxTokenBytes);
        token.is_ok())
      request.headers.emplace_back("Authorization", "Bearer " + *token);
  const Result<blobs::HttpResponse> response = http_->send(request);
  if (!response.is_ok() || response->status != 200) return;
  const Result<Json> list = Json::parse(response->body, {kMaxPodListBytes, 64});
  if (!list.is_ok()) return;
  for (const Json& pod : (*list)["items"].items()) {
    const Json& metadata = pod["metadata"];
    const std::string name = metadata["namespace"].as_string() + '/' + metadata["name"].as_string();
    if (name.size() > 2 * kMaxNameBytes) continue;
    for (const char* kind : {"containerStatuses", "initContainerStatuses"})
      for (const Json& container : pod["status"][kind].items())
        if (const std::string_view id = without_engine(container["containerID"].as_string());
            is_container_id(id))
          pods_[std::string(id)] = name;
  }
}

// The file changes with each job: read again as often as the kubelet would be asked.
const std::string& PlaceLabels::job_of(int ordinal) {
  auto& [read_ns, job] = jobs_[ordinal];
  const std::int64_t now = clock_.monotonic_ns();
  if (read_ns != 0 && now - read_ns < to_ns(options_.list_s)) return job;
  read_ns = std::max<std::int64_t>(now, 1);
  const Result<std::string> text =
      read_file(join_path(options_.job_mapping, std::to_string(ordinal)), kMaxJobFileBytes);
  job.clear();
  if (!text.is_ok()) return job;
  std::vector<std::string> jobs;
  for (const std::string& line : split(*text, '\n'))
    if (const std::string_view one = trim(line); !one.empty() && one.size() < 200)
      jobs.emplace_back(one);
  // A GPU that is shared by jobs belongs to none of them.
  if (jobs.size() == 1) job = jobs[0];
  return job;
}

}  // namespace purlin::fleet
