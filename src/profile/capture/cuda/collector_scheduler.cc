// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/collector_scheduler.h"

#include "profile/capture/recording/json_text.h"
#include "profile/capture/session/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::int64_t kAskAgainNs = 100'000'000;  // where it is not Purlin's turn
// The interval for looking for a context that CUPTI does not report.
constexpr std::int64_t kContextNs = 50'000'000;
constexpr std::int64_t kCycleNs = 2'000'000;
constexpr std::int64_t kStillOfTheHeadNs = 100'000'000;  // enqueued in it, and not yet begun
// After so long without a copy none is under way, and their kinds can be switched off.
constexpr std::int64_t kNoCopyNs = 2'000'000'000;
// Open for less, what was recorded can wait until the window is closed.
constexpr std::int64_t kLongOpenNs = 100'000'000;

constexpr const char* kNeverBegan = "window_never_began";
constexpr const char* kThreadsText =
    "recording was off and is on again (after `purlin capture`, or another CUPTI client of the "
    "program). Recording of this program began before it had a CUDA context. CUPTI 13.0 may "
    "lose all later launches of threads that were in a launch when it was switched off. "
    "Start such a program with --idle or --windows";

std::vector<Requirements> requirements_of(const std::vector<std::unique_ptr<Tier>>& tiers) {
  std::vector<Requirements> requirements;
  for (const std::unique_ptr<Tier>& tier : tiers) requirements.push_back(tier->requirements());
  return requirements;
}

// With a tier that pins launches, tier 0 opens before the context exists, because it cannot open
// next to that tier. The exception is --idle, where nothing is open yet.
ControllerOptions with_context(ControllerOptions options, const std::vector<Requirements>& tiers) {
  const bool pinned = std::any_of(tiers.begin(), tiers.end(),
                                  [](const Requirements& tier) { return tier.pins_launches; });
  const bool windows = options.windows || options.full_window_ns > 0;
  options.after_context =
      options.idle || (!pinned && (tiers.size() > 1 || (windows && !options.every_launch)));
  return options;
}

// How long it took.
template <class Call>
std::int64_t timed(Call call) {
  const std::int64_t began = monotonic_ns();
  call();
  return monotonic_ns() - began;
}

}  // namespace

CollectorScheduler::CollectorScheduler(const ControllerOptions& options,
                                       std::vector<std::unique_ptr<Tier>> tiers,
                                       ActivityAggregator& aggregator, Recorder& recorder)
    : tiers_(std::move(tiers)),
      aggregator_(aggregator),
      recorder_(recorder),
      controller_(with_context(options, requirements_of(tiers_)), requirements_of(tiers_),
                  monotonic_ns()),
      awaits_context_(controller_.after_context()) {}

void CollectorScheduler::begin() {
  for (const std::unique_ptr<Tier>& tier : tiers_) tier->prepare();
}

std::int64_t CollectorScheduler::tick(Ownership& ownership) {
  const Ownership::Turn turn = ownership.take_turn();
  if (!turn) return monotonic_ns() + kAskAgainNs;
  if (context_awaited(ownership)) return monotonic_ns() + kContextNs;
  flush_times_.flushed(ownership.flushed_ns());
  // What the period brought is known before the next one is planned; of windows it was asked for in
  // the gap.
  const std::int64_t now = monotonic_ns();
  if (open_ == 0 && now >= controller_.period_end_ns() && now - opened_ns_ >= kLongOpenNs)
    collect(0, false);
  account(0);
  const OverheadController::Decision decision = controller_.decide(monotonic_ns());
  // A period that is recorded throughout is followed by another, mostly.
  const bool goes_on = decision.tier == 0 && decision.ask_again_ns == controller_.period_end_ns();
  next_switch_ns_ = goes_on ? FlushTimes::kNever : decision.ask_again_ns;
  if (decision.tier != open_) {
    // Where another client has replaced Purlin unseen, what is on is that client's, and stays on.
    if (open_ != OverheadController::kNone && !ownership.confirm())
      return monotonic_ns() + kAskAgainNs;
    flush_times_.flushed(ownership.flushed_ns());
    close_open_tier();
  }
  if (stuck_) {
    end_stuck(ownership);
    return OverheadController::kNever;
  }
  if (decision.new_period) {
    settle();
    aggregator_.begin_period(controller_.planned_weight(), controller_.weight_is_final(),
                             decision.full);
  }
  if (decision.tier != open_) open(ownership, decision);
  if (decision.cycle) cycle();
  if (const bool ended = controller_.ended(); ended && !std::exchange(told_ended_, ended)) {
    // What graphs that were made in the start-up window go on to record is of no period.
    aggregator_.leave_out_from(wall_ns() + kStillOfTheHeadNs);
    ended_ns_ = wall_ns();
    tiers_[0]->rest();  // its first count begins now
  }
  aggregator_.want_copies(open_ == 0 || !controller_.stopped());
  return fetch_records(decision.ask_again_ns);
}

// Whether there is something to record once the program has a context; if it has one now, the
// window that was asked for begins. A capture that idles does without CUPTI.
bool CollectorScheduler::context_awaited(Ownership& ownership) {
  if (!awaits_context_ || (controller_.stopped() && waiting_window_ns_ == 0)) return false;
  if (!ownership.has_context()) return true;
  awaits_context_ = false;
  aggregator_.await_work();
  if (waiting_window_ns_ > 0) begin_asked_window(take_waiting_window());
  return false;
}

// In the gap before that, once. When to be called again.
std::int64_t CollectorScheduler::fetch_records(std::int64_t before_ns) {
  if (open_ != OverheadController::kNone || controller_.ended() || !aggregator_.awaits_records())
    return before_ns;
  if (fetched_before_ns_ == before_ns) return before_ns;
  const std::int64_t now = monotonic_ns(), ask_ns = flush_times_.best_flush_ns(before_ns);
  if (now < ask_ns) return std::min(ask_ns, before_ns);
  fetched_before_ns_ = before_ns;
  if (flush_times_.may_flush(now, before_ns)) collect(0, false);
  return before_ns;
}

void CollectorScheduler::keep_apart() {
  const std::int64_t wait_ns = flush_times_.switch_from_ns() - monotonic_ns();
  if (wait_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait_ns));
}

void CollectorScheduler::open(Ownership& ownership, const OverheadController::Decision& decision) {
  if (!ownership.need()) return;  // which ends capture
  Tier& tier = *tiers_[static_cast<std::size_t>(decision.tier)];
  Tier::Opened opened = Tier::Opened::kNotNow;
  keep_apart();
  const bool again = opened_before_context() && decision.tier == 0;
  if (decision.tier == 0) aggregator_.begin_window();
  const std::int64_t cost = timed([&] { opened = tier.open(decision.window); });
  if (decision.tier == 0) controller_.spent(0, cost);
  opened_ns_ = monotonic_ns();
  flush_times_.switched(opened_ns_);
  if (opened == Tier::Opened::kYes) {
    open_ = decision.tier;
    controller_.opened(open_, opened_ns_, cost);
    if (open_ == 0 && !controller_.every_launch()) processor_wait_.opened(opened_ns_);
    if (again) recorder_.note("threads_lost", kThreadsText, 1);
  } else {
    if (decision.tier == 0) aggregator_.drop_window();
    controller_.refused(decision.tier, opened == Tier::Opened::kNever, monotonic_ns());
  }
}

void CollectorScheduler::close_open_tier(bool final) {
  if (open_ == OverheadController::kNone) return;
  if (!final) keep_apart();
  const int tier = std::exchange(open_, OverheadController::kNone);
  // At the end no later replay spoils what is under way.
  if (tier == 0 && !final) aggregator_.end_window();
  // Threads that launch hold CUPTI's locks, and on an overloaded machine they hold them while they
  // wait for a processor. Recording goes on until the call returns.
  const std::int64_t used_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::int64_t began = monotonic_ns();
  Tier& closing = *tiers_[static_cast<std::size_t>(tier)];
  const std::int64_t cost = timed([&] { closing.close(); });
  const std::int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_before;
  const std::int64_t until_ns = closing.recorded_until_ns();
  const std::int64_t closed_ns = until_ns > began ? until_ns : monotonic_ns();
  controller_.closed(tier, closed_ns, closed_ns - began);
  if (tier == 0) processor_wait_.closed(closed_ns);
  if (tier == 0 && !final) aggregator_.window_closed(closed_ns);
  flush_times_.switched(monotonic_ns());
  if (tier == 0) controller_.spent(0, cost);
  if (tier == 0 && !final && toggles_.closed(used)) stuck_ = true;
  // What ends with the program is whole: nothing after it is to be counted.
  if (tier == 0 && (controller_.totals().windows > 1 || (!final && controller_.after_context())))
    start_counter(controller_.totals().windows <= 1);
  account(tier);
}

void CollectorScheduler::end_stuck(Ownership& ownership) {
  close_open_tier(true);
  collect(0, false);
  controller_.interrupted(monotonic_ns());
  settle(true);
  report();
  ownership.give_up(
      "cupti_stuck",
      "CUPTI lost track of work that it had recorded: it keeps memory of the host and "
      "of the device for all that it records later, and takes ever longer to be "
      "switched on and off. Capture ended there, for the program's safety");
}

// What CUPTI has left in the graphs of the start-up window goes with this (cost_model.h), and from
// here on it numbers launches that it does not record (launch_counter.h). Launches meanwhile are
// recorded, and belong to the start-up window. Where the program was in one call all the while (it
// waits for its graphs, say), numbers have been seen to stand still for good: it is given the time
// for others.
void CollectorScheduler::cycle() {
  keep_apart();
  const std::int64_t began = monotonic_ns();
  if (tiers_[0]->open({}) == Tier::Opened::kYes) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kCycleNs));
    controller_.spent(0, timed([&] { tiers_[0]->close(); }));
    controller_.cycled(monotonic_ns() - began);
    flush_times_.switched(monotonic_ns());
  }
  start_counter(controller_.totals().windows <= 1);
}

// Does not start the counter when no later window can represent the launches to come: they would
// be reported as missing at the end.
void CollectorScheduler::start_counter(bool stood_still) {
  if (!controller_.windows_may_follow()) return;
  if (aggregator_.start_counter(stood_still)) controller_.take_alone_ns();  // of before
}

void CollectorScheduler::account(int tier) {
  Tier& payer = *tiers_[static_cast<std::size_t>(tier)];
  if (tier == 0)
    controller_.spent_on_records(payer.take_cost_ns());
  else
    controller_.spent(tier, payer.take_cost_ns());
  controller_.spent_once(payer.take_once_ns());
  if (tier != 0) return;
  const ActivityAggregator::Counts counts = aggregator_.take_counts();
  controller_.recorded(counts.launches, counts.nodes, counts.age_ns, counts.at_work,
                       recorder_.kernel_names());
  controller_.hidden(aggregator_.hidden(controller_.prices(monotonic_ns())));
}

// A flush runs in parallel with the program, which waits for it only at times. A quarter of the
// flush's time is charged as the program's.
void CollectorScheduler::collect(int tier, bool final) {
  const std::int64_t cost = timed([&] { tiers_[static_cast<std::size_t>(tier)]->collect(final); });
  if (tier == 0) flush_times_.flushed(monotonic_ns());
  if (tier == 0) controller_.spent(0, cost / 4);
  account(tier);
}

void CollectorScheduler::settle(bool last) {
  const OverheadController::Standing standing = controller_.take_weight(last);
  aggregator_.settle(standing.weight, standing.time_ns, last, controller_.take_alone_ns(),
                     {standing.unsure, processor_wait_.take_difference(monotonic_ns())});
  if (last) aggregator_.stop_counter();
}

void CollectorScheduler::report() {
  const OverheadController::Totals& totals = controller_.totals();
  recorder_.add_overhead_ns(totals.spent_ns - std::exchange(told_spent_ns_, totals.spent_ns));
  const ActivityAggregator::Estimate estimate = aggregator_.estimate();
  if (controller_.ended()) note_ended();
  note_presence();
  recorder_.set_sampling({controller_.budget(), totals.governed_ns, totals.recorded_ns,
                          totals.windows, estimate.total_ns, estimate.variance, controller_.waits(),
                          estimate.counted, estimate.timed, controller_.presence_at_work(),
                          totals.hidden_ns, controller_.copies_presence(), controller_.partly(),
                          controller_.beyond_windows(), estimate.unsure_ns});
}

// Watches the processor time of the session's thread, which aggregates the records of windows. Also
// watches the memory of the buffers, whose number CUPTI decides. A user who asked for every launch
// accepts that processor time, but the limit on memory applies to them too.
void CollectorScheduler::watch_self() {
  constexpr std::int64_t kWatchNs = 5'000'000'000;
  constexpr double kMaxCpu = 0.05;  // of a processor
  constexpr std::size_t kMaxBufferBytes = std::size_t{512} << 20;
  if (aggregator_.memory_bytes() > kMaxBufferBytes && !controller_.stopped()) {
    close_open_tier();
    leave_copies();
    controller_.stop(monotonic_ns());
    settle(true);
    recorder_.note(
        "memory_limit",
        "capture ended: CUPTI held more than 512 MiB of Purlin's buffers, as in programs "
        "of very many threads");
  }
  const std::int64_t now = monotonic_ns();
  if (now - watched_since_ns_ < kWatchNs) return;
  timespec used = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  const std::int64_t cpu = std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
  const double share = static_cast<double>(cpu - watched_cpu_ns_) /
                       static_cast<double>(now - std::exchange(watched_since_ns_, now));
  const bool first = watched_cpu_ns_ == 0;
  watched_cpu_ns_ = cpu;
  if (first || share <= kMaxCpu || controller_.every_launch()) return;
  controller_.back_off();
  recorder_.note("backed_off",
                 "Purlin's own thread used more than 5 % of a processor: each time the budget was "
                 "halved",
                 1);
}

// For programs of which only the start-up window is recorded. Memcpy and memset records stay on,
// with an overhead for every launch, until none has come for kNoCopyNs.
void CollectorScheduler::rest_copies() {
  if (!controller_.ended() || controller_.stopped() || !tiers_[0]->stays()) return;
  const std::int64_t last = std::max(aggregator_.last_copy_ns(), ended_ns_);
  if (wall_ns() - last > kNoCopyNs) {
    keep_apart();
    leave_copies();
    flush_times_.switched(monotonic_ns());
    return;
  }
  controller_.copies_stay(true);
  if (aggregator_.last_copy_ns() <= ended_ns_ || std::exchange(told_copies_, true)) return;
  char text[512];
  std::snprintf(text, sizeof text,
                "memcpy and memset are recorded to the end, at an estimated %.1f %% of the "
                "program's time: CUPTI 13.0 has crashed programs when their recording was switched "
                "off during a memcpy or memset. --copies off does not record them. Later runs with "
                "--sample auto do not record them either",
                controller_.copies_share() * 100);
  recorder_.note("copies_stay", text);
}

// Each time the seconds since: notes of one cause add up.
void CollectorScheduler::note_ended() {
  const OverheadController::Totals& totals = controller_.totals();
  const double unseen = totals.unseen_ns - std::exchange(told_unseen_ns_, totals.unseen_ns);
  if (unseen <= 0) return;
  char text[512];
  if (controller_.launch_bound())
    std::snprintf(
        text, sizeof text,
        "the program makes %.0f launches a second, and to record again would cost each "
        "later one 0.5 us, %.1f %% of its time: more than half of the budget of %g %%. Only "
        "what came before is in this profile. --budget 10%%, --full, or --sample 1/N of "
        "the runs or ranks record more",
        controller_.launches_per_s(), controller_.lasting_share() * 100,
        controller_.budget() * 100);
  else
    std::snprintf(
        text, sizeof text,
        "recording every launch would take more than the budget of %g %%, so this profile contains "
        "only the launches before that. --budget 10%% or --full record more. --windows continues "
        "with windows that represent the whole run",
        controller_.budget() * 100);
  recorder_.note(controller_.launch_bound() ? "launch_bound" : "no_windows", text, 0,
                 unseen * 1e-9);
}

void CollectorScheduler::note_presence() {
  const double share = controller_.presence_at_work();
  if (told_presence_ || controller_.every_launch() || controller_.in_startup_window() ||
      share <= controller_.budget())
    return;
  told_presence_ = true;
  char text[512];
  std::snprintf(
      text, sizeof text,
      "CUPTI takes an estimated %.1f %% of the program's working time by its presence alone, with "
      "or without recording (%.0f launches and %.0f nodes of graphs a second): more than the "
      "budget of %g %%. With --sample 1/%.0f of the runs or ranks, or --sample auto, the mean over "
      "all of them stays within the budget",
      share * 100, controller_.launches_per_s_at_work(), controller_.nodes_per_s_at_work(),
      controller_.budget() * 100, std::ceil(share / controller_.budget()));
  recorder_.note("cupti_presence", text);
}

void CollectorScheduler::collect(Ownership& ownership, bool final) {
  const Ownership::Turn turn = ownership.take_turn(final);
  if (!turn) return;
  // The next seal's will do.
  const bool flush = final || flush_times_.may_flush(monotonic_ns(), next_switch_ns_);
  if (!final && flush && open_ != OverheadController::kNone && !ownership.confirm()) return;
  flush_times_.flushed(ownership.flushed_ns());
  if (final) {
    close_open_tier(true);
    if (aggregator_.wants_last_id()) keep_apart();  // a kind is enabled for that
  }
  // Even a flush would bring CUPTI into a process that so far does without. And where recording has
  // ended some while ago there is nothing to flush.
  constexpr int kQuiet = 4;
  if (flush)
    quiet_collects_ =
        open_ != OverheadController::kNone || !controller_.ended() ? 0 : quiet_collects_ + 1;
  const bool over = !final && tiers_.size() == 1 && quiet_collects_ > kQuiet && !tiers_[0]->stays();
  if (ownership.registered() && !over)
    for (int tier = flush ? 0 : 1; tier < static_cast<int>(tiers_.size()); ++tier)
      collect(tier, final);
  if (final) {
    controller_.interrupted(monotonic_ns());
    settle(true);
  }
  if (!final && controller_.ended() && !controller_.stopped()) tiers_[0]->rest();
  if (!final) rest_copies();
  report();
  if (!final) watch_self();
}

std::string CollectorScheduler::control(Ownership& ownership, const ControlRequest& request) {
  const Ownership::Turn turn = ownership.take_turn();
  if (!turn)
    return JsonText()
        .text("error", "another CUPTI client of the program is active, or capture has ended")
        .finish();
  const std::int64_t now = monotonic_ns();
  const bool opens_anyway = opens_again(now);
  switch (request.verb) {
    case ControlRequest::Verb::kStatus:
      break;
    case ControlRequest::Verb::kStart:
      controller_.start(now);
      recorder_.note("started", "capture was started by `purlin capture`", 1);
      break;
    case ControlRequest::Verb::kStop:
      close_open_tier();
      if (tiers_[0]->stays()) collect(0, false);  // copies of until now
      controller_.stop(monotonic_ns());
      take_waiting_window();
      settle(true);
      recorder_.note("stopped", "capture was stopped by `purlin capture`", 1);
      break;
    case ControlRequest::Verb::kWindow:
      if (awaits_context_)
        keep_window_waiting(request.length_ns);
      else
        begin_asked_window(request.length_ns);
      break;
  }
  // An idle capture looks for a context here first.
  if (context_awaited(ownership) && !ownership.registered())
    return JsonText().text("error", "CUPTI refuses to record: capture has ended").finish();
  const OverheadController::Totals& totals = controller_.totals();
  JsonText answer;
  answer.text("state", state(now));
  if (waiting_window_ns_ > 0) answer.integer("waiting_window_ns", waiting_window_ns_);
  if (!opens_anyway && opens_again(now)) answer.text("warning", kThreadsText);
  return answer.raw("needs_cupti", needs_cupti(now) ? "true" : "false")
      .real("records_per_s", controller_.records_per_s())
      .real("computing_launches", recorder_.computing_launches())
      .real("budget", controller_.budget())
      .real("governed_ns", totals.governed_ns)
      .real("recorded_ns", totals.recorded_ns)
      .real("windows", totals.windows)
      .real("overhead_ns", totals.spent_ns)
      .integer("buffer_bytes", static_cast<std::int64_t>(aggregator_.memory_bytes()))
      .integer("buffers_lent", static_cast<std::int64_t>(aggregator_.lent_buffers()))
      .finish();
}

std::string_view CollectorScheduler::state(std::int64_t now_ns) const {
  if (awaits_context_ && (!controller_.stopped() || waiting_window_ns_ > 0)) return "waiting";
  if (controller_.recording(now_ns)) return "recording";
  if (controller_.stopped()) return "stopped";
  if (controller_.launch_bound()) return "launch_bound";
  return controller_.ended() ? "ended" : "governed";
}

// Whether recording goes on by itself, or is on by request. The rest of a start-up window is not
// worth it: a PyTorch trace that leaves CUPTI attached slows all later launches down.
bool CollectorScheduler::needs_cupti(std::int64_t now_ns) const {
  if (controller_.recording(now_ns) || waiting_window_ns_ > 0) return true;
  if (controller_.stopped() || controller_.ended()) return false;
  return controller_.every_launch() || controller_.windows_may_follow() || tiers_.size() > 1;
}

// Until there is a context. Noted at once: a program that is killed says no more.
void CollectorScheduler::keep_window_waiting(std::int64_t length_ns) {
  waiting_window_ns_ = std::max(take_waiting_window(), length_ns);
  recorder_.note(kNeverBegan,
                 "a window that `purlin capture` asked for had not begun, as the program had made "
                 "no CUDA context yet: nothing was recorded for it",
                 1, static_cast<double>(waiting_window_ns_) * 1e-9);
}

std::int64_t CollectorScheduler::take_waiting_window() {
  recorder_.withdraw_note(kNeverBegan);
  return std::exchange(waiting_window_ns_, 0);
}

void CollectorScheduler::begin_asked_window(std::int64_t length_ns) {
  controller_.record(monotonic_ns(), length_ns);
  recorder_.note("asked_window", "every launch was recorded for as long as was asked for", 0,
                 static_cast<double>(length_ns) * 1e-9);
}

// Launches were, and to record them again may lose threads.
bool CollectorScheduler::opened_before_context() const {
  return !controller_.after_context() && controller_.totals().windows > 0;
}

// Whether that is about to be done.
bool CollectorScheduler::opens_again(std::int64_t now_ns) const {
  const bool wanted =
      controller_.recording(now_ns) || (!controller_.stopped() && !controller_.ended());
  return wanted && open_ != 0 && opened_before_context();
}

void CollectorScheduler::yield() {
  for (const std::unique_ptr<Tier>& tier : tiers_) tier->yield();
}

void CollectorScheduler::leave_copies() {
  tiers_[0]->leave();
  controller_.copies_stay(false);
}

void CollectorScheduler::vacate() {
  close_open_tier();
  leave_copies();
  controller_.interrupted(monotonic_ns());
  settle(true);
  report();
}

}  // namespace purlin::profile::capture::cuda
