// SPDX-License-Identifier: Apache-2.0
// CounterTier: hardware counters of some of the program's launches, one card of them at a time.
//
// All work with the hardware happens on the program's own thread, inside the chosen launch: CUPTI's
// calls wait for the context and would deadlock with a thread that launches at the same time.
// Before each call the context must have become idle by itself. The tier does nothing while a
// stream capture is in progress in the process. A capture that begins waits until the reading is
// over.
//
// A kernel may wait for one that is launched later, and the tier waits for the kernel. So each
// kernel and launch shape first has a trial without counting: the launch must end within
// kTrialPatienceNs without a later launch. If it does not, the program continues and the shape is
// never read. If a launch that passed does not end while it is counted, it is released after about
// twice its trial's time, and counters end for the process.
//
// A window has one session (one card) at most, after the trials. With `replay` there are no
// windows: each chosen launch runs once per pass, and a note reports that the program is slowed.
//
// Owned by the CollectorScheduler. open, close, collect: its threads. The listener's side: the
// program's.
#pragma once

#include "profile/capture/cuda/counters/chooser.h"
#include "profile/capture/cuda/counters/hardware.h"
#include "profile/capture/cuda/tier.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::profile::capture::cuda {

struct CounterOptions {
  std::vector<std::string_view> topics;
  bool replay = false;        // all counters of the chosen launches, by running them again
  std::uint32_t replays = 3;  // launches of each kernel and launch shape
  std::string only, never;    // expressions for kernel names

  // False if no counters were requested. PURLIN_COUNTERS: as --counters; PURLIN_COUNTERS_KERNEL and
  // _NEVER: expressions; PURLIN_COUNTERS_REPLAYS.
  static bool from_environment(CounterOptions& options);
};

class CounterTier : public Tier, private LaunchListener {
 public:
  // For earlier launches; shorter if they may wait for the launch that is held up.
  static constexpr std::int64_t kQueuePatienceNs = 300'000'000, kStreamsPatienceNs = 50'000'000;
  static constexpr std::int64_t kTrialPatienceNs = 50'000'000;
  static constexpr std::int64_t kEndPatienceNs = 100'000'000;  // of the process or of a context
  static constexpr std::size_t kReadingsPerWindow = 48, kRangesPerSession = 96;
  // Counters are requested by name: if their share of the budget is less, they may take this.
  static constexpr double kMinBudget = 0.05;

  CounterTier(std::unique_ptr<CounterHardware> hardware, Recorder& recorder,
              const CounterOptions& options);

  void prepare() override;
  const char* name() const override { return "counters"; }
  Requirements requirements() const override;
  Opened open(const Window& window) override;
  void close() override;
  void collect(bool final) override;
  std::int64_t take_cost_ns() override { return cost_ns_.exchange(0); }
  std::int64_t take_once_ns() override { return once_ns_.exchange(0); }
  void yield() override;

 private:
  struct Reading {
    LaunchSite site;
    std::string symbol;
    LaunchFacts facts;
    std::size_t range = 0;
  };
  struct Session {
    const void* context = nullptr;
    std::size_t card = 0, ranges = 0;
    std::uint64_t first_window = 0;
    bool range_open = false;
    std::vector<Reading> readings;
  };
  struct Finished {
    CounterImage image;
    CounterCard card;
    std::vector<Reading> readings;
  };

  bool entering(const LaunchSite& site) override;
  void left() override;
  void graph_launched() override;
  void capture_begins() override;
  void capture_ended() override { --captures_; }
  void context_ends() override;

  void wait_for_hardware();
  bool prepare(const LaunchSite& site);
  bool know_cards(const void* context);
  bool seeking() const;
  void end_trial();
  void end_reading();
  bool is_over(const Session& session) const;
  bool begin_session(const void* context, std::size_t card);
  void finish_session();
  bool settle_open_range();
  bool wait_until_idle(const void* context, std::int64_t patience_ns, bool while_open);
  bool quiet() const { return captures_ == 0; }
  bool window_is_over() const { return !options_.replay && window_readings_ >= kReadingsPerWindow; }
  void begin_window();
  void end_window();
  bool get_ready(const void* context);
  void disturbed();
  void unready(bool single_stream);
  void undisturbed() { disturbed_windows_ = disturbed_here_ = unready_windows_ = 0; }
  void failed();
  std::size_t next_card();
  void account();
  void evaluate(Finished& finished);
  void note_cards();
  void refuse(const char* cause, const std::string& text);
  void end_for_good(const char* cause, const std::string& text);

  const std::unique_ptr<CounterHardware> hardware_;
  Recorder& recorder_;
  const CounterOptions options_;
  NamePattern only_, never_;
  std::atomic<bool> subscribed_ = false, refused_ = false;

  std::atomic<bool> open_ = false, over_ = false;  // over_: never again in this process
  std::atomic<bool> watching_ = false;             // launches
  std::atomic<bool> busy_ = false;  // a thread is at the hardware; the gate of all below
  std::atomic<int> captures_ = 0;
  std::atomic<std::uint64_t> other_launches_ = 0;  // made while a thread was at the hardware
  std::atomic<std::int64_t> deadline_ns_ = 0, cost_ns_ = 0, once_ns_ = 0;
  std::atomic<std::uint64_t> windows_ = 0;
  std::atomic<std::uint64_t> graphs_ = 0, disturbed_ = 0, unended_ = 0, unready_ = 0;

  // Of the thread that is at the hardware.
  std::string chip_;
  std::vector<CounterCard> cards_;
  std::unique_ptr<Session> session_;
  std::uint64_t window_ = 0;  // the last one that brought a thread here
  std::size_t window_readings_ = 0, window_trials_ = 0, last_card_ = 0;
  std::int64_t window_since_ns_ = 0;
  bool seek_ = true;  // this window begins with trials
  int failures_ = 0, strikes_ = 0, waiting_ = 0, disturbed_here_ = 0, disturbed_windows_ = 0;
  int unready_windows_ = 0;  // one after the other
  bool any_card_ = false, trial_ = false;
  std::string stuck_;  // the kernel that did not end while it was counted
  LaunchSite site_;
  std::uint64_t others_before_ = 0;
  std::int64_t entered_ns_ = 0, waited_ns_ = 0, left_ns_ = 0;

  std::mutex state_mutex_;  // the chooser and what waits for collect(); no call of CUPTI under it
  CounterChooser chooser_;
  std::vector<Finished> finished_;
  std::vector<bool> turns_;  // which cards had theirs
};

}  // namespace purlin::profile::capture::cuda
