// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/counters/tier.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr int kMaxFailures = 3;
constexpr int kMaxWaiting = 8;  // kernels that did not end by themselves
// Limits at which a program counts as one that always launches from several threads: disturbed
// readings and trials in a window, such windows in a row, and other launches during one wait.
constexpr int kMaxDisturbed = 8, kMaxDisturbedWindows = 3;
constexpr std::uint64_t kMaxOthers = 8;
constexpr int kMaxUnready = 8, kMaxUnreadyOfSeveralStreams = 3;  // windows
// A window begins with trials: for so long, or longer until there was one.
constexpr std::int64_t kSeekNs = 15'000'000, kMaxSeekNs = 60'000'000;
// The additional time of a launch while it is counted, compared with its trial.
constexpr std::int64_t kSlackNs = 10'000'000;
// For a thread at the hardware: beginning a session takes a good part of a second.
constexpr std::int64_t kHardwareWaitNs = 3'000'000'000;
constexpr std::string_view kCycles = "sm__cycles_active.max";

double value_of(const CounterCard& card, const std::vector<double>& values,
                std::string_view metric) {
  for (std::size_t i = 0; i < card.metrics.size(); ++i)
    if (card.metrics[i] == metric) return values[i];
  return -1;
}

}  // namespace

bool CounterOptions::from_environment(CounterOptions& options) {
  const auto variable = [](const char* name) {
    const char* value = ::secure_getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string wanted = variable("PURLIN_COUNTERS");
  if (wanted.empty()) return false;
  options.replay = wanted == "full";
  // What is not known is left to the command line to reject.
  if (options.replay || !parse_counter_topics(wanted, options.topics))
    parse_counter_topics("", options.topics);
  options.only = variable("PURLIN_COUNTERS_KERNEL");
  options.never = variable("PURLIN_COUNTERS_NEVER");
  const long replays = std::strtol(variable("PURLIN_COUNTERS_REPLAYS").c_str(), nullptr, 10);
  if (replays > 0 && replays <= 1000) options.replays = static_cast<std::uint32_t>(replays);
  return true;
}

CounterTier::CounterTier(std::unique_ptr<CounterHardware> hardware, Recorder& recorder,
                         const CounterOptions& options)
    : hardware_(std::move(hardware)),
      recorder_(recorder),
      options_(options),
      chooser_(only_, never_, options.replay ? options.replays : 0) {
  if (!only_.set(options.only) || !never_.set(options.never))
    refuse("counters_pattern", "a pattern for kernels' names is not a regular expression");
}

// From the beginning, so that no stream capture goes unseen.
void CounterTier::prepare() {
  if (over_) return;
  std::string reason;
  subscribed_ = hardware_->subscribe(*this, reason);
  if (!subscribed_) return refuse("counters_unavailable", reason);
  if (!options_.replay) return;
  deadline_ns_ = std::numeric_limits<std::int64_t>::max();
  open_ = watching_ = true;
  hardware_->watch_launches(true);
}

Requirements CounterTier::requirements() const {
  Requirements requirements;
  requirements.share = 0.5;
  requirements.min_budget = kMinBudget;
  requirements.window_ns = 300'000'000;  // a session takes some 200 ms to begin, a reading 1.3 ms
  requirements.min_period_ns = 500'000'000;
  requirements.first_cost_ns = 0;  // the first window is worth having even in a short program
  return requirements;
}

void CounterTier::refuse(const char* cause, const std::string& text) {
  over_ = true;
  if (!refused_.exchange(true)) recorder_.note(cause, "no hardware counters: " + text);
}

void CounterTier::failed() {
  session_.reset();
  hardware_->leave();
  if (++failures_ >= kMaxFailures)
    refuse("counters_failed", "CUPTI's range profiler failed repeatedly");
}

// ---- the collector scheduler's side ----

Tier::Opened CounterTier::open(const Window& window) {
  if (over_ || options_.replay) return Opened::kNever;
  deadline_ns_ = window.close_ns;
  ++windows_;
  if (windows_ == 1) hardware_->warm_up();
  open_ = watching_ = true;
  hardware_->watch_launches(true);
  return Opened::kYes;
}

// A thread at the hardware notices that the window is over, unless it is in a call of CUPTI. Those
// calls are made when the context is idle, so they end.
void CounterTier::wait_for_hardware() {
  const std::int64_t until = hardware_->now_ns() + kHardwareWaitNs;
  while (busy_ && hardware_->now_ns() < until) hardware_->pause();
}

// The callbacks stay on until the launch that is being read has been made: one reports its end.
void CounterTier::close() {
  open_ = false;
  if (!watching_.exchange(false)) return;
  wait_for_hardware();
  hardware_->watch_launches(false);
}

void CounterTier::yield() {
  close();
  over_ = true;
  if (subscribed_.exchange(false)) hardware_->unsubscribe();
  if (!refused_.exchange(true))
    recorder_.note("counters_yielded",
                   "hardware counters ended because another CUPTI client of the program needed "
                   "CUPTI's counter interface");
}

void CounterTier::collect(bool final) {
  if (final && !busy_.exchange(true)) {
    waited_ns_ = 0;
    if (session_ != nullptr && quiet() && wait_until_idle(session_->context, kEndPatienceNs, false))
      finish_session();
    busy_ = false;
  }
  if (over_ && subscribed_.exchange(false)) {
    wait_for_hardware();
    hardware_->unsubscribe();
  }
  std::vector<Finished> finished;
  std::size_t denied = 0;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    finished.swap(finished_);
    denied = chooser_.denied();
  }
  for (Finished& each : finished) evaluate(each);
  const auto note = [&](std::uint64_t count, const char* cause, const char* text) {
    if (count > 0) recorder_.note(cause, text, static_cast<double>(count));
  };
  note(graphs_.exchange(0), "counters_graphs",
       "graph launches in the windows of hardware counters: counters are not read for kernels in "
       "CUDA graphs");
  note(disturbed_.exchange(0), "counters_disturbed",
       "readings of hardware counters dropped, because another thread launched meanwhile");
  note(unready_.exchange(0), "counters_unready",
       "windows of hardware counters that ended because the GPU did not become idle in time");
  note(unended_.exchange(0), "counters_unended",
       "kernels and launch shapes whose hardware counters are not read, because a trial launch did "
       "not end within 50 ms: such kernels may wait for others");
  if (final) note_cards();
  if (final && options_.only.empty())
    note(denied, "counters_left_out",
         "kernels and launch shapes whose hardware counters are not read, because they may wait "
         "for others: communication, cooperative launches (see the guide on profiling)");
}

// Reports to the user which share of the figures was not read, and what to do.
void CounterTier::note_cards() {
  const std::lock_guard<std::mutex> lock(state_mutex_);
  if (turns_.empty() || options_.replay) return;
  const bool tensor = chooser_.tensor_cores_used();
  std::size_t all = 0, read = 0;
  for (std::size_t card = 0; card < turns_.size(); ++card) {
    if (!tensor && cards_[card].topic == "tensor") continue;
    ++all;
    read += turns_[card];
  }
  if (read >= all) return;
  recorder_.note("counters_turns",
                 "only " + std::to_string(read) + " of " + std::to_string(all) +
                     " sets of hardware counters were read in this time: a longer run, --budget, "
                     "or fewer topics (--counters memory,flops) read the others");
}

void CounterTier::evaluate(Finished& finished) {
  std::vector<double> values;
  for (Reading& reading : finished.readings) {
    if (!hardware_->values(finished.image, reading.range, values) ||
        values.size() != finished.card.metrics.size())
      continue;
    reading.facts.name = reading.symbol;
    recorder_.add_counters(reading.facts, finished.card.metrics, values);
    const std::lock_guard<std::mutex> lock(state_mutex_);
    chooser_.measured(reading.site, value_of(finished.card, values, kCycles),
                      value_of(finished.card, values, kTensorBusy));
  }
}

// ---- the program's side ----

void CounterTier::graph_launched() {
  if (!open_) return;
  ++graphs_;
  ++other_launches_;
}

// The count is raised first: a thread that comes to the hardware now sees it.
void CounterTier::capture_begins() {
  ++captures_;
  wait_for_hardware();
}

void CounterTier::context_ends() {
  if (busy_.exchange(true)) return;
  waited_ns_ = 0;
  if (session_ != nullptr) {
    if (quiet() && wait_until_idle(session_->context, kEndPatienceNs, false)) finish_session();
    session_.reset();
    hardware_->leave();
  }
  busy_ = false;
}

bool CounterTier::wait_until_idle(const void* context, std::int64_t patience_ns, bool while_open) {
  const std::int64_t began = hardware_->now_ns();
  const std::uint64_t others = other_launches_;
  bool idle = quiet() && hardware_->idle(context, true);
  while (!idle && quiet() && hardware_->now_ns() - began < patience_ns &&
         (!while_open || (open_ && other_launches_ - others <= kMaxOthers))) {
    hardware_->pause();
    idle = hardware_->idle(context, false);
  }
  waited_ns_ += hardware_->now_ns() - began;
  return idle;
}

// A part of the program's wait for its own work is not overhead.
void CounterTier::account() {
  cost_ns_ += hardware_->now_ns() - entered_ns_ - waited_ns_ * 3 / 4;
  busy_ = false;
}

bool CounterTier::entering(const LaunchSite& site) {
  if (!open_) return false;
  if (busy_.exchange(true)) {
    ++other_launches_;
    return false;
  }
  entered_ns_ = hardware_->now_ns();
  waited_ns_ = 0;
  if (prepare(site)) return true;
  account();
  return false;
}

// A session that is almost empty at a window's end goes on in the next: its start is expensive.
bool CounterTier::is_over(const Session& session) const {
  constexpr std::uint64_t kMaxWindows = 3;
  if (session.ranges >= kRangesPerSession) return true;
  const std::uint64_t windows = options_.replay ? 0 : window_ - session.first_window;
  return windows > 0 &&
         (seek_ || windows >= kMaxWindows || session.ranges >= kReadingsPerWindow / 2);
}

// Another thread launched at the same time, and the reading includes both.
void CounterTier::disturbed() {
  ++disturbed_;
  if (++disturbed_here_ < kMaxDisturbed) return;
  disturbed_here_ = 0;
  end_window();
  if (++disturbed_windows_ >= kMaxDisturbedWindows)
    end_for_good("counters_threads", "several threads of the program launch kernels all the time");
}

// The GPU still runs the program's earlier work: there is much of it, or it waits for this launch.
void CounterTier::unready(bool single_stream) {
  ++unready_;
  end_window();
  if (++unready_windows_ >= (single_stream ? kMaxUnready : kMaxUnreadyOfSeveralStreams))
    end_for_good("counters_never_idle",
                 "in several windows in a row the GPU did not become idle before chosen launches");
}

// True: the context is idle, and no other thread launches.
bool CounterTier::get_ready(const void* context) {
  bool single_stream = false;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    single_stream = chooser_.single_stream();
  }
  const std::uint64_t others = other_launches_;
  if (wait_until_idle(context, single_stream ? kQueuePatienceNs : kStreamsPatienceNs, true))
    return open_ && quiet();
  if (other_launches_ - others > kMaxOthers) {
    disturbed();
  } else if (quiet()) {
    unready(single_stream);
  }
  return false;
}

void CounterTier::end_for_good(const char* cause, const std::string& text) {
  open_ = false;
  if (session_ != nullptr && !session_->range_open && quiet() &&
      hardware_->idle(session_->context, true))
    finish_session();
  if (session_ == nullptr) hardware_->leave();
  refuse(cause, text);
}

// After a disturbance.
void CounterTier::end_window() {
  constexpr int kMaxStrikes = 20;
  window_readings_ = kReadingsPerWindow;
  if (options_.replay && ++strikes_ > kMaxStrikes) open_ = false;
}

void CounterTier::begin_window() {
  const bool first = window_ == 0;
  window_ = windows_;
  window_readings_ = window_trials_ = 0;
  window_since_ns_ = entered_ns_;
  const std::lock_guard<std::mutex> lock(state_mutex_);
  seek_ = chooser_.take_untried() || first;
}

// True: a trial begins, or a range is open, for the launch that comes now.
bool CounterTier::prepare(const LaunchSite& site) {
  if (window_ != windows_) begin_window();
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    chooser_.saw(site);
  }
  if (!open_ || over_ || !quiet() || window_is_over() || entered_ns_ >= deadline_ns_) return false;
  if (session_ != nullptr && session_->context != site.context) return false;
  if (session_ != nullptr && session_->range_open && !settle_open_range()) return false;
  const auto ready = [&] { return get_ready(site.context); };
  if (session_ != nullptr && is_over(*session_)) {
    const bool tells_next = cards_[session_->card].topic == "memory";
    if (!ready()) return false;
    finish_session();
    // Whether any kernel uses the tensor cores is known when this has been evaluated.
    if (tells_next && cards_[next_card()].topic == "tensor") return end_window(), false;
  }
  if (!know_cards(site.context)) return false;
  bool trial = session_ == nullptr || options_.replay;
  if (trial) {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    trial = chooser_.wants_trial(site);
  }
  if (trial) {
    others_before_ = other_launches_;
    if (!ready()) return false;
    trial_ = true;
    site_ = site;
    return true;
  }
  if (seeking()) return false;
  const std::size_t card = session_ != nullptr ? session_->card : next_card();
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    if (!chooser_.choose(site, card, cards_[card].topic == "tensor")) return false;
  }
  others_before_ = other_launches_;
  if (!ready()) return false;
  if (session_ == nullptr && !begin_session(site.context, card)) return false;
  if (!open_ || !quiet()) return false;  // beginning took its time
  if (!hardware_->push(session_->ranges)) return failed(), false;
  site_ = site;
  return true;
}

bool CounterTier::seeking() const {
  return seek_ && session_ == nullptr && !options_.replay &&
         entered_ns_ - window_since_ns_ < (window_trials_ > 0 ? kSeekNs : kMaxSeekNs);
}

void CounterTier::left() {
  left_ns_ = hardware_->now_ns();
  std::exchange(trial_, false) ? end_trial() : end_reading();
  account();
}

void CounterTier::end_trial() {
  ++window_trials_;
  const bool ended = wait_until_idle(site_.context, kTrialPatienceNs, false);
  if (other_launches_ != others_before_ || (!ended && !quiet())) return disturbed();
  undisturbed();
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    ended ? chooser_.tried(site_, hardware_->now_ns() - left_ns_) : chooser_.give_up(site_);
  }
  if (ended) return;
  ++unended_;
  end_window();
  if (++waiting_ >= kMaxWaiting)
    end_for_good("counters_waiting",
                 "too many of the program's kernels did not end within 50 ms of their launch");
}

void CounterTier::end_reading() {
  Session& session = *session_;
  Reading reading;
  reading.site = site_;
  reading.site.symbol = nullptr;
  reading.symbol = site_.symbol;
  reading.facts = hardware_->facts(site_);
  reading.range = session.ranges++;
  ++window_readings_;
  const std::int64_t waited_before = waited_ns_;
  std::int64_t patience_ns = kSlackNs;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    chooser_.took(site_, session.card);
    patience_ns += 2 * chooser_.trial_ns(site_);
  }
  const bool ended = wait_until_idle(site_.context, patience_ns, false);
  waited_ns_ = waited_before;  // this wait is a reading's overhead
  if (!ended) {
    session.range_open = true;
    end_window();
    if (quiet()) stuck_ = reading.symbol;  // else a capture ended the wait
  } else if (!hardware_->pop()) {
    failed();
  } else if (other_launches_ != others_before_) {
    disturbed();
  } else {
    undisturbed();
    session.readings.push_back(std::move(reading));
    if (window_is_over()) finish_session();  // now that nothing is under way
  }
}

// Once the launch that did not end has ended after all.
bool CounterTier::settle_open_range() {
  if (!hardware_->idle(session_->context, true)) return false;
  session_->range_open = false;
  if (!hardware_->pop()) return failed(), false;
  if (stuck_.empty()) return true;
  end_for_good("counters_stuck",
               "a kernel that ended by itself in its trial did not end while it was counted, and "
               "was released after 110 ms at most: " +
                   stuck_ + "; PURLIN_COUNTERS_NEVER leaves kernels out");
  return false;
}

bool CounterTier::know_cards(const void* context) {
  if (!cards_.empty()) return true;
  const std::string chip = hardware_->chip(context);
  if (options_.replay) {
    if (const auto metrics = full_counters(chip); !metrics.empty())
      cards_.push_back({"full", metrics});
  } else {
    for (CounterCard& card : counter_cards(chip))
      if (std::find(options_.topics.begin(), options_.topics.end(), card.topic) !=
          options_.topics.end())
        cards_.push_back(std::move(card));
  }
  if (cards_.empty())
    refuse("counters_unsupported", "Purlin knows no counters of this GPU's chip, '" + chip + "'");
  return !cards_.empty();
}

std::size_t CounterTier::next_card() {
  if (!any_card_) return 0;
  const std::lock_guard<std::mutex> lock(state_mutex_);
  const bool tensor = chooser_.tensor_cores_used();
  std::size_t card = last_card_;
  for (std::size_t tried = 0; tried < cards_.size(); ++tried) {
    card = (card + 1) % cards_.size();
    if (tensor || cards_[card].topic != "tensor") break;
  }
  return card;
}

bool CounterTier::begin_session(const void* context, std::size_t card) {
  std::string reason;
  const std::int64_t began = hardware_->now_ns();
  const CounterHardware::Answer answer =
      hardware_->begin(context, cards_[card], kRangesPerSession, options_.replay, reason);
  if (!any_card_) {  // the first takes half a second
    const std::int64_t took = hardware_->now_ns() - began;
    once_ns_ += took;
    entered_ns_ += took;
  }
  last_card_ = card;  // a card that fails is not requested repeatedly
  any_card_ = true;
  if (answer == CounterHardware::Answer::kNever) refuse("counters_refused", reason);
  if (answer == CounterHardware::Answer::kNotNow) {
    recorder_.note("counters_busy", reason, 1);
    end_window();
  }
  if (answer != CounterHardware::Answer::kYes) return false;
  session_ = std::make_unique<Session>();
  session_->context = context;
  session_->card = card;
  session_->first_window = window_;
  const std::lock_guard<std::mutex> lock(state_mutex_);
  turns_.resize(cards_.size());
  turns_[card] = true;
  return true;
}

// REQUIRES: the context is idle, nothing is captured, and this thread is at the hardware.
void CounterTier::finish_session() {
  Finished finished;
  if ((session_->range_open && !hardware_->pop()) || !hardware_->finish(finished.image))
    return failed();
  finished.card = cards_[session_->card];
  finished.readings = std::move(session_->readings);
  session_.reset();
  const std::lock_guard<std::mutex> lock(state_mutex_);
  finished_.push_back(std::move(finished));
}

}  // namespace purlin::profile::capture::cuda
