// SPDX-License-Identifier: Apache-2.0
// WindowRequests: timelines that people request of nodes, and how far each came
// (docs/design/window-requests.md). Nodes learn of them with their next batch.
//
// A JSON file of the server's folder, written whole at each change; durable when a call returns.
// Requests that were not taken in time expire at the next call. [MT]. Failure: kInvalid (out of
// bounds), kUnavailable (too many), kNotFound, kIo (nothing changed), kCorrupt of the file.
#pragma once

#include "base/json/json.h"
#include "base/status.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet {

// In the order in which a request goes through them, except that any of the first four may be
// refused, and the first three may expire. A profile that arrives late has arrived.
enum class WindowState { kAsked, kTaken, kRecording, kExpired, kSending, kRefused, kArrived };
std::string_view to_text(WindowState state);  // "asked"

struct WindowRequest {
  std::string id;  // by the client: the same request twice is one
  std::string node, job;
  std::int64_t pid = 0;  // as the process sees itself; 0: all of the job, or of the node
  std::int64_t length_ns = 0;
  std::string asked_by;  // holder of the token
  WindowState state = WindowState::kAsked;
  std::string why;     // of kRefused and kExpired
  std::string sha256;  // of the raw profile
  std::string claimer;
  std::int64_t asked_ns = 0, changed_ns = 0, until_ns = 0;  // until: it expires
};
Json to_json(const WindowRequest& request);

class WindowRequests {
 public:
  static constexpr std::int64_t kLongestNs = 60'000'000'000, kLongestAgeNs = 3'600'000'000'000;
  static constexpr std::size_t kMostOfNode = 4, kMostOpen = 1000, kMostDone = 1000;

  static Result<std::unique_ptr<WindowRequests>> open(const std::string& path);
  // `age_ns`: until a node has to take it.
  Result<WindowRequest> ask(WindowRequest request, std::int64_t age_ns, std::int64_t now_ns);
  // Whether a request waits for this node. Never waits for a disk.
  bool is_wanted(const std::string& node) const;
  // Those that wait for the node, and those that this claimer took and did not report on.
  Result<std::vector<WindowRequest>> take(const std::string& node, const std::string& claimer,
                                          std::int64_t now_ns);
  // What its claimer did. States only go forward; one that was passed changes nothing.
  Status report(const std::string& id, const std::string& claimer, WindowState state,
                const std::string& detail, std::int64_t now_ns);
  // The bytes are here; `detail` of kSending was their hash.
  Status arrived(const std::string& sha256, std::int64_t now_ns);
  // Newest first; "" = any.
  Result<std::vector<WindowRequest>> list(const std::string& node, const std::string& id,
                                          std::size_t limit, std::int64_t now_ns);

 private:
  explicit WindowRequests(std::string path) : path_(std::move(path)) {}
  Status load();
  Status save();
  void note_wanted();
  Status expire(std::int64_t now_ns);
  template <class Change>
  Status change(Change change);

  const std::string path_;
  mutable std::mutex mutex_;
  std::deque<WindowRequest> all_;  // the oldest first
  mutable std::mutex wanted_mutex_;
  std::set<std::string> wanted_;  // nodes, under wanted_mutex_
};

}  // namespace purlin::fleet
