// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/window_taker.h"

#include "base/files.h"
#include "base/text.h"
#include "fleet/collector/window_profile.h"
#include "store/labels.h"

#include <algorithm>
#include <array>
#include <set>

namespace purlin::fleet {
namespace {

constexpr std::string_view kHeldSchema = "purlin.collect-windows/1";
constexpr std::array<std::string_view, 4> kPhaseNames = {"taken", "recording", "sending",
                                                         "refused"};

// "4711" is the job of the steps "4711.0" and "4711.batch", as Slurm names them. The store's name
// of a job has its scheduler: "slurm 4711".
bool is_job(const RunLabels& labels, const std::string& job) {
  return labels.job == job || store::job_of(labels) == job || starts_with(labels.job, job + ".");
}

bool is_final_phase(std::string_view name) { return name == "sending" || name == "refused"; }

}  // namespace

std::string_view WindowTaker::name_of(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

Result<std::unique_ptr<WindowTaker>> WindowTaker::open(WindowTakerOptions options, RawSpool& raws) {
  std::unique_ptr<WindowTaker> taker(new WindowTaker(std::move(options), raws));
  PURLIN_TRY(taker->load());
  return taker;
}

// A file that is damaged is replaced: requests that were taken then expire at the server.
Status WindowTaker::load() {
  const Result<std::string> text = read_file(options_.path, std::size_t{1} << 20);
  const Result<Json> json = text.is_ok() ? Json::parse(*text) : Result<Json>(text.status());
  if (json.is_ok() && (*json)["schema"].as_string() == kHeldSchema)
    claimer_ = (*json)["claimer"].as_string();
  if (claimer_.empty()) {
    PURLIN_ASSIGN(const std::string id, read_file("/proc/sys/kernel/random/uuid"));
    claimer_ = std::string(trim(id));
    return save();
  }
  for (const Json& one : (*json)["windows"].items()) {
    Held held;
    held.id = one["id"].as_string();
    held.job = one["job"].as_string();
    held.pid = one["pid"].as_int();
    held.length_ns = one["length_ns"].as_int();
    const auto phase_at = [&](std::string_view key) {
      const auto at = std::find(kPhaseNames.begin(), kPhaseNames.end(), one[key].as_string());
      return at == kPhaseNames.end() ? Phase::kTaken : static_cast<Phase>(at - kPhaseNames.begin());
    };
    held.phase = phase_at("phase");
    held.reported = phase_at("reported");
    held.detail = one["detail"].as_string();
    held.begin_ns = one["begin_ns"].as_int();
    held.end_ns = one["end_ns"].as_int();
    for (const Json& process : one["processes"].items())
      held.processes.emplace_back(process["folder"].as_string(), process["pid"].as_int());
    held_.push_back(std::move(held));
  }
  return Status::ok();
}

Status WindowTaker::save() const {
  Json windows = Json::array();
  for (const Held& held : held_) {
    Json processes = Json::array();
    for (const auto& [folder, pid] : held.processes)
      processes.push(Json::object({{"folder", folder}, {"pid", pid}}));
    windows.push(Json::object({{"id", held.id},
                               {"job", held.job},
                               {"pid", held.pid},
                               {"length_ns", held.length_ns},
                               {"phase", name_of(held.phase)},
                               {"reported", name_of(held.reported)},
                               {"detail", held.detail},
                               {"begin_ns", held.begin_ns},
                               {"end_ns", held.end_ns},
                               {"processes", std::move(processes)}}));
  }
  const Json json = Json::object(
      {{"schema", kHeldSchema}, {"claimer", claimer_}, {"windows", std::move(windows)}});
  return write_atomic(options_.path, json.dump() + "\n");
}

// All or nothing.
Status WindowTaker::change(const std::string& id, const std::function<void(Held&)>& what) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held.id == id; });
  if (found == held_.end()) return Status::ok();
  const Held before = *found;
  what(*found);
  const Status saved = save();
  if (!saved.is_ok()) *found = before;
  return saved;
}

Status WindowTaker::refuse(const std::string& id, const std::string& why) {
  PURLIN_TRY(change(id, [&](Held& held) {
    held.phase = Phase::kRefused;
    held.detail = why;
    ++counts_.refused;
  }));
  files_.erase(id);
  return Status::ok();
}

bool WindowTaker::busy() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(held_.begin(), held_.end(), [](const Held& held) {
    return held.phase == Phase::kTaken || held.phase == Phase::kRecording;
  });
}

bool WindowTaker::is_due(std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.phase == Phase::kTaken ||
           (held.phase == Phase::kRecording && held.end_ns <= now_ns);
  });
}

bool WindowTaker::has_reports() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(held_.begin(), held_.end(),
                     [](const Held& held) { return held.phase != held.reported; });
}

bool WindowTaker::is_recording(const std::string& folder, std::int64_t pid) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.phase == Phase::kRecording &&
           std::find(held.processes.begin(), held.processes.end(), Process{folder, pid}) !=
               held.processes.end();
  });
}

// One capture of each running process that the request means.
std::vector<const LiveCapture*> WindowTaker::matching(
    const Held& held, const std::vector<LiveCapture>& captures) const {
  std::vector<const LiveCapture*> found;
  std::set<Process> seen;
  for (const LiveCapture& live : captures) {
    const bool meant = (held.pid == 0 || live.pid == held.pid) &&
                       (held.job.empty() || is_job(live.run.labels, held.job));
    if (meant && !live.ended && live.pid > 0 && seen.insert({live.capture.folder, live.pid}).second)
      found.push_back(&live);
  }
  return found;
}

Status WindowTaker::look(const std::vector<LiveCapture>& captures,
                         const std::function<std::int64_t()>& now) {
  std::deque<Held> held;
  {
    const std::lock_guard lock(mutex_);
    held = held_;
  }
  for (const Held& one : held) {
    if (one.phase == Phase::kTaken) PURLIN_TRY(begin(one, captures, now));
    if (one.phase == Phase::kRecording) PURLIN_TRY(finish(one, captures, now()));
  }
  return Status::ok();
}

Status WindowTaker::begin(const Held& held, const std::vector<LiveCapture>& captures,
                          const std::function<std::int64_t()>& now) {
  if (held.length_ns > options_.longest_ns)
    return refuse(held.id,
                  fmt::format("the node accepts windows of at most {:g} s (its collector's "
                              "--window-limit)",
                              static_cast<double>(options_.longest_ns) * 1e-9));
  const std::vector<const LiveCapture*> processes = matching(held, captures);
  if (processes.empty())
    return refuse(held.id, "no captured process of this job or number runs on the node");
  if (processes.size() > kMostProcesses)
    return refuse(held.id, fmt::format("{} processes match, and a window is of at most {}: give a "
                                       "job or process",
                                       processes.size(), kMostProcesses));
  // A second window of a process would change the end of the first one.
  for (const LiveCapture* live : processes)
    if (is_recording(live->capture.folder, live->pid)) return Status::ok();
  const std::int64_t begin_ns = now();
  PURLIN_TRY(change(held.id, [&](Held& one) {
    one.phase = Phase::kRecording;
    one.begin_ns = begin_ns;
    one.end_ns = begin_ns + one.length_ns;
    for (const LiveCapture* live : processes)
      one.processes.emplace_back(live->capture.folder, live->pid);
  }));
  std::string first_failure;
  std::size_t failures = 0;
  for (const LiveCapture* live : processes) {
    const Status asked = options_.record(*live, held.length_ns);
    if (asked.is_ok()) continue;
    ++failures;
    if (first_failure.empty()) first_failure = asked.message();
  }
  if (failures == processes.size()) return refuse(held.id, first_failure);
  // Some take a while to begin. Each records for the whole length from then.
  const std::int64_t end_ns = now() + held.length_ns;
  return change(held.id, [&](Held& one) { one.end_ns = end_ns; });
}

Status WindowTaker::finish(const Held& held, const std::vector<LiveCapture>& captures,
                           std::int64_t now_ns) {
  Files& files = files_[held.id];
  std::map<Process, std::int64_t> sealed;  // of those that run
  for (const LiveCapture& live : captures) {
    const Process process{live.capture.folder, live.pid};
    if (std::find(held.processes.begin(), held.processes.end(), process) == held.processes.end())
      continue;
    if (!live.ended) sealed[process] = std::max(sealed[process], live.sealed_ns);
    if (live.sealed_ns < held.begin_ns) continue;
    if (files.by_key.empty()) files.run = live.run;
    files.by_key[live.capture.key] = live.capture.file;
  }
  const bool all_sealed = std::all_of(sealed.begin(), sealed.end(),
                                      [&](const auto& one) { return one.second > held.end_ns; });
  if (now_ns < held.end_ns || (!all_sealed && now_ns < held.end_ns + kSealGraceNs))
    return Status::ok();
  std::vector<int> descriptors;
  for (const auto& [key, file] : files.by_key) descriptors.push_back(file->get());
  const Result<std::string> bytes = window_profile(descriptors, held.begin_ns, held.end_ns);
  if (!bytes.is_ok()) return refuse(held.id, bytes.status().message());
  if (bytes->size() > raws_.max_bytes_of_window())
    return refuse(held.id,
                  fmt::format("the window has {} MiB, of at most {}: request a shorter one",
                              bytes->size() >> 20, raws_.max_bytes_of_window() >> 20));
  RawCapture raw;
  raw.pointer.begin_ns = held.begin_ns;
  raw.pointer.end_ns = held.end_ns;
  raw.pointer.kind = std::string(kWindowKind);
  raw.run = files.run;
  PURLIN_ASSIGN(const std::string hash, raws_.add(*bytes, std::move(raw)));
  PURLIN_TRY(change(held.id, [&](Held& one) {
    one.phase = Phase::kSending;
    one.detail = hash;
    ++counts_.sent;
  }));
  files_.erase(held.id);
  return Status::ok();
}

Json WindowTaker::exchange() const {
  const std::lock_guard lock(mutex_);
  Json reports = Json::array();
  for (const Held& held : held_)
    if (held.phase != held.reported)
      reports.push(
          Json::object({{"id", held.id}, {"state", name_of(held.phase)}, {"detail", held.detail}}));
  return Json::object(
      {{"node", options_.node}, {"claimer", claimer_}, {"reports", std::move(reports)}});
}

// One that the server knows the end of goes. It is not given again.
Status WindowTaker::settle(const Json& sent, const Json& answer) {
  const std::lock_guard lock(mutex_);
  const std::deque<Held> before = held_;
  for (const Json& report : sent["reports"].items()) {
    const auto held = std::find_if(held_.begin(), held_.end(), [&](const Held& one) {
      return one.id == report["id"].as_string();
    });
    if (held == held_.end()) continue;
    const std::string& state = report["state"].as_string();
    if (is_final_phase(state))
      held_.erase(held);
    else
      held->reported = Phase::kRecording;
  }
  std::uint64_t taken = 0;
  for (const Json& window : answer["windows"].items()) {
    Held held;
    held.id = window["id"].as_string();
    held.job = window["job"].as_string();
    held.pid = window["pid"].as_int();
    held.length_ns = static_cast<std::int64_t>(window["length_s"].as_double() * 1e9);
    const bool known = std::any_of(before.begin(), before.end(),
                                   [&](const Held& one) { return one.id == held.id; });
    if (known || held.id.empty() || held.length_ns <= 0 || held_.size() >= kMostHeld) continue;
    held_.push_back(std::move(held));
    ++taken;
  }
  const Status saved = save();
  if (!saved.is_ok()) {
    held_ = before;
    return saved;
  }
  counts_.taken += taken;
  return saved;
}

WindowTaker::Counts WindowTaker::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace purlin::fleet
