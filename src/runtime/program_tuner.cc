// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_tuner.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "cache/entry/bucket.h"
#include "measure/race.h"
#include "model/document.h"
#include "model/expression/parameter.h"
#include "tune/records/prior_search.h"
#include "tune/records/recordings.h"
#include "tune/records/stored_evaluations.h"
#include "tune/session/entry_of.h"
#include "tune/space/build.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace purlin::runtime {
namespace {

constexpr std::size_t kMaxParameters = 64;
// A run this much slower than the best is no start-up cost: it is counted at once.
constexpr double kHopelessWarmup = 2;

// For each so many seconds that the program waits for a compilation, in the mean of the last waits,
// one more config is asked for ahead, up to kMostAhead.
constexpr double kShortWaitS = 0.25;
constexpr std::size_t kWaits = 6, kMostAhead = 7;

Status started_already() {
  return error(Code::kInvalid, "the tuner has started; its space cannot change any more");
}

}  // namespace

ProgramTuner::ProgramTuner(ProgramTunerOptions options, Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  spec_.name = options_.kernel;
  spec_.op = options_.op.empty() ? options_.kernel : options_.op;
  spec_.file = "the program's " + options_.kernel;
}
ProgramTuner::~ProgramTuner() = default;

Status ProgramTuner::add_parameter(std::string_view name, std::vector<Value> values,
                                   const Value& preset) {
  if (started()) return started_already();
  for (const Value& value : values) {
    Config one;
    one.set(name, value);
    PURLIN_TRY(check_parameters(one));
  }
  if (spec_.parameters.size() == kMaxParameters)
    return error(Code::kInvalid, "more than {} parameters", kMaxParameters);
  for (const Parameter& other : spec_.parameters)
    if (other.name == name) return error(Code::kInvalid, "parameter '{}' is given twice", name);
  if (problem_.find(name) != nullptr)
    return error(Code::kInvalid, "'{}' is a dimension already", name);
  if (values.empty()) return error(Code::kInvalid, "parameter '{}' has no values", name);
  if (values.size() > 65'535)
    return error(Code::kInvalid, "parameter '{}' has more than 65535 values", name);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
        values.begin() + static_cast<std::ptrdiff_t>(i))
      return error(Code::kInvalid, "parameter '{}' has the value {} twice", name,
                   to_text(values[i]));
  if (std::find(values.begin(), values.end(), preset) == values.end())
    return error(Code::kInvalid, "parameter '{}': its default {} is not among its values", name,
                 to_text(preset));
  spec_.parameters.push_back({std::string(name), std::move(values), preset});
  return Status::ok();
}

Status ProgramTuner::add_constraint(std::string_view text) {
  if (started()) return started_already();
  PURLIN_ASSIGN(Expression expression, Expression::parse(text));
  spec_.constraints.push_back(
      {std::move(expression), "constraint " + std::to_string(spec_.constraints.size() + 1)});
  return Status::ok();
}

Status ProgramTuner::add_dimension(std::string_view name, std::int64_t extent,
                                   std::string_view bucket_rule) {
  if (started()) return started_already();
  if (!is_identifier(name) || extent < 1)
    return error(Code::kInvalid,
                 "a dimension needs a name of letters, digits and '_', and an extent of 1 or more");
  if (problem_.find(name) != nullptr)
    return error(Code::kInvalid, "dimension '{}' is given twice", name);
  for (const Parameter& other : spec_.parameters)
    if (other.name == name) return error(Code::kInvalid, "'{}' is a parameter already", name);
  if (!bucket_rule.empty()) {
    PURLIN_TRY(cache::BucketRule::parse(bucket_rule).status());
    spec_.bucket[std::string(name)] = bucket_rule;
  }
  problem_.set(name, extent);
  spec_.problem = problem_;
  return Status::ok();
}

Status ProgramTuner::transfer(ProgramTransfer from) {
  if (started())
    return error(Code::kInvalid, "the tuner has started; name the cache to start from before");
  transfer_ = std::move(from);
  return Status::ok();
}

Result<std::vector<tune::PriorRun>> ProgramTuner::find_priors() const {
  if (!transfer_) return std::vector<tune::PriorRun>();
  Log log(Level::kWarning);
  PURLIN_ASSIGN(
      tune::Priors priors,
      tune::find_priors(
          {}, {&spec_, *space_, transfer_->device, problem_, false, transfer_->directory}, log));
  return std::move(priors.runs);
}

Status ProgramTuner::keep_evaluations() const {
  if (!transfer_ || !result_) return Status::ok();
  gpu::Recording recording = tune::recording_of(result_->evaluations, transfer_->device);
  recording.kernel = spec_.name;
  recording.problem = problem_;
  recording.source_hash = transfer_->source_hash;
  const std::string id = FieldHasher()
                             .add(spec_.name)
                             .add(recording.source_hash)
                             .add(problem_.text())
                             .add(transfer_->dtype)
                             .add(transfer_->device.name)
                             .add(transfer_->device.toolkit)
                             .hex();
  return tune::store_evaluations(tune::evaluations_path(transfer_->directory, spec_.name, id),
                                 recording);
}

Status ProgramTuner::start() {
  if (started()) return error(Code::kInvalid, "the tuner has started already");
  if (spec_.parameters.empty()) return error(Code::kInvalid, "no parameters to tune");
  PURLIN_ASSIGN(session_options_.budget, tune::parse_budget(options_.budget));
  PURLIN_ASSIGN(tune::Space built, tune::build_space(spec_, problem_, DeviceInfo{}));
  space_ = std::make_unique<tune::Space>(std::move(built));
  PURLIN_ASSIGN(std::vector<tune::PriorRun> priors, find_priors());
  tune::StrategyRequest request{*space_, options_.seed, session_options_.budget.evaluations,
                                session_options_.budget.seconds, std::move(priors)};
  request.patient = true;
  PURLIN_ASSIGN(strategy_, tune::make_strategy(options_.strategy, request));
  if (!options_.session.empty()) {
    FieldHasher hasher;
    hasher.add(options_.kernel).add(options_.strategy).add(options_.device);
    hasher.add(std::to_string(options_.seed)).add(problem_.text());
    for (const Parameter& parameter : spec_.parameters) {
      hasher.add(parameter.name).add(to_json(*parameter.preset).dump());
      for (const Value& value : parameter.values) hasher.add(to_json(value).dump());
    }
    for (const SpecExpression& constraint : spec_.constraints)
      hasher.add(constraint.expression.text());
    Json header = new_document("purlin.session/1", Environment{});
    const std::string id = hasher.hex();
    header.set("id", id).set("kernel", options_.kernel).set("problem", to_json(problem_));
    PURLIN_ASSIGN(
        tune::Journal journal,
        tune::Journal::open(join_path(join_path(options_.session, id), "journal.jsonl"), header));
    journal_.emplace(std::move(journal));
  }
  session_options_.default_config = default_config(spec_, problem_, DeviceInfo{});
  session_options_.finals.rounds = std::max(options_.finals_rounds, 0);
  best_ = *session_options_.default_config;
  tune::SessionTraits traits;
  traits.lookahead = std::max<std::size_t>(options_.lookahead, 1);
  traits.guesses = options_.lookahead > 0;
  session_ = std::make_unique<tune::TuningSession>(
      *space_, *strategy_, journal_ ? &*journal_ : nullptr, session_options_, traits, clock_);
  return Status::ok();
}

Result<const Config*> ProgramTuner::next() {
  if (!started()) return error(Code::kInvalid, "the tuner has not started");
  if (over_) return &best_;
  if (!request_) {
    PURLIN_ASSIGN(request_, session_->next());
    samples_.clear();
    warmups_left_ = std::max(options_.warmups, 0);
    request_ns_ = clock_.monotonic_ns();
    if (!request_) {
      PURLIN_TRY(finish_session());
      return &best_;
    }
  }
  return &request_->config;
}

const Config* ProgramTuner::announced() {
  if (!started()) return nullptr;
  // What is asked of the session is run already, or comes behind what is waiting here.
  std::vector<Config> later = session_->announced();
  announced_.insert(announced_.begin(), std::make_move_iterator(later.rbegin()),
                    std::make_move_iterator(later.rend()));
  if (announced_.empty()) return nullptr;
  announced_now_ = std::move(announced_.back());
  announced_.pop_back();
  return &announced_now_;
}

// Results of compiled configs come one after the other, and each is used for the next choice. That
// is worth a short wait for each.
Status ProgramTuner::waited(double seconds) {
  if (!started()) return error(Code::kInvalid, "the tuner has not started");
  if (!(seconds >= 0) || !std::isfinite(seconds))
    return error(Code::kInvalid, "a wait cannot take {} s", seconds);
  waits_s_.push_back(seconds);
  if (waits_s_.size() > kWaits) waits_s_.erase(waits_s_.begin());
  const double mean =
      std::accumulate(waits_s_.begin(), waits_s_.end(), 0.0) / static_cast<double>(waits_s_.size());
  const double ahead = std::min(1 + mean / kShortWaitS, static_cast<double>(kMostAhead));
  strategy_->ask_ahead(static_cast<std::size_t>(ahead));
  return Status::ok();
}

Status ProgramTuner::report(double time_ms) {
  if (over_) return Status::ok();
  if (!request_)
    return error(Code::kInvalid, "a time was reported for a run that was not requested");
  if (!is_time_ms(time_ms)) return error(Code::kInvalid, "a run cannot take {} ms", time_ms);
  const measure::Policy& policy = request_->policy;
  if (warmups_left_ > 0) {
    --warmups_left_;
    if (policy.give_up_ms <= 0 || time_ms <= policy.give_up_ms * kHopelessWarmup)
      return Status::ok();
  }
  samples_.push_back({time_ms, 0});
  const measure::Standing standing = measure::standing(samples_, policy);
  const bool full = samples_.size() >= static_cast<std::size_t>(std::max(policy.max_samples, 1));
  if (standing == measure::Standing::kOpen && !full) return Status::ok();
  Evaluation made;
  made.samples = samples_;
  made.time_ms = median_ms(samples_);
  made.raced_out = standing == measure::Standing::kHopeless;
  return finish_evaluation(std::move(made));
}

Status ProgramTuner::reject(EvaluationStatus how, std::string_view why) {
  if (over_) return Status::ok();
  if (!request_) return error(Code::kInvalid, "a run was rejected that was not requested");
  Evaluation made;
  made.status = how == EvaluationStatus::kOk ? EvaluationStatus::kWrong : how;
  made.message = why;
  return finish_evaluation(std::move(made));
}

Status ProgramTuner::finish_evaluation(Evaluation made) {
  made.cost_s = static_cast<double>(clock_.monotonic_ns() - request_ns_) * 1e-9;
  made.measure_s = made.was_measured() ? made.cost_s : 0;
  const tune::TuningSession::Request done = std::move(*request_);
  request_.reset();
  PURLIN_TRY(session_->report(done, std::move(made)));
  note_best();
  return Status::ok();
}

void ProgramTuner::note_best() {
  const std::optional<std::size_t> place = session_->best();
  if (!place) return;
  best_ = session_->evaluations()[*place].config;
  best_time_ms_ = session_->evaluations()[*place].time_ms;
}

Status ProgramTuner::finish_session() {
  over_ = true;  // even after a failure: the program goes on with the best config so far
  PURLIN_ASSIGN(result_, session_->result());
  if (!result_->verdict) return Status::ok();
  const tune::Verdicts& verdict = *result_->verdict;
  best_ = result_->evaluations[verdict.best().evaluation].config;
  best_time_ms_ = verdict.best().time_ms;
  if (verdict.fallback) default_time_ms_ = verdict.finalists[*verdict.fallback].time_ms;
  return Status::ok();
}

std::size_t ProgramTuner::evaluations() const {
  return session_ ? session_->evaluations().size() : 0;
}

Result<cache::Entry> ProgramTuner::entry(const DeviceInfo& device, std::string_view dtype,
                                         std::string_view source_hash, bool verified) const {
  if (!over_) return error(Code::kInvalid, "the tuner is not over; there is no winner yet");
  if (!result_ || !result_->verdict)
    return error(Code::kNotFound, "no config worked; there is no winner to store");
  PURLIN_ASSIGN(cache::Entry made,
                tune::entry_of(*result_, {spec_, problem_, device}, strategy_->name(), verified));
  made.key.dtype = dtype;
  made.key.source_hash = source_hash;
  made.key.layout.clear();  // the layout of a program's own buffers is not known here
  return made;
}

Result<tune::StoredWinner> ProgramTuner::store(cache::Store& store,
                                               const cache::Entry& entry) const {
  return tune::store_winner(store, entry, *result_);
}

}  // namespace purlin::runtime
