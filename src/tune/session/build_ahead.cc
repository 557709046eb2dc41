// SPDX-License-Identifier: Apache-2.0
#include "tune/session/build_ahead.h"

#include <algorithm>
#include <chrono>

namespace purlin::tune {
namespace {

constexpr std::chrono::milliseconds kLook{50};  // at whether a wait is over
constexpr int kMostUnasked = 64;                // where the user names no number

}  // namespace

int default_compilers() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores - 1, 1, kMostUnasked);
}

BuildAhead::BuildAhead(Start start, int threads, bool pause_to_measure)
    : start_(std::move(start)), pause_to_measure_(pause_to_measure), working_(threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

BuildAhead::~BuildAhead() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  stop_ = true;  // a build that hangs does not hold up the end
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BuildAhead::announce(const Config& config) {
  {
    const std::lock_guard lock(mutex_);
    if (!jobs_.emplace(config.text(), Job{}).second) return;
    queue_.push_back(config);
  }
  changed_.notify_all();
}

void BuildAhead::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    queue_.clear();
    jobs_.clear();
  }
  stop_ = true;
  changed_.notify_all();
}

Result<std::optional<Evaluation>> BuildAhead::collect(const Config& config,
                                                      const std::function<bool()>& is_over) {
  std::unique_lock lock(mutex_);
  const std::string key = config.text();
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return std::optional<Evaluation>();
  Job& job = found->second;
  ++collecting_;
  if (job.state != Job::kDone) changed_.notify_all();
  bool over = false;
  while (job.state != Job::kDone && working_ > 0 && !(over = is_over()))
    changed_.wait_for(lock, kLook);
  --collecting_;
  if (over) return error(Code::kCancelled, "the build of {} was stopped", config.text());
  std::optional<Evaluation> outcome = std::move(job.outcome);
  if (job.state == Job::kWaiting)  // all compilers are gone
    std::erase_if(queue_, [&](const Config& queued) { return queued == config; });
  jobs_.erase(found);
  return outcome;
}

std::optional<std::size_t> BuildAhead::first_built(const std::vector<const Config*>& configs) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const auto found = jobs_.find(configs[i]->text());
    if (found == jobs_.end() || found->second.state == Job::kDone || working_ == 0) return i;
  }
  return std::nullopt;
}

void BuildAhead::begin_measuring(const std::function<bool()>& is_over) {
  if (!pause_to_measure_) return;
  std::unique_lock lock(mutex_);
  ++measuring_;
  while (building_ > 0 && !is_over()) changed_.wait_for(lock, kLook);
}

void BuildAhead::end_measuring() {
  if (!pause_to_measure_) return;
  {
    const std::lock_guard lock(mutex_);
    --measuring_;
  }
  changed_.notify_all();
}

void BuildAhead::serve() {
  const Build build = start_(stop_);
  while (build) {
    std::optional<Config> config = next();
    if (!config) break;
    Result<Evaluation> outcome = build(*config);
    finish(*config, outcome);
    if (!outcome.is_ok()) break;
  }
  {
    const std::lock_guard lock(mutex_);
    --working_;
  }
  changed_.notify_all();
}

// Where builds wait for measurements, a measurement waits for the builds under way. So what is
// built is measured before more is begun: else each measurement would wait for one more build.
bool BuildAhead::may_build() const {
  if (!pause_to_measure_) return true;
  if (measuring_ > 0) return false;
  return collecting_ > 0 || std::none_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
           return job.second.state == Job::kDone;
         });
}

std::optional<Config> BuildAhead::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ending_ || (!queue_.empty() && may_build()); });
  if (ending_) return std::nullopt;
  Config config = std::move(queue_.front());
  queue_.pop_front();
  ++building_;
  return config;
}

void BuildAhead::finish(const Config& config, const Result<Evaluation>& outcome) {
  {
    const std::lock_guard lock(mutex_);
    --building_;
    if (const auto found = jobs_.find(config.text()); found != jobs_.end()) {
      found->second.state = Job::kDone;
      if (outcome.is_ok()) found->second.outcome = *outcome;
    }
  }
  changed_.notify_all();
}

}  // namespace purlin::tune
