// SPDX-License-Identifier: Apache-2.0
// `purlin tune`: search the configs of a kernel, verify and measure them, keep the winner.
#include "backlog/backlog.h"
#include "backlog/file.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "cli/tune/regret.h"
#include "cli/tune/target.h"
#include "cli/tune/transfer.h"
#include "cli/tune/watch.h"
#include "gpu/registry.h"
#include "gpu/replay/replay_device.h"
#include "guard/arms/snapshot.h"
#include "measure/binary_cache.h"
#include "tune/search/seeded.h"
#include "tune/session/confirm.h"
#include "tune/session/page.h"
#include "tune/session/replay_evaluator.h"
#include "tune/session/report.h"
#include "tune/session/worker_pool.h"
#include "tune/space/build.h"
#include "tune/space/library_space.h"

namespace purlin::cli {
namespace {

using tune::SessionResult;
using tune::SessionState;

// What is tuned: a spec at one problem shape on a device, or a recording.
struct Subject {
  const KernelSpec* spec = nullptr;
  ProblemShape problem;
  std::string name;
  tune::Evaluator* evaluator = nullptr;      // of the finals, and whose device the winner is of
  std::vector<tune::Evaluator*> evaluators;  // it and those beside it
  tune::Space space;
  double space_s = 0;
  DeviceInfo device;                     // as the key has it: a library's version is its toolkit
  std::optional<Config> default_config;  // nullopt: a recording
  std::vector<std::size_t> seeds;        // a library's own proposals
  tune::FreshEvaluator fresh;            // to confirm a winner with; empty: it counts as it is
  std::vector<SpecExpression> limits;    // of the command
  bool energy = false;                   // it is measured
};

struct Outcome {
  Json document;
  std::string text;
  Status status;        // not ok when nothing worked, or the winner could not be stored
  bool worked = false;  // at least one config did
  bool stopped = false;
};

// How long the energy of a config is measured: a few steps of a counter that moves every 20 to
// 100 ms.
constexpr double kEnergyS = 1;

class TuneCommand : public Command {
 public:
  std::string_view name() const override { return "tune"; }
  std::string_view summary() const override {
    return "Search a kernel's configs, verify and measure them, store the fastest";
  }
  std::string_view details() const override {
    return "Every config is compiled, checked against the reference with fresh outputs, and "
           "timed,\n"
           "in a worker process that may crash or hang without harm. The fastest few and the\n"
           "default are measured again in turns, and the winner goes to the cache.\n\n"
           "Examples:\n"
           "  purlin tune gemm.toml --shape M=4096,N=4096,K=4096 --budget 60s\n"
           "  purlin tune gemm.toml --shape small --shape large --strategy random --budget 200\n"
           "  purlin tune --backlog 3 --budget 60s       what programs launched most, untuned\n"
           "  purlin tune --device replay:convolution-A100.json.gz --budget 100 --json\n"
           "  purlin tune convolution.t1.json --device replay:convolution-A100.json.gz\n\n"
           "Strategies: auto, exhaustive, random, local, steepest, ils, annealing, genetic,\n"
           "evolution, swarm, model, boosted, counters, transfer. auto starts from what the\n"
           "cache's folder knows of the kernel on other devices, at other shapes, and from "
           "--transfer FILE\n"
           "(Kernel Tuner, T4, KTT, wisdom, `tune --json`), and drops that where it misleads.\n"
           "A budget is evaluations (200), time (60s, 5m) or both (200,60s); a replay's time is "
           "what\n"
           "was recorded. Without one: 200.\n"
           "An interrupted session (Ctrl-C, kill, power) goes on where it was when the same "
           "command\n"
           "is given again; --fresh starts anew. Ctrl-C twice ends at once.\n"
           "--bucket-regret 4 holds the winner against the best at 4 other shapes of its bucket,\n"
           "and keeps the ratios with it; above 1.05 it says which rule would be finer.\n"
           "Exit codes: 0 done, 2 error or no config works, 3 interrupted.";
  }

  void declare(Flags& flags) override {
    flags.positional("SPEC", spec_, "The kernel's spec (TOML or T1); may be left out for a replay",
                     false);
    flags.option("--device", device_,
                 "cuda:0, opencl:0, replay:FILE or auto; cuda:0,cuda:1 uses both", "DEVICE");
    flags.list("--shape", shapes_, "Problem shape: M=512,N=512 or a preset's name; repeatable",
               "SHAPE");
    flags.option("--backlog", backlog_,
                 "Tune the first N tasks of `purlin backlog` whose spec is known");
    flags.option("--strategy", strategy_, "What proposes configs (list above)", "NAME");
    flags.option("--budget", budget_, "Evaluations (200), time (60s) or both (200,60s)", "BUDGET");
    flags.option("--seed", seed_, "Seed of the strategy");
    flags.option("--samples", samples_, "Most timing samples of a config in the search");
    flags.flag("--cold", cold_, "Time with a cold L2 cache; the winner is kept as such");
    flags.option("--inputs", inputs_,
                 "reuse or rotate: whether launches find their inputs in L2 (default: the spec's)",
                 "HOW");
    flags.option(
        "--objective", objective_name_,
        "time, energy (of a launch) or edp (energy times time); the last two are not stored",
        "WHAT");
    flags.list("--limit", limits_,
               "What a config must keep to, such as \"power_w < 500\" or \"registers <= 128\"; "
               "repeatable",
               "EXPR");
    flags.option("--finals", finals_, "Rounds in which the fastest are measured again; 0 = none");
    flags.option("--jobs", jobs_, "Processes that compile ahead; -1 = by the number of cores");
    flags.option("--timeout", timeout_, "Longest compilation, and longest run, of one config",
                 "TIME");
    flags.option("--session", session_, "Directory of the journal (default: in your cache)", "DIR");
    flags.flag("--fresh", fresh_, "Start anew instead of going on with an interrupted session");
    transfer_.declare(flags);
    cache_.declare(flags);
    flags.flag("--no-store", no_store_, "Do not store the winner");
    flags.option("--bucket-regret", regret_shapes_,
                 "Measure what the winner's bucket costs at so many of its other shapes");
    flags.option("--regret-budget", regret_budget_, "Budget of the search at each of them",
                 "BUDGET");
    flags.option("--top", top_, "Rows of the table");
    flags.flag("--json", json_, "Print one JSON document");
    flags.option("--html", html_, "Write the session as a page that opens offline", "FILE");
    flags.option("-o,--output", output_, "Write the JSON document here as well", "FILE");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(check_flags());
    const Interrupt interrupt;
    // A cache of binaries that cannot be tidied is as good as it was.
    if (const Status tidied = measure::BinaryCache(binary_cache()).prune(); !tidied.is_ok())
      context.log.debug("{}", tidied.message());
    const Result<std::vector<Outcome>> made = is_replay()    ? tune_replay(context)
                                              : backlog_ > 0 ? tune_backlog(context)
                                                             : tune_spec(context);
    if (made.status().code() == Code::kCancelled) {
      context.log.warn("interrupted before the first config; nothing was measured");
      return kExitInconclusive;
    }
    PURLIN_TRY(made.status());
    const std::vector<Outcome>& outcomes = *made;
    if (outcomes.empty()) return kExitOk;
    Json document = outcomes.front().document;
    if (outcomes.size() > 1) {
      document = Json::object({{"schema", "purlin.tune-set/1"}, {"tool_version", version()}});
      Json results = Json::array();
      for (const Outcome& outcome : outcomes) results.push(outcome.document);
      document.set("environment", outcomes.front().document["environment"])
          .set("results", std::move(results));
    }
    // What was found is printed before anything else can fail.
    int code = kExitOk;
    Status status;
    if (json_) context.print(document.dump(1) + "\n");
    for (const Outcome& outcome : outcomes) {
      if (!json_) context.print(outcome.text);
      if (status.is_ok()) status = outcome.status;
      if (outcome.stopped) code = kExitInconclusive;
    }
    const bool worked = std::any_of(outcomes.begin(), outcomes.end(),
                                    [](const Outcome& outcome) { return outcome.worked; });
    if (!html_.empty() && worked) {
      PURLIN_ASSIGN(const std::string page, tune::render_page(document));
      PURLIN_TRY(write_atomic(html_, page));
    }
    if (!output_.empty() && worked) PURLIN_TRY(write_atomic(output_, document.dump(1) + "\n"));
    PURLIN_TRY(status);
    if (code == kExitInconclusive)
      context.log.warn("interrupted; {}",
                       is_replay() ? "a replay keeps no journal"
                                   : "the same command goes on from here (--fresh to start anew)");
    return code;
  }

 private:
  static std::string binary_cache() { return join_path(user_cache_directory(), "binaries"); }
  bool is_replay() const { return starts_with(device_, "replay:"); }

  // "cuda:0,cuda:1": the same kernel on several devices of one model.
  std::vector<std::string> device_names() const {
    const std::vector<std::string> parts = split(device_, ',');
    const bool all = std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
      return part.find(':') != std::string::npos;
    });
    return all ? parts : std::vector<std::string>{device_};  // a file's name may have commas
  }

  Status check_flags() {
    PURLIN_ASSIGN(budget_limit_, tune::parse_budget(budget_));
    PURLIN_ASSIGN(regret_limit_, tune::parse_budget(regret_budget_));
    if (regret_shapes_ < 0 || regret_shapes_ > 64)
      return error(Code::kInvalid, "--bucket-regret takes 1 to 64 shapes, not {}", regret_shapes_);
    if (regret_shapes_ > 0 && (is_replay() || no_store_))
      return error(Code::kInvalid,
                   "--bucket-regret measures other shapes on the device and keeps the result with "
                   "the winner; leave out {}",
                   no_store_ ? "--no-store" : "the replay");
    PURLIN_TRY(transfer_.check(strategy_));
    const std::optional<double> timeout = parse_duration_s(timeout_);
    if (!timeout || *timeout <= 0)
      return error(Code::kInvalid, "--timeout takes a time such as 30s or 2m, not '{}'", timeout_);
    timeout_s_ = *timeout;
    if (samples_ < 1) return error(Code::kInvalid, "--samples must be 1 or more, not {}", samples_);
    if (finals_ < 0 || seed_ < 0 || top_ < 1 || jobs_ < -1)
      return error(Code::kInvalid, "--finals and --seed must be 0 or more, --top 1, --jobs -1");
    policy_.max_samples = samples_;
    policy_.min_samples = std::min(policy_.min_samples, samples_);
    policy_.flush_l2 = cold_;
    const std::optional<Objective> objective = objective_from_name(objective_name_);
    if (!objective)
      return error(Code::kInvalid, "--objective is time, energy or edp, not '{}'", objective_name_);
    objective_ = *objective;
    if (is_replay() && (objective_ != Objective::kTime || !limits_.empty()))
      return error(Code::kInvalid,
                   "a recording has times alone; leave out --objective and --limit");
    using Inputs = measure::Policy::Inputs;
    if (inputs_ == "reuse" || inputs_ == "rotate") {
      policy_.inputs = inputs_ == "rotate" ? Inputs::kRotate : Inputs::kReuse;
    } else if (!inputs_.empty()) {
      return error(Code::kInvalid, "--inputs is reuse or rotate, not '{}'", inputs_);
    }
    if (!output_.empty() && !is_directory(parent_path(output_)))
      return error(Code::kNotFound, "--output '{}': there is no folder '{}'", output_,
                   parent_path(output_));
    if (!html_.empty() && shapes_.size() > 1)
      return error(Code::kInvalid, "--html is of one problem shape; give one --shape");
    if (is_replay() && !shapes_.empty())
      return error(Code::kInvalid, "a replay was recorded for one shape; leave out --shape");
    if (backlog_ < 0) return error(Code::kInvalid, "--backlog takes 1 or more, not {}", backlog_);
    if (backlog_ > 0 && (is_replay() || !spec_.empty() || !shapes_.empty() || no_store_))
      return error(Code::kInvalid,
                   "--backlog brings its specs and shapes and stores what it finds; leave out the "
                   "spec, --shape, --no-store and a replay");
    if (!is_replay() && backlog_ == 0 && spec_.empty())
      return error(Code::kInvalid,
                   "no spec given; use: purlin tune SPEC, or --device replay:FILE without one");
    return Status::ok();
  }

  Result<std::vector<Outcome>> tune_replay(Context& context) {
    const std::string path = device_.substr(device_.find(':') + 1);
    PURLIN_ASSIGN(gpu::ReplaySpace recording, gpu::ReplaySpace::read(path));
    const gpu::ReplayDevice device(std::move(recording), path);
    tune::ReplayEvaluator evaluator(device.space(), device.info());
    Subject subject;
    subject.device = device.info();
    subject.name = device.space().kernel().empty() ? base_name(path) : device.space().kernel();
    subject.evaluator = &evaluator;
    subject.evaluators = {&evaluator};
    const std::int64_t start_ns = system_clock().monotonic_ns();
    if (spec_.empty()) {
      PURLIN_ASSIGN(subject.space, tune::space_of(device.space()));
    } else {
      PURLIN_ASSIGN(const KernelSpec spec, load_spec(spec_, SpecUse::kSpace));
      PURLIN_ASSIGN(tune::RecordedSpace shared, tune::space_of(device.space(), spec));
      if (shared.not_recorded + shared.not_valid > 0)
        context.log.warn(
            "{} valid configs of {} are not recorded, {} recorded ones are not valid; "
            "the {} that are both are searched",
            shared.not_recorded, spec_, shared.not_valid, shared.space.size());
      subject.space = std::move(shared.space);
      subject.name = spec.name;
    }
    subject.space_s = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
    PURLIN_ASSIGN(Outcome outcome, tune_one(context, subject));
    return std::vector<Outcome>{std::move(outcome)};
  }

  Result<std::vector<Outcome>> tune_spec(Context& context) {
    PURLIN_ASSIGN(const KernelSpec spec, load_spec(spec_));
    std::vector<ProblemShape> problems;
    for (const std::string& text : shapes_.empty() ? std::vector<std::string>{""} : shapes_) {
      PURLIN_ASSIGN(ProblemShape problem, resolve_shape(spec, text));
      problems.push_back(std::move(problem));
    }
    std::vector<Outcome> outcomes;
    for (const ProblemShape& problem : problems) {
      Result<Outcome> outcome = tune_shape(context, spec, problem);
      if (!outcome.is_ok()) {
        if (outcomes.empty()) return outcome.status();
        // The shapes before this one were tuned, so they are told of all the same.
        end_with(outcomes.back(), outcome.status().with_context(problem.text()));
        break;
      }
      outcomes.push_back(std::move(outcome).value());
      if (outcomes.back().stopped || !outcomes.back().status.is_ok()) break;
    }
    return outcomes;
  }

  // The one after `last` came to nothing.
  static void end_with(Outcome& last, Status why) {
    if (why.code() == Code::kCancelled)
      last.stopped = true;
    else
      last.status = std::move(why);
  }

  // The tasks of the backlog for this device, the largest saving of GPU time first.
  Result<std::vector<Outcome>> tune_backlog(Context& context) {
    const std::string directory =
        cache_.directory.empty() ? cache::Store::default_directory() : cache_.directory;
    PURLIN_ASSIGN(const std::vector<backlog::RankedTask> tasks,
                  backlog::read(directory, context.log));
    PURLIN_ASSIGN(const auto device, gpu::open_device(device_));
    std::vector<Outcome> outcomes;
    int left = backlog_;
    for (const backlog::RankedTask& ranked : tasks) {
      const backlog::Task& task = ranked.task;
      if (left == 0 || (!outcomes.empty() && outcomes.back().stopped)) break;
      if (task.key.kind == "validate" || task.key.device != device->info().name) continue;
      if (task.spec.empty() || !file_exists(task.spec)) {
        context.log.warn("{} {}: its spec {}; name it: purlin tune SPEC --shape {}",
                         task.key.kernel, task.key.shape,
                         task.spec.empty() ? "is not known" : "'" + task.spec + "' is not here",
                         task.key.shape);
        continue;
      }
      --left;
      spec_ = task.spec;
      shapes_ = {task.key.shape};
      Result<std::vector<Outcome>> made = tune_spec(context);
      if (!made.is_ok()) {
        if (outcomes.empty())
          return made.status().with_context(task.key.kernel + " " + task.key.shape);
        end_with(outcomes.back(),
                 made.status().with_context(task.key.kernel + " " + task.key.shape));
        break;
      }
      for (Outcome& outcome : *made) outcomes.push_back(std::move(outcome));
      // A task of the work list is over by itself once there is an entry.
      if (outcomes.back().status.is_ok() && !outcomes.back().stopped)
        static_cast<void>(backlog::finish(directory, task.id()));
    }
    if (outcomes.empty())
      context.log.info("nothing to tune on {}: `purlin backlog` lists all there is",
                       device->info().name);
    return outcomes;
  }

  Result<Outcome> tune_shape(Context& context, KernelSpec spec, const ProblemShape& problem) {
    measure::WorkerSetup setup;
    const std::vector<std::string> devices = device_names();
    setup.device = devices.front();
    setup.spec_path = spec.file;
    setup.problem = problem;
    setup.binary_cache = binary_cache();
    PURLIN_ASSIGN(const std::unique_ptr<tune::WorkerPool> pool,
                  tune::WorkerPool::start(setup, {spec.library ? 0  // nothing is compiled
                                                  : jobs_ < 0  ? tune::default_compilers()
                                                               : jobs_,
                                                  timeout_s_, &Interrupt::flag()}));
    std::vector<std::unique_ptr<tune::WorkerPool>> beside;
    for (std::size_t i = 1; i < devices.size(); ++i) {
      measure::WorkerSetup other = setup;
      other.device = devices[i];
      PURLIN_ASSIGN(auto started, tune::WorkerPool::start_beside(*pool, other));
      beside.push_back(std::move(started));
    }
    Subject subject;
    subject.spec = &spec;
    subject.problem = problem;
    subject.name = spec.name;
    subject.evaluator = pool.get();
    subject.evaluators = {pool.get()};
    for (const auto& other : beside) subject.evaluators.push_back(other.get());
    subject.device = pool->device();
    PURLIN_TRY(set_limits(spec, *pool, subject));
    const std::int64_t start_ns = system_clock().monotonic_ns();
    if (spec.library) {
      PURLIN_TRY(list_library(context, *pool, spec, subject));
      setup.device = pool->device().id;
      setup.verify = false;
      subject.fresh = [setup, this]() -> Result<std::unique_ptr<tune::Evaluator>> {
        PURLIN_ASSIGN(auto started, tune::WorkerPool::start(setup, {0, timeout_s_}));
        return std::unique_ptr<tune::Evaluator>(std::move(started));
      };
    } else {
      subject.default_config = default_config(spec);
      PURLIN_ASSIGN(subject.space, tune::build_space(spec, problem, pool->device(), {}, [](double) {
                      return !Interrupt::requested();
                    }));
    }
    subject.space_s = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
    // After all that can be wrong with the command, before the work: nothing is left behind by a
    // mistake, and no winner is found that cannot be kept.
    if (!no_store_) {
      PURLIN_ASSIGN(cache::Store store, cache_.open());
      PURLIN_TRY(store.check_writable());
    }
    return tune_one(context, subject);
  }

  // The space of a library's operation, which the library itself tells.
  static Status list_library(Context& context, tune::WorkerPool& pool, KernelSpec& spec,
                             Subject& subject) {
    PURLIN_ASSIGN(const gpu::LibrarySpace found, pool.library_space());
    PURLIN_ASSIGN(tune::LibraryChoices choices, tune::library_choices(spec, found));
    context.log.info("{} has {}{} algorithms for {} ({} asked about in {:.2f} s)", found.version,
                     found.complete ? "" : "at least ", choices.space.size(),
                     subject.problem.text(), found.checked, found.seconds);
    if (found.not_rebuilt > 0)
      context.log.warn(
          "{} of {}'s own proposals are not given again by their attributes; what is "
          "stored is what the attributes give",
          found.not_rebuilt, found.version);
    subject.space = std::move(choices.space);
    subject.default_config = std::move(choices.default_config);
    subject.seeds = std::move(choices.proposals);
    subject.device.toolkit = found.version;
    return Status::ok();
  }

  // A library's heuristic is good, so most leads over it are small and some are chance: a winner
  // that does not hold up in fresh processes leaves its place to the next, and in the end to the
  // default.
  Result<Json> confirm_winner(Context& context, const Subject& subject, SessionResult& made) const {
    Json all = Json::array();
    if (!subject.fresh || !made.verdict || !made.verdict->fallback) return all;
    tune::Verdicts& verdict = *made.verdict;
    const auto config_of = [&](std::size_t finalist) -> const Config& {
      return made.evaluations[verdict.finalists[finalist].evaluation].config;
    };
    const std::size_t fallback = *verdict.fallback;
    std::vector<std::size_t> candidates;
    if (!verdict.finalists[verdict.winner].is_default) candidates.push_back(verdict.winner);
    for (std::size_t i = 0; i < verdict.finalists.size() && candidates.size() == 1; ++i)
      if (i != verdict.winner && i != fallback && verdict.finalists[i].problem.empty() &&
          verdict.finalists[i].time_ms < verdict.finalists[fallback].time_ms)
        candidates.push_back(i);
    // A program may find its inputs in the state that was not tuned for.
    using Inputs = measure::Policy::Inputs;
    const bool rotates = policy_.inputs == Inputs::kAsSpec ? subject.spec->rotate_inputs
                                                           : policy_.inputs == Inputs::kRotate;
    tune::ConfirmOptions confirm_options;
    if (!policy_.flush_l2)
      confirm_options.other_inputs = rotates ? Inputs::kReuse : Inputs::kRotate;
    std::optional<std::size_t> held;
    for (const std::size_t candidate : candidates) {
      PURLIN_ASSIGN(
          const tune::Confirmation confirmation,
          tune::confirm(config_of(candidate), config_of(fallback), policy_, confirm_options,
                        subject.fresh, [] { return !Interrupt::requested(); }));
      Json ratios = Json::array(), other = Json::array();
      for (const double ratio : confirmation.ratios) ratios.push(ratio);
      for (const double ratio : confirmation.other_ratios) other.push(ratio);
      all.push(Json::object({{"config", to_json(config_of(candidate))},
                             {"gain_by_process", std::move(ratios)},
                             {"gain_with_other_inputs", std::move(other)},
                             {"holds", confirmation.holds},
                             {"problem", confirmation.problem}}));
      if (confirmation.holds) {
        held = candidate;
        break;
      }
      context.log.info("the winner {} does not hold up: {}", config_of(candidate).text(),
                       confirmation.problem);
    }
    if (!candidates.empty() && !held) context.log.info("the library's own choice stays");
    verdict.winner = held.value_or(fallback);
    std::erase(verdict.ties, verdict.winner);
    return all;
  }

  Status set_limits(const KernelSpec& spec, const tune::WorkerPool& pool, Subject& subject) const {
    for (const std::string& text : limits_) {
      PURLIN_ASSIGN(SpecExpression limit, parse_limit(spec, text));
      subject.limits.push_back(std::move(limit));
    }
    subject.energy =
        objective_ != Objective::kTime || needs_energy(subject.limits) || needs_energy(spec.limits);
    if (!subject.energy || pool.energy_problem().empty()) return Status::ok();
    return error(Code::kUnavailable, "{} takes the energy, which cannot be measured here: {}",
                 objective_ != Objective::kTime ? "--objective " + objective_name_
                                                : "a limit on energy_mj or power_w",
                 pool.energy_problem());
  }

  // Everything that makes an old evaluation worth as much as a new one.
  Result<Json> session_header(const Subject& subject, std::string& id) const {
    const DeviceInfo& device = subject.device;
    FieldHasher hasher;
    hasher.add(subject.spec->source_hash(device.backend == "cuda" ? "cuda" : "opencl"))
        .add(subject.spec->name)
        .add(subject.problem.text());
    hasher.add(objective_name(objective_));
    for (const std::string& limit : limits_) hasher.add(limit);
    // The files as they are: another reference, tolerance or seed judges a config anew.
    PURLIN_ASSIGN(const guard::Snapshot files, guard::take_snapshot(*subject.spec));
    for (const guard::Snapshot::File& file : files.files) hasher.add(file.text);
    hasher.add(std::to_string(timeout_s_));  // a config that ran into it may finish under another
    for (const Parameter& parameter : subject.space.parameters()) {
      hasher.add(parameter.name);
      for (const Value& value : parameter.values) hasher.add(to_json(value).dump());
    }
    for (const tune::Pruned& by : subject.space.pruned()) hasher.add(by.constraint);
    for (const std::string& fact : {device.id, device.name, device.uuid, device.driver,
                                    device.toolkit, to_json(policy_).dump(), strategy_})
      hasher.add(fact);
    id = hasher.add(std::to_string(seed_)).hex();
    Json header = new_document("purlin.session/1", environment_of(device));
    header.set("id", id)
        .set("kernel", subject.name)
        .set("spec", absolute_path(subject.spec->file))
        .set("problem", to_json(subject.problem))
        .set("device", device.id)
        .set("strategy", strategy_)
        .set("seed", seed_)
        .set("policy", to_json(policy_));
    return header;
  }

  Result<tune::Journal> open_journal(Context& context, const Subject& subject) const {
    std::string id;
    PURLIN_ASSIGN(const Json header, session_header(subject, id));
    const std::string root =
        session_.empty() ? join_path(user_cache_directory(), "sessions") : session_;
    PURLIN_ASSIGN(tune::Journal journal,
                  tune::Journal::open(join_path(join_path(root, id), "journal.jsonl"), header));
    const bool ended = !journal.finished().empty();
    const tune::Budget before =
        tune::parse_budget(journal.finished_budget()).value_or(tune::Budget{});
    // A finished session is measured anew, unless there is budget left to take it further.
    const bool further = journal.finished() == "budget" && budget_limit_.exceeds(before);
    if (fresh_ || (ended && !further)) {
      PURLIN_TRY(journal.restart());
    } else if (!journal.records().empty()) {
      context.log.info("going on with a session of {} evaluations (--fresh starts anew)",
                       journal.records().size());
    }
    return journal;
  }

  Result<Outcome> tune_one(Context& context, const Subject& subject) const {
    const DeviceInfo& device = subject.device;
    // A replay is about its recording alone: what the cache knows would make it another each time.
    const TransferTarget target{subject.evaluator->executes() ? subject.spec : nullptr,
                                subject.space, device, subject.problem, cold_};
    tune::Priors priors;
    if (strategy_ == "auto" || strategy_ == "transfer") {
      PURLIN_ASSIGN(priors, find_priors(transfer_, target, cache_, context.log));
    }
    PURLIN_ASSIGN(std::unique_ptr<tune::Strategy> strategy,
                  tune::make_strategy(strategy_, {subject.space, static_cast<std::uint64_t>(seed_),
                                                  budget_limit_.evaluations, budget_limit_.seconds,
                                                  std::move(priors.runs)}));
    strategy = tune::make_seeded(std::move(strategy), subject.seeds);
    const bool keeps = subject.evaluator->executes() && subject.spec != nullptr;
    // An entry's time is that of the spec's own way, and the fastest of its key; a winner of
    // another does not compare with it.
    std::string unlike;
    if (!inputs_.empty() && subject.spec != nullptr &&
        (inputs_ == "rotate") != subject.spec->rotate_inputs)
      unlike = "the spec measures otherwise than --inputs " + inputs_;
    if (objective_ != Objective::kTime) unlike = "the cache keeps the fastest configs";
    if (keeps && !no_store_ && !unlike.empty())
      context.log.info("the winner is not stored: {}", unlike);
    std::optional<tune::Journal> journal;
    if (keeps) {
      PURLIN_ASSIGN(tune::Journal opened, open_journal(context, subject));
      journal.emplace(std::move(opened));
    }
    Progress progress(stderr, context.error_terminal, !context.quiet);
    tune::SessionOptions options;
    options.budget = budget_limit_;
    options.policy = policy_;
    options.policy.energy_s = subject.energy ? kEnergyS : 0;
    options.objective = objective_;
    if (!subject.limits.empty())
      options.accept = [&subject](const Evaluation& made) {
        return check_limits(subject.limits, *subject.spec, subject.problem, made,
                            subject.evaluator->device());
      };
    options.finals.rounds = finals_;
    options.default_config = subject.default_config;
    options.stop = &Interrupt::flag();
    bool told_of_counters = false;
    options.on_progress = [&](const SessionState& state) {
      if (const std::string problem = subject.evaluator->counters_problem();
          !told_of_counters && !problem.empty()) {
        told_of_counters = true;
        progress.clear();
        context.log.info("no hardware counters: {}; the search learns from the compiled kernels",
                         problem);
      }
      progress.update(progress_line(state, subject.space.size()));
    };
    std::vector<DeviceInfo> devices;
    if (subject.evaluator->executes())
      for (const tune::Evaluator* each : subject.evaluators) devices.push_back(each->device());
    TuneWatch watch(devices);
    Result<SessionResult> made = tune::run_session(subject.space, *strategy, subject.evaluators,
                                                   journal ? &*journal : nullptr, options);
    progress.clear();
    const std::optional<guard::Conditions> conditions = watch.end(context.log);
    if (!made.is_ok()) return made.status();
    if (!made->default_problem.empty()) context.log.warn("{}", made->default_problem);
    PURLIN_ASSIGN(Json confirmations, confirm_winner(context, subject, *made));

    tune::ReportInput input{subject.space, *made, subject.device};
    input.spec = subject.spec;
    input.problem = subject.problem;
    input.kernel = subject.name;
    input.strategy = strategy_;
    input.strategy_used = strategy->name();
    input.seed = static_cast<std::uint64_t>(seed_);
    input.budget = budget_limit_;
    input.policy = options.policy;
    input.objective = objective_;
    input.space_s = subject.space_s;
    input.counters_problem = subject.evaluator->counters_problem();
    input.transfer_sources = std::move(priors.sources);
    if (strategy->transfer() != nullptr) input.transfer = *strategy->transfer();
    if (journal) input.session_directory = parent_path(journal->path());
    Outcome outcome;
    outcome.stopped = made->end == SessionResult::End::kStopped;
    if (!made->verdict)
      outcome.status =
          outcome.stopped && made->evaluations.empty() ? Status::ok() : tune::nothing_worked(*made);
    outcome.worked = made->verdict.has_value();
    std::vector<std::pair<ProblemShape, double>> regret;
    if (keeps && !no_store_ && unlike.empty() && !outcome.stopped && outcome.worked) {
      outcome.status = store(context, subject, *made, input, regret)
                           .with_context("the winner was found, but not stored");
      // Later sessions only start slower without them.
      if (const Status kept = keep_evaluations(target, cache_, made->evaluations); !kept.is_ok())
        context.log.warn("later sessions will not start from this one: {}", kept.message());
    }
    outcome.document = report_document(input, environment_of(input.device));
    if (confirmations.size() > 0) outcome.document.set("confirmations", std::move(confirmations));
    if (conditions) outcome.document.set("conditions", guard::to_json(*conditions));
    outcome.text = report_text(input, context.terminal, static_cast<std::size_t>(top_));
    if (!regret.empty()) {
      Json ratios = Json::object();
      for (const auto& [shape, ratio] : regret) ratios.set(shape.text(), ratio);
      outcome.document.set("bucket_regret", std::move(ratios));
    }
    return outcome;
  }

  Status store(Context& context, const Subject& subject, const SessionResult& result,
               tune::ReportInput& input,
               std::vector<std::pair<ProblemShape, double>>& regret) const {
    const tune::Verdicts& verdict = *result.verdict;
    PURLIN_ASSIGN(cache::Entry entry,
                  cache::new_entry(*subject.spec, subject.problem, subject.device, cold_));
    entry.config = result.evaluations[verdict.best().evaluation].config;
    entry.time_ms = verdict.best().time_ms;
    entry.samples = verdict.best().samples;
    if (verdict.fallback) {
      const tune::Finalist& fallback = verdict.finalists[*verdict.fallback];
      entry.default_time_ms = fallback.time_ms;
      entry.default_config = result.evaluations[fallback.evaluation].config;
    }
    for (std::size_t i = 0; i < verdict.finalists.size(); ++i) {
      const tune::Finalist& other = verdict.finalists[i];
      if (i == verdict.winner || !other.problem.empty()) continue;
      if (entry.runner_up_ms <= 0 || other.time_ms < entry.runner_up_ms) {
        entry.runner_up_ms = other.time_ms;
        entry.runner_up = result.evaluations[other.evaluation].config;
      }
    }
    for (const std::size_t tie : verdict.ties)
      entry.ties.push_back(result.evaluations[verdict.finalists[tie].evaluation].config);
    entry.evaluations = static_cast<int>(result.evaluations.size());
    entry.verified = true;
    entry.strategy = input.strategy_used;
    if (regret_shapes_ > 0) {
      RegretOptions options;
      options.shapes = static_cast<std::size_t>(regret_shapes_);
      options.budget = regret_limit_;
      options.policy = policy_;
      options.finals = finals_;
      options.seed = static_cast<std::uint64_t>(seed_);
      options.device = device_names().front();
      options.binary_cache = binary_cache();
      options.pool = {jobs_ < 0 ? tune::default_compilers() : jobs_, timeout_s_};
      // The winner counts whatever becomes of this.
      if (const Status measured =
              measure_regret(*subject.spec, result.evaluations, options, context.log, entry);
          !measured.is_ok())
        context.log.warn("the bucket's regret was not measured: {}", measured.message());
      regret = entry.bucket_regret;
    }
    PURLIN_ASSIGN(cache::Store store, cache_.open());
    PURLIN_ASSIGN(const cache::Put put, store.put(entry));
    if (!put.served)
      context.log.info(
          "a faster entry of this key is kept in use ({}); `purlin cache put --replace` "
          "would displace it",
          put.kept);
    input.stored_directory = store.directory();
    input.stored_key = entry.key.id();
    context.log.info("stored in {} as {} {} {} ({})", store.directory(), entry.key.op,
                     entry.key.bucket, entry.key.device, entry.key.id());
    return Status::ok();
  }

  std::string progress_line(const SessionState& state, std::size_t size) const {
    const std::size_t total =
        budget_limit_.evaluations > 0 ? std::min(budget_limit_.evaluations, size) : size;
    std::string line = state.finals ? "finals  " : "";
    line += fmt::format("{}/{}", state.done, total);
    if (state.best != nullptr) line += "  best " + format_ns(state.best->time_ms * 1e6);
    if (state.last != nullptr && state.last->ok())
      line += "  last " + format_ns(state.last->time_ms * 1e6);
    for (std::size_t status = 1; status < state.by_status.size(); ++status)
      if (state.by_status[status] > 0)
        line += fmt::format("  {} {}", state.by_status[status],
                            status_name(static_cast<EvaluationStatus>(status)));
    const double share =
        std::max(state.spent, static_cast<double>(state.done) /
                                  static_cast<double>(std::max(total, std::size_t{1})));
    if (share > 0.02 && share < 1)
      line += fmt::format("  ETA {:.0f} s", state.elapsed_s * (1 - share) / share);
    return line;
  }

  std::string spec_, device_ = "auto", strategy_ = "auto", budget_ = "200", timeout_ = "60s";
  std::string session_, output_, html_, inputs_, objective_name_ = "time";
  std::vector<std::string> shapes_, limits_;
  CacheFlag cache_;
  TransferFlags transfer_;
  int seed_ = 1, samples_ = measure::Policy{}.max_samples, finals_ = tune::FinalsOptions{}.rounds;
  std::string regret_budget_ = "50";
  int jobs_ = -1, top_ = 10, backlog_ = 0, regret_shapes_ = 0;
  bool cold_ = false, fresh_ = false, no_store_ = false, json_ = false;
  tune::Budget budget_limit_, regret_limit_;
  measure::Policy policy_;
  Objective objective_ = Objective::kTime;
  double timeout_s_ = 60;
};

}  // namespace

std::unique_ptr<Command> make_tune_command() { return std::make_unique<TuneCommand>(); }

}  // namespace purlin::cli
