// SPDX-License-Identifier: Apache-2.0
#include "tune/session/tune_kernel.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/time.h"
#include "cache/store/store.h"
#include "model/expression/parameter.h"
#include "tune/search/seeded.h"
#include "tune/session/entry_of.h"
#include "tune/session/regret.h"
#include "tune/session/store_winner.h"

#include <algorithm>

namespace purlin::tune {
namespace {

// How long the energy of a config is measured. The energy counters move every 20 to 100 ms.
constexpr double kEnergyS = 1;
// From this noise of a single sample on, the device is unfit for tuning.
constexpr double kTooNoisy = 0.5;

// One call of tune_kernel.
class KernelTuning {
 public:
  KernelTuning(const Subject& subject, const TuneRequest& request, Log& log)
      : subject_(subject),
        request_(request),
        log_(log),
        keeps_(subject.executes() && subject.spec.has_value()),
        target_{keeps_ ? &*subject.spec : nullptr,
                subject.space,
                subject.device,
                subject.problem,
                request.policy.flush_l2,
                request.cache.directory} {}

  Result<TuneOutcome> run() {
    // Checked before the work: no winner is found that cannot be stored.
    if (keeps_ && request_.cache.store) {
      PURLIN_ASSIGN(cache::Store store, cache::Store::open(request_.cache.directory));
      PURLIN_TRY(store.check_writable());
    }
    PURLIN_TRY(make_strategy_with_priors());
    if (keeps_ && subject_.spec->reference.is_default_config)
      log_.info(
          "the reference is the default config: a config that differs from it is rejected, and a "
          "default that is wrong is not noticed");
    made_.not_stored = why_not_stored();
    if (keeps_ && request_.cache.store && !made_.not_stored.empty())
      log_.info("the winner is not stored: {}", made_.not_stored);
    if (keeps_) PURLIN_TRY(open_journal());
    if (checks_known_) {
      PURLIN_TRY(confirm_known());
      if (made_.confirmed || made_.stopped()) return std::move(made_);
      PURLIN_TRY(start_journal());
      PURLIN_TRY(make_strategy_with_priors());
    }
    PURLIN_TRY(search());
    PURLIN_TRY(confirm_winner());
    if (keeps_ && request_.cache.store && made_.not_stored.empty() && !made_.stopped() &&
        made_.worked()) {
      made_.store_status = store().with_context("the winner was found, but not stored");
      // Without them, later sessions only start slower.
      if (const Status kept = keep_evaluations(target_, made_.session.evaluations); !kept.is_ok())
        log_.warn("later sessions will not start from this one: {}", kept.message());
    }
    return std::move(made_);
  }

 private:
  bool stop_requested() const {
    return request_.opened.stop != nullptr && request_.opened.stop->load();
  }
  std::string objective() const { return std::string(objective_name(request_.opened.objective)); }
  bool rotates() const {
    using Inputs = measure::Policy::Inputs;
    return request_.policy.inputs == Inputs::kAsSpec ? subject_.spec->rotate_inputs
                                                     : request_.policy.inputs == Inputs::kRotate;
  }

  Status make_strategy_with_priors() {
    // A replay depends on its recording alone. With results from the cache, each run would differ.
    Priors priors;
    if (request_.strategy == "auto" || request_.strategy == "transfer") {
      PURLIN_ASSIGN(priors, find_priors(request_.priors, target_, log_));
    }
    made_.transfer_sources = std::move(priors.sources);
    PURLIN_ASSIGN(std::unique_ptr<Strategy> strategy,
                  make_strategy(request_.strategy,
                                {subject_.space, request_.seed, request_.budget.evaluations,
                                 request_.budget.seconds, std::move(priors.runs)}));
    strategy_ = make_seeded(std::move(strategy), subject_.seeds);
    return Status::ok();
  }

  // The time of an entry is measured as the spec says, and it is the fastest of its key. A winner
  // found in another way does not compare with it.
  std::string why_not_stored() const {
    if (request_.opened.objective != Objective::kTime) return "the cache keeps the fastest configs";
    if (subject_.spec && rotates() != subject_.spec->rotate_inputs)
      return fmt::format("the spec measures otherwise than --inputs {}",
                         rotates() ? "rotate" : "reuse");
    // Known before the work, as the rest.
    for (const Parameter& parameter : subject_.space.parameters())
      for (const Value& value : parameter.values)
        if (const Status good = check_parameter_value(parameter.name, value); !good.is_ok())
          return good.message();
    return "";
  }

  // A hash of everything that decides an evaluation: sessions that differ in it share nothing.
  std::string session_id() const {
    const DeviceInfo& device = subject_.device;
    FieldHasher hasher;
    hasher.add(subject_.spec->source_hash(device.backend == "cuda" ? "cuda" : "opencl"))
        .add(subject_.spec->name)
        .add(subject_.problem.text())
        .add(objective());
    for (const std::string& limit : request_.opened.limits) hasher.add(limit);
    // The texts themselves: with another reference, tolerance or seed a config is judged again.
    for (const std::string& text : request_.journal.files) hasher.add(text);
    // A config that reached this limit may finish under another one.
    hasher.add(std::to_string(request_.opened.timeout_s));
    for (const Parameter& parameter : subject_.space.parameters()) {
      hasher.add(parameter.name);
      for (const Value& value : parameter.values) hasher.add(purlin::to_json(value).dump());
    }
    for (const Pruned& by : subject_.space.pruned()) hasher.add(by.constraint);
    for (const std::string& fact :
         {device.id, device.name, device.uuid, device.driver, device.toolkit,
          measure::to_json(request_.policy).dump(), request_.strategy})
      hasher.add(fact);
    return hasher.add(std::to_string(request_.seed)).hex();
  }

  Status open_journal() {
    const std::string id = session_id();
    Environment environment = host_environment();
    environment.devices.push_back(subject_.device);
    Json header = new_document("purlin.session/1", environment);
    header.set("id", id)
        .set("kernel", subject_.name)
        .set("spec", absolute_path(subject_.spec->file))
        .set("problem", purlin::to_json(subject_.problem))
        .set("device", subject_.device.id)
        .set("strategy", request_.strategy)
        .set("seed", static_cast<std::int64_t>(request_.seed))
        .set("policy", measure::to_json(request_.policy));
    const std::string path = join_path(join_path(request_.journal.root, id), "journal.jsonl");
    PURLIN_ASSIGN(Journal journal, Journal::open(path, header));
    const bool ended = !journal.finished().empty();
    const Budget before = parse_budget(journal.finished_budget()).value_or(Budget{});
    // A finished session starts again, unless the new budget allows more than the old one.
    const bool further = journal.finished() == "budget" && request_.budget.exceeds(before);
    starts_again_ = request_.journal.restart || (ended && !further);
    const std::size_t count = starts_again_ ? 0 : journal.records().size();
    if (count > 0)
      log_.info("continues a session of {} evaluation{} (--fresh starts again)", count,
                count == 1 ? "" : "s");
    checks_known_ = count == 0 && request_.known.has_value();
    journal_.emplace(std::move(journal));
    made_.session_directory = parent_path(journal_->path());
    return checks_known_ ? Status::ok() : start_journal();
  }

  Status start_journal() {
    if (!starts_again_) return Status::ok();
    starts_again_ = false;
    return journal_->restart();
  }

  // Measures the known config and the default alone, without a journal. What does not hold is
  // searched for.
  Status confirm_known() {
    const std::optional<std::size_t> known = subject_.space.find(*request_.known);
    if (!known) {
      log_.info("the cached winner {} is no valid config any more; searches",
                request_.known->text());
      return Status::ok();
    }
    strategy_ = make_seeded(make_random({subject_.space, request_.seed}), {*known});
    SessionOptions options = session_options();
    options.budget.evaluations = *request_.known == subject_.default_config ? 1 : 2;
    PURLIN_ASSIGN(SessionResult session,
                  run_session(subject_.space, *strategy_, subject_.evaluators, nullptr, options));
    const std::string problem = why_known_fails(session);
    if (!problem.empty() && session.end != SessionResult::End::kStopped) {
      log_.info("the cached winner {} {}; searches", request_.known->text(), problem);
      return Status::ok();
    }
    if (request_.on_session_end) request_.on_session_end();
    made_.session = std::move(session);
    made_.confirmed = problem.empty();
    made_.strategy_used = "cache";
    if (made_.confirmed)
      log_.info("the cached winner {} holds: {}, and nothing was searched (--fresh searches)",
                request_.known->text(),
                *request_.known == subject_.default_config ? "it is the default, and works"
                                                           : "the finals compared it with the "
                                                             "default");
    return Status::ok();
  }

  // "" when the known config is not slower than the default.
  std::string why_known_fails(SessionResult& session) const {
    for (const Evaluation& made : session.evaluations)
      if (made.config == *request_.known && !made.ok())
        return fmt::format("fails ({}): {}", status_name(made.status), made.message);
    if (!session.verdict) return "was not measured";
    Verdicts& verdict = *session.verdict;
    for (std::size_t i = 0; i < verdict.finalists.size(); ++i) {
      const Config& config = session.evaluations[verdict.finalists[i].evaluation].config;
      if (config != *request_.known) continue;
      const bool tied = std::count(verdict.ties.begin(), verdict.ties.end(), i) > 0;
      if (verdict.winner != i && !tied) break;
      // The entry stays the winner of a tie.
      if (tied) std::replace(verdict.ties.begin(), verdict.ties.end(), i, verdict.winner);
      verdict.winner = i;
      return "";
    }
    return "is slower than the default now";
  }

  SessionOptions session_options() {
    SessionOptions options;
    options.budget = request_.budget;
    options.policy = made_.policy;
    options.objective = request_.opened.objective;
    if (!subject_.limits.empty())
      options.accept = [this](const Evaluation& evaluation) {
        return check_limits(subject_.limits, *subject_.spec, subject_.problem, evaluation,
                            subject_.evaluators.front()->device());
      };
    options.finals.rounds = request_.finals;
    options.default_config = subject_.default_config;
    options.stop = request_.opened.stop;
    options.on_progress = request_.on_progress;
    // The start, and a confirmation that did not hold.
    options.spent_s =
        request_.spent_s + static_cast<double>(system_clock().monotonic_ns() - began_ns_) * 1e-9;
    return options;
  }

  Status search() {
    made_.policy = request_.policy;
    made_.policy.energy_s = subject_.energy ? kEnergyS : 0;
    Result<SessionResult> session = run_session(subject_.space, *strategy_, subject_.evaluators,
                                                journal_ ? &*journal_ : nullptr, session_options());
    if (request_.on_session_end) request_.on_session_end();
    PURLIN_ASSIGN(made_.session, std::move(session));
    warn_of_default();
    warn_of_the_machine();
    made_.strategy_used = strategy_->name();
    if (strategy_->transfer() != nullptr) made_.transfer = *strategy_->transfer();
    made_.counters_problem = subject_.evaluators.front()->counters_problem();
    return Status::ok();
  }

  // What makes the times of this session worth less than they look.
  void warn_of_the_machine() {
    if (made_.session.noise >= kTooNoisy)
      log_.warn(
          "{} is too noisy to tell configs apart: samples of one config scatter by {:.0f} %{}; end "
          "what else runs on it, and tune again",
          subject_.device.id, 100 * made_.session.noise,
          made_.session.noise >= measure::kMaxNoise ? " or more" : "");
    if (!made_.worked()) return;
    const std::string_view stored =
        keeps_ && request_.cache.store ? "; the winner is stored without its times" : "";
    if (const Finalist& best = made_.session.verdict->best(); !best.is_known())
      log_.warn("the winner's time is not known: its median lies between {:.3g} and {:.3g} ms{}",
                best.interval.low, best.interval.high, stored);
    const double change = made_.session.verdict->machine_change;
    if (change == 1) return;
    log_.warn(
        "the finals measured the same configs {:.1f} times {} than the search: the machine was in "
        "another state by then{}",
        change > 1 ? change : 1 / change, change > 1 ? "slower" : "faster", stored);
  }

  // Where no config works, the error about that has the message.
  void warn_of_default() {
    const SessionResult& session = made_.session;
    if (session.default_problem.empty() || (session.default_evaluation && !session.verdict)) return;
    log_.warn("{}", session.default_problem);
  }

  const Config& config_of(std::size_t finalist) const {
    return made_.session.evaluations[made_.session.verdict->finalists[finalist].evaluation].config;
  }

  // The winner, and the first further config that is faster than the default.
  std::vector<std::size_t> candidates(const Verdicts& verdict) const {
    const std::size_t fallback = *verdict.fallback;
    std::vector<std::size_t> chosen;
    if (!verdict.finalists[verdict.winner].is_default) chosen.push_back(verdict.winner);
    for (std::size_t i = 0; i < verdict.finalists.size() && chosen.size() == 1; ++i)
      if (i != verdict.winner && i != fallback && verdict.finalists[i].problem.empty() &&
          verdict.finalists[i].time_ms < verdict.finalists[fallback].time_ms)
        chosen.push_back(i);
    return chosen;
  }

  // The heuristic of a library is good, so most leads over it are small, and some are chance. A
  // winner that does not hold in fresh processes gives its place to the next candidate, and in the
  // end to the default.
  Status confirm_winner() {
    if (!subject_.fresh || !made_.worked() || !made_.session.verdict->fallback) return Status::ok();
    Verdicts& verdict = *made_.session.verdict;
    const std::size_t fallback = *verdict.fallback;
    // A program may find its inputs in another state than the tuned one.
    using Inputs = measure::Policy::Inputs;
    ConfirmOptions options;
    if (!request_.policy.flush_l2)
      options.other_inputs = rotates() ? Inputs::kReuse : Inputs::kRotate;
    std::optional<std::size_t> held;
    const std::vector<std::size_t> chosen = candidates(verdict);
    for (const std::size_t candidate : chosen) {
      PURLIN_ASSIGN(Confirmation confirmation,
                    confirm(config_of(candidate), config_of(fallback), request_.policy, options,
                            subject_.fresh, [this] { return !stop_requested(); }));
      made_.confirmations.push_back({config_of(candidate), std::move(confirmation)});
      const Confirmation& last = made_.confirmations.back().confirmation;
      if (last.holds) {
        held = candidate;
        break;
      }
      // What was not confirmed is neither a winner nor beaten: nothing is stored.
      if (stop_requested()) {
        made_.session.end = SessionResult::End::kStopped;
        return Status::ok();
      }
      log_.info("the winner {} does not hold up: {}", config_of(candidate).text(), last.problem);
    }
    if (!chosen.empty() && !held) log_.info("the library's own choice stays");
    verdict.winner = held.value_or(fallback);
    std::erase(verdict.ties, verdict.winner);
    return Status::ok();
  }

  void measure_bucket_regret(cache::Entry& entry) {
    if (request_.cache.regret_shapes <= 0) return;
    RegretOptions options;
    options.shapes = static_cast<std::size_t>(request_.cache.regret_shapes);
    options.budget = request_.cache.regret_budget;
    options.policy = request_.policy;
    options.finals = request_.finals;
    options.seed = request_.seed;
    options.device = request_.opened.devices.front();
    options.binary_cache = request_.opened.binary_cache;
    const int compilers = request_.opened.compilers;
    options.pool = {compilers < 0 ? default_compilers() : compilers, request_.opened.timeout_s,
                    request_.opened.stop};
    options.stop = request_.opened.stop;
    // The winner is stored in any case.
    if (const Status measured =
            measure_regret(*subject_.spec, made_.session.evaluations, options, log_, entry);
        !measured.is_ok())
      log_.warn("the bucket's regret was not measured: {}", measured.message());
  }

  Status store() {
    PURLIN_ASSIGN(cache::Entry entry, entry_of(made_.session,
                                               {*subject_.spec, subject_.problem, subject_.device,
                                                request_.policy.flush_l2},
                                               made_.strategy_used, /*verified=*/true));
    measure_bucket_regret(entry);
    made_.bucket_regret = entry.bucket_regret;
    PURLIN_ASSIGN(cache::Store store, cache::Store::open(request_.cache.directory));
    PURLIN_ASSIGN(const StoredWinner stored, store_winner(store, entry, made_.session));
    for (const std::string& note : stored.notes()) log_.info("{}", note);
    made_.stored_directory = store.directory();
    log_.info("stored in {} as {}{}{} {} ({})", store.directory(), entry.key.op,
              entry.key.bucket.empty() ? "" : " ", entry.key.bucket, entry.key.device,
              entry.key.id());
    made_.entry = std::move(entry);
    return Status::ok();
  }

  const Subject& subject_;
  const TuneRequest& request_;
  Log& log_;
  const std::int64_t began_ns_ = system_clock().monotonic_ns();
  const bool keeps_;  // the evaluations in a journal, the winner in the cache
  const PriorTarget target_;
  std::unique_ptr<Strategy> strategy_;
  std::optional<Journal> journal_;
  bool starts_again_ = false;  // the journal is of an ended session
  bool checks_known_ = false;
  TuneOutcome made_;
};

}  // namespace

Status TuneOutcome::status() const {
  if (worked()) return store_status;
  return stopped() && session.evaluations.empty() ? Status::ok() : nothing_worked(session);
}

Result<TuneOutcome> tune_kernel(const Subject& subject, const TuneRequest& request, Log& log) {
  return KernelTuning(subject, request, log).run();
}

ReportInput report_input(const Subject& subject, const TuneRequest& request,
                         const TuneOutcome& outcome) {
  ReportInput input{subject.space, outcome.session, subject.device};
  input.spec = subject.spec ? &*subject.spec : nullptr;
  input.problem = subject.problem;
  input.kernel = subject.name;
  input.strategy = request.strategy;
  input.strategy_used = outcome.strategy_used;
  input.confirmed = outcome.confirmed;
  input.seed = request.seed;
  input.budget = request.budget;
  input.policy = outcome.policy;
  input.objective = request.opened.objective;
  input.space_s = subject.space_s;
  input.counters_problem = outcome.counters_problem;
  input.transfer_sources = outcome.transfer_sources;
  input.transfer = outcome.transfer;
  input.session_directory = outcome.session_directory;
  input.stored_directory = outcome.stored_directory;
  if (outcome.entry) input.stored_key = outcome.entry->key.id();
  return input;
}

Json to_json(const std::vector<ConfirmedCandidate>& confirmations) {
  Json all = Json::array();
  for (const ConfirmedCandidate& each : confirmations) {
    Json ratios = Json::array(), other = Json::array();
    for (const double ratio : each.confirmation.ratios) ratios.push(ratio);
    for (const double ratio : each.confirmation.other_ratios) other.push(ratio);
    all.push(Json::object({{"config", purlin::to_json(each.config)},
                           {"gain_by_process", std::move(ratios)},
                           {"gain_with_other_inputs", std::move(other)},
                           {"holds", each.confirmation.holds},
                           {"problem", each.confirmation.problem}}));
  }
  return all;
}

}  // namespace purlin::tune
