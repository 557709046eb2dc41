// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/attribution.h"

#include "profile/capture/cuda/activity/gemm_calls.h"
#include "profile/capture/cuda/activity/launch_calls.h"
#include "profile/capture/session/session.h"

#include <cstdlib>
#include <string_view>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

// The number of searches for a launch's call before the launch is counted without its op.
constexpr int kMaxAge = 2;
// The minimum number of launches for a decision.
constexpr std::uint64_t kEnoughLaunches = 100;
// Records of calls come within a flush or two of the call.
constexpr std::int64_t kKeptNs = 30'000'000'000;

std::string_view variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

AttributionOptions AttributionOptions::from_environment() {
  AttributionOptions options;
  const std::string_view ops = variable("PURLIN_OPS");
  options.ops = ops == "off" ? OpsMode::kOff : ops == "on" ? OpsMode::kOn : OpsMode::kAuto;
  options.gemm_shapes = variable("PURLIN_GEMM_SHAPES") == "1";
  return options;
}

Attribution::Attribution(const Cupti& cupti, Recorder& recorder, const AttributionOptions& options)
    : cupti_(cupti),
      recorder_(recorder),
      options_(options),
      log_(RangeLog::instance()),
      records_(CallRecords::kLaunchesCopiesWaits),
      correlation_(log_) {}

bool Attribution::wanted() {
  if (refused_ || log_ == nullptr) return false;
  if (options_.gemm_shapes || options_.ops == OpsMode::kOn) return true;
  return options_.ops == OpsMode::kAuto && log_->used();
}

// cuBLAS may come with the first product of a program.
void Attribution::watch_libraries() {
  if (!options_.gemm_shapes || !libraries_changed()) return;
  std::string reason;
  if (!install_gemm_calls(reason) && !reason.empty())
    recorder_.note("no_gemm_shapes",
                   "shapes of cuBLAS's products are not reported: its functions could not be "
                   "replaced: " +
                       reason);
}

void Attribution::open() {
  if (!wanted()) return;
  watch_libraries();
  if (open_) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    correlation_.open_window(wall_ns());
  }
  log_->start_listening();
  const CUptiResult result = enable_launch_calls(cupti_, records_);
  if (result != CUPTI_SUCCESS) {
    refused_ = true;
    log_->stop_listening();
    recorder_.note("no_launch_calls",
                   "ops of launches are not reported: CUPTI does not record the calls that "
                   "launch: " +
                       cupti_.text_of(result));
    return;
  }
  open_ = true;
  active_.store(true, std::memory_order_release);
}

void Attribution::close() {
  if (!open_) return;
  open_ = false;
  disable_launch_calls(cupti_);
  log_->stop_listening();
  const std::lock_guard<std::mutex> lock(mutex_);
  Recorder::Batch recorder(recorder_);
  correlation_.close_window(wall_ns(), span_writer(recorder));
}

void Attribution::keep_times(bool keep) {
  keep_times_ = keep;
  if (log_ != nullptr && options_.ops != OpsMode::kOff) log_->spans().keep(keep);
}

// They need no calls recorded.
void Attribution::write_spans(bool final) {
  if (log_ == nullptr) return;
  const std::vector<SpanLog::Span> spans = log_->spans().take(final);
  if (!spans.empty()) {
    Recorder::Batch recorder(recorder_);
    for (const SpanLog::Span& span : spans)
      recorder.range({span.name, kNone, span.begin_ns, span.end_ns - span.begin_ns});
  }
  if (const std::uint64_t lost = log_->spans().take_lost(); lost > 0)
    recorder_.note("spans_lost",
                   "ranges across threads that are not in the timeline: more than 4,096 were open "
                   "at once, or 16,384 ended between two seals",
                   static_cast<double>(lost));
}

void Attribution::collect(bool final) {
  write_spans(final);
  if (!active()) return;
  double lost = 0, without_call = 0, graph_launches = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Recorder::Batch recorder(recorder_);
    if (final && open_) correlation_.close_window(wall_ns(), span_writer(recorder));
    correlation_.drain(span_writer(recorder));
    release(recorder, final);
    choose_records();
    correlation_.forget_before(wall_ns() - kKeptNs);
    lost = static_cast<double>(log_->take_lost());
    without_call = std::exchange(without_call_, 0);
    graph_launches = std::exchange(graph_launches_, 0);
  }
  if (lost > 0)
    recorder_.note("ranges_lost", "ranges that could not be kept: launches in them have no op",
                   lost);
  if (without_call > 0)
    recorder_.note("launches_without_call",
                   "launches whose call was not recorded: their op is not known", without_call);
  if (graph_launches > 0)
    recorder_.note("graph_ops_untold",
                   "launches of CUDA graphs without op or call: CUPTI reports a call that did not "
                   "launch them",
                   graph_launches);
}

// If the calls of many launches are missing, unknown calls launch: then all calls are recorded.
void Attribution::choose_records() {
  if (launches_ < kEnoughLaunches || records_ == CallRecords::kAll) return;
  if (unplaced_ * 5 > launches_) records_ = CallRecords::kAll;
  launches_ = unplaced_ = 0;
}

Correlation::Ended Attribution::span_writer(Recorder::Batch& recorder) {
  if (!timed()) return {};
  return [this, &recorder](const Correlation::Span& span) {
    RangeFacts range;
    range.name = correlation_.name_of(span.name).text;
    range.thread = span.thread;
    range.start_ns = span.begin_ns;
    range.duration_ns = span.end_ns - span.begin_ns;
    recorder.range(range);
  };
}

std::uint32_t Attribution::op_of(std::uint32_t context, Recorder::Batch& recorder) {
  if (context == 0) return 0;
  if (context >= ops_.size()) ops_.resize(std::size_t{context} + context / 2 + 64, 0);
  std::uint32_t& op = ops_[context];
  if (op != 0) return op - 1;
  const OpFacts facts = correlation_.facts_of(context);
  const std::string key = facts.op + '\n' + facts.shape + '\n' + facts.dtype;
  auto known = known_ops_.find(key);
  if (known == known_ops_.end())
    known = known_ops_.emplace(key, recorder.add_op(facts.op, facts.shape, facts.dtype)).first;
  op = known->second + 1;
  return known->second;
}

bool Attribution::try_place(LaunchFacts& facts, std::uint32_t correlation,
                            Recorder::Batch& recorder) {
  const auto place = correlation_.find(correlation, facts.graph != 0);
  if (!place) return false;
  // Before 13.1 Update 1, CUPTI may number a graph's launches wrongly once records were switched
  // off and on (its release notes; not seen on 13.0.85). Such a number is another call's, or
  // none's.
  if (facts.graph != 0 && (!place->graph || facts.start_ns < place->begin_ns)) {
    graph_launches_ += 1;
    return true;
  }
  facts.op = op_of(place->context, recorder);
  facts.call = place->call;
  return true;
}

void Attribution::release(Recorder::Batch& recorder, bool final) {
  std::vector<Held> waiting;
  for (Held& held : held_) {
    held.facts.name = held.name;
    if (!try_place(held.facts, held.correlation, recorder)) {
      if (!final && ++held.age < kMaxAge) {
        waiting.push_back(std::move(held));
        continue;
      }
      without_call_ += 1;
      ++unplaced_;
    }
    recorder.launch(held.facts);
  }
  held_ = std::move(waiting);
}

void Attribution::Batch::begin(Recorder::Batch& recorder) {
  recorder_ = &recorder;
  attribution_.correlation_.drain(attribution_.span_writer(recorder));
}

void Attribution::Batch::call(const CUpti_ActivityAPI& record) {
  const LaunchCall* known = launch_call(record.kind, record.cbid);
  if (known == nullptr || record.end < record.start) return;
  Attribution& a = attribution_;
  const auto start = static_cast<std::int64_t>(record.start);
  Correlation::Place place;
  place.context = a.correlation_.context_of(record.threadId, start);
  place.begin_ns = start;
  place.graph = known->kind == CallKind::kGraphLaunch;
  if (a.timed())
    place.call = recorder_->add_call({known->name, known->kind,
                                      a.correlation_.system_thread(record.threadId), start,
                                      static_cast<std::int64_t>(record.end) - start});
  if (known->kind != CallKind::kSync) a.correlation_.add_call(record.correlationId, place);
}

bool Attribution::Batch::place(LaunchFacts& facts, std::uint32_t correlation) {
  Attribution& a = attribution_;
  ++a.launches_;
  if (a.try_place(facts, correlation, *recorder_)) return true;
  if (a.held_.size() >= kMaxHeld) {
    a.without_call_ += 1;
    return true;
  }
  a.held_.push_back({facts, std::string(facts.name), correlation});
  return false;
}

void Attribution::Batch::place(CopyFacts& facts, std::uint32_t correlation) {
  if (!attribution_.timed()) return;
  const auto place = attribution_.correlation_.find(correlation, false);
  if (place) facts.call = place->call;
}

}  // namespace purlin::profile::capture::cuda
