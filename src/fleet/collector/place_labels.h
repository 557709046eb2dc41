// SPDX-License-Identifier: Apache-2.0
// PlaceLabels: the pod of a container and the job of a GPU, where a capture does not state them.
//
// A pod comes from the names of the kubelet's log links (POD_NAMESPACE_CONTAINER-ID.log), else from
// its list of pods. An answer is kept, also that a container is not known (negative_s): a daemon
// must not ask for each batch. A job comes from a folder as dcgm-exporter's --hpc-job-mapping-dir:
// a file per GPU, named by its ordinal, with a job a line. One owner, one thread. Contents are
// foreign text and bounded. Failure: no label.
#pragma once

#include "base/time.h"
#include "blobs/http.h"
#include "model/profile/run_labels.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

namespace purlin::fleet {

struct PlaceLabelsOptions {
  std::string kubelet_logs;  // "/var/log/containers"; "" = not asked
  std::string kubelet_url;   // "http://127.0.0.1:10255/pods"; "" = not asked
  static constexpr std::size_t kMaxTokenBytes = 64 << 10;  // a service account's is a document
  std::string kubelet_token_file{};                        // of the service account
  std::string job_mapping;                                 // a folder; "" = none
  double negative_s = 60, list_s = 10;
};

class PlaceLabels {
 public:
  // `http` may be null: the kubelet's list is then not asked for.
  PlaceLabels(PlaceLabelsOptions options, blobs::HttpClient* http, Clock& clock)
      : options_(std::move(options)), http_(http), clock_(clock) {}
  // Adds what is missing. `ordinal` of the GPU, -1 = not known.
  void complete(RunLabels& labels, int ordinal);
  std::uint64_t lookups() const { return lookups_; }  // of the kubelet, so far

 private:
  std::string pod_of(const std::string& container);
  void list_logs();
  void ask_kubelet();
  const std::string& job_of(int ordinal);

  const PlaceLabelsOptions options_;
  blobs::HttpClient* const http_;
  Clock& clock_;
  std::unordered_map<std::string, std::string> pods_;         // by the container's id
  std::unordered_map<std::string, std::int64_t> unknown_;     // until then
  std::map<int, std::pair<std::int64_t, std::string>> jobs_;  // read then
  std::int64_t listed_ns_ = 0;
  std::uint64_t lookups_ = 0;
};

}  // namespace purlin::fleet
