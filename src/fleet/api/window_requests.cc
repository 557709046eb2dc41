// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/window_requests.h"

#include "base/files.h"
#include "base/time.h"

#include <algorithm>
#include <array>

namespace purlin::fleet {
namespace {

constexpr std::string_view kWindowsSchema = "purlin.windows/1";
constexpr std::int64_t kToRecordNs = 600'000'000'000, kToSendNs = 3'600'000'000'000;
constexpr std::int64_t kDoneAgeNs = 7 * 24 * kToSendNs;
constexpr std::size_t kMaxWindowText = 500, kMaxWindowId = 64;
constexpr std::array<std::string_view, 7> kStateNames = {
    "asked", "taken", "recording", "expired", "sending", "refused", "arrived"};

bool is_open(const WindowRequest& request) {
  return request.state == WindowState::kAsked || request.state == WindowState::kTaken ||
         request.state == WindowState::kRecording || request.state == WindowState::kSending;
}

WindowRequest from_json(const Json& json) {
  WindowRequest request;
  request.id = json["id"].as_string();
  request.node = json["node"].as_string();
  request.job = json["job"].as_string();
  request.pid = json["pid"].as_int();
  request.length_ns = json["length_ns"].as_int();
  request.asked_by = json["asked_by"].as_string();
  const auto name = std::find(kStateNames.begin(), kStateNames.end(), json["state"].as_string());
  request.state = static_cast<WindowState>(name - kStateNames.begin());
  if (name == kStateNames.end()) request.state = WindowState::kExpired;
  request.why = json["why"].as_string();
  request.sha256 = json["sha256"].as_string();
  request.claimer = json["claimer"].as_string();
  request.asked_ns = json["asked_ns"].as_int();
  request.changed_ns = json["changed_ns"].as_int();
  request.until_ns = json["until_ns"].as_int();
  return request;
}

Json kept_json(const WindowRequest& request) {
  return Json::object({{"id", request.id},
                       {"node", request.node},
                       {"job", request.job},
                       {"pid", request.pid},
                       {"length_ns", request.length_ns},
                       {"asked_by", request.asked_by},
                       {"state", to_text(request.state)},
                       {"why", request.why},
                       {"sha256", request.sha256},
                       {"claimer", request.claimer},
                       {"asked_ns", request.asked_ns},
                       {"changed_ns", request.changed_ns},
                       {"until_ns", request.until_ns}});
}

Status check_window(const WindowRequest& request, std::int64_t age_ns) {
  if (request.id.empty() || request.id.size() > kMaxWindowId ||
      request.id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return error(Code::kInvalid, "'id' is a number of the client's choice, in up to 64 digits 0-f");
  if (request.node.empty() || request.node.size() > 200 || request.job.size() > kMaxWindowText)
    return error(Code::kInvalid, "'node' names the node, in up to 200 bytes");
  if (request.pid < 0 || request.pid > INT32_MAX)
    return error(Code::kInvalid, "'pid' is the number of a process");
  if (request.length_ns < 1'000'000 || request.length_ns > WindowRequests::kLongestNs)
    return error(Code::kInvalid, "'length_s' is between 0.001 and 60");
  if (age_ns < 1'000'000'000 || age_ns > WindowRequests::kLongestAgeNs)
    return error(Code::kInvalid, "'expires_s' is between 1 and 3600");
  return Status::ok();
}

void move_to(WindowRequest& request, WindowState state, std::int64_t now_ns,
             std::int64_t more_ns = 0) {
  request.state = state;
  request.changed_ns = now_ns;
  request.until_ns = now_ns + more_ns;
}

}  // namespace

std::string_view to_text(WindowState state) { return kStateNames[static_cast<std::size_t>(state)]; }

Json to_json(const WindowRequest& request) {
  Json json = Json::object({{"id", request.id},
                            {"node", request.node},
                            {"job", request.job},
                            {"pid", request.pid},
                            {"length_s", static_cast<double>(request.length_ns) * 1e-9},
                            {"state", to_text(request.state)},
                            {"why", request.why},
                            {"asked_by", request.asked_by},
                            {"asked", format_rfc3339(request.asked_ns)},
                            {"changed", format_rfc3339(request.changed_ns)}});
  if (is_open(request)) json.set("until", format_rfc3339(request.until_ns));
  if (!request.sha256.empty()) json.set("sha256", request.sha256);
  if (request.state == WindowState::kArrived) json.set("url", "/v1/raw/" + request.sha256);
  return json;
}

Result<std::unique_ptr<WindowRequests>> WindowRequests::open(const std::string& path) {
  std::unique_ptr<WindowRequests> requests(new WindowRequests(path));
  PURLIN_TRY(requests->load());
  return requests;
}

Status WindowRequests::load() {
  if (!file_exists(path_)) return Status::ok();
  PURLIN_ASSIGN(const std::string text, read_file(path_, std::size_t{16} << 20));
  const Result<Json> json = Json::parse(text);
  if (!json.is_ok() || (*json)["schema"].as_string() != kWindowsSchema)
    return error(Code::kCorrupt,
                 "'{}' is no {} document; remove it, and requests that are open are forgotten",
                 path_, kWindowsSchema);
  for (const Json& one : (*json)["windows"].items()) all_.push_back(from_json(one));
  note_wanted();
  return Status::ok();
}

// One that is taken is given to its claimer again, should the answer have been lost.
void WindowRequests::note_wanted() {
  std::set<std::string> wanted;
  for (const WindowRequest& request : all_)
    if (request.state == WindowState::kAsked || request.state == WindowState::kTaken)
      wanted.insert(request.node);
  const std::lock_guard lock(wanted_mutex_);
  wanted_ = std::move(wanted);
}

Status WindowRequests::save() {
  Json windows = Json::array();
  for (const WindowRequest& request : all_) windows.push(kept_json(request));
  Json json = Json::object({{"schema", kWindowsSchema}, {"windows", std::move(windows)}});
  PURLIN_TRY(write_atomic(path_, json.dump() + "\n"));
  note_wanted();
  return Status::ok();
}

// Under the mutex: all or nothing.
template <class Change>
Status WindowRequests::change(Change change) {
  std::deque<WindowRequest> before = all_;
  Status status = change();
  if (status.is_ok()) status = save();
  if (!status.is_ok()) all_ = std::move(before);
  return status;
}

Status WindowRequests::expire(std::int64_t now_ns) {
  const auto is_late = [&](const WindowRequest& one) {
    return is_open(one) && one.until_ns <= now_ns;
  };
  const auto is_over = [&](const WindowRequest& one) {
    return !is_open(one) && now_ns - one.changed_ns > kDoneAgeNs;
  };
  const auto done = static_cast<std::size_t>(
      std::count_if(all_.begin(), all_.end(), [](const auto& one) { return !is_open(one); }));
  if (done <= kMostDone && std::none_of(all_.begin(), all_.end(), is_late) &&
      std::none_of(all_.begin(), all_.end(), is_over))
    return Status::ok();
  return change([&] {
    std::erase_if(all_, is_over);
    for (WindowRequest& one : all_) {
      if (!is_late(one)) continue;
      if (one.state == WindowState::kSending) {
        one.why = "it was recorded, and its profile did not arrive: the node had no room for it";
        move_to(one, WindowState::kRefused, now_ns);
        continue;
      }
      one.why = one.state == WindowState::kAsked
                    ? "the node sent no batch in time: it has no activity, or an earlier collector"
                    : "the node took it, and did not report a profile in time";
      move_to(one, WindowState::kExpired, now_ns);
    }
    for (std::size_t more = done > kMostDone ? done - kMostDone : 0; more > 0; --more) {
      const auto oldest = std::find_if(all_.begin(), all_.end(),
                                       [](const WindowRequest& one) { return !is_open(one); });
      if (oldest == all_.end()) break;
      all_.erase(oldest);
    }
    return Status::ok();
  });
}

Result<WindowRequest> WindowRequests::ask(WindowRequest request, std::int64_t age_ns,
                                          std::int64_t now_ns) {
  PURLIN_TRY(check_window(request, age_ns));
  const std::lock_guard lock(mutex_);
  PURLIN_TRY(expire(now_ns));
  std::size_t open = 0, of_node = 0;
  for (const WindowRequest& one : all_) {
    if (one.id == request.id) return one;
    if (!is_open(one)) continue;
    ++open;
    of_node += one.node == request.node ? 1 : 0;
  }
  if (of_node >= kMostOfNode || open >= kMostOpen)
    return error(Code::kUnavailable, "{} requests of {} are open; wait for one of them",
                 of_node >= kMostOfNode ? of_node : open,
                 of_node >= kMostOfNode ? "this node" : "all nodes");
  request.asked_ns = now_ns;
  move_to(request, WindowState::kAsked, now_ns, age_ns);
  PURLIN_TRY(change([&] {
    all_.push_back(request);
    return Status::ok();
  }));
  return request;
}

bool WindowRequests::is_wanted(const std::string& node) const {
  const std::lock_guard lock(wanted_mutex_);
  return wanted_.count(node) > 0;
}

Result<std::vector<WindowRequest>> WindowRequests::take(const std::string& node,
                                                        const std::string& claimer,
                                                        std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  PURLIN_TRY(expire(now_ns));
  const auto is_free = [&](const WindowRequest& one) {
    return one.node == node && one.state == WindowState::kAsked;
  };
  if (std::any_of(all_.begin(), all_.end(), is_free))
    PURLIN_TRY(change([&] {
      for (WindowRequest& one : all_) {
        if (!is_free(one)) continue;
        one.claimer = claimer;
        move_to(one, WindowState::kTaken, now_ns, one.length_ns + kToRecordNs);
      }
      return Status::ok();
    }));
  std::vector<WindowRequest> taken;
  for (const WindowRequest& one : all_)
    if (one.node == node && one.claimer == claimer && one.state == WindowState::kTaken)
      taken.push_back(one);
  return taken;
}

Status WindowRequests::report(const std::string& id, const std::string& claimer, WindowState state,
                              const std::string& detail, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const WindowRequest& one) {
    return one.id == id && one.claimer == claimer;
  });
  if (found == all_.end() || claimer.empty())
    return error(Code::kNotFound, "no request '{}' was taken by this collector", id);
  if (state <= found->state) return Status::ok();
  return change([&] {
    const std::int64_t more_ns = state == WindowState::kSending ? kToSendNs : kToRecordNs;
    if (state == WindowState::kSending) found->sha256 = detail;
    found->why = state == WindowState::kRefused ? detail.substr(0, kMaxWindowText) : "";
    move_to(*found, state, now_ns, more_ns + found->length_ns);
    return Status::ok();
  });
}

Status WindowRequests::arrived(const std::string& sha256, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const WindowRequest& one) {
    return !sha256.empty() && one.sha256 == sha256 && one.state != WindowState::kArrived;
  };
  if (std::none_of(all_.begin(), all_.end(), is_it)) return Status::ok();
  return change([&] {
    for (WindowRequest& one : all_) {
      if (!is_it(one)) continue;
      one.why.clear();
      move_to(one, WindowState::kArrived, now_ns);
    }
    return Status::ok();
  });
}

Result<std::vector<WindowRequest>> WindowRequests::list(const std::string& node,
                                                        const std::string& id, std::size_t limit,
                                                        std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  PURLIN_TRY(expire(now_ns));
  std::vector<WindowRequest> found;
  for (auto one = all_.rbegin(); one != all_.rend() && found.size() < limit; ++one)
    if ((node.empty() || one->node == node) && (id.empty() || one->id == id)) found.push_back(*one);
  return found;
}

}  // namespace purlin::fleet
