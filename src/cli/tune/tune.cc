// SPDX-License-Identifier: Apache-2.0
// `purlin tune`: search the configs of a kernel, verify and measure them, keep the winner.
#include "backlog/backlog.h"
#include "backlog/file.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/events.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/next_step.h"
#include "cli/page/page_views.h"
#include "cli/page/write_page.h"
#include "cli/tune/progress_line.h"
#include "cli/tune/shared_tasks.h"
#include "cli/tune/target.h"
#include "cli/tune/watch.h"
#include "gpu/registry.h"
#include "guard/arms/snapshot.h"
#include "measure/binary_cache.h"
#include "tune/session/build_ahead.h"
#include "tune/session/tune_kernel.h"

namespace purlin::cli {
namespace {

using tune::SessionState;

// What the verb prints for one problem shape.
struct Outcome {
  Json document;
  std::string text;
  Status status;        // not ok when no config worked, or the winner could not be stored
  bool worked = false;  // at least one config worked
  bool stopped = false;
};

// The outcome before `last` stays valid; the next shape failed.
void end_with(Outcome& last, Status why) {
  if (why.code() == Code::kCancelled)
    last.stopped = true;
  else
    last.status = std::move(why);
}

class TuneCommand : public Command {
 public:
  std::string_view name() const override { return "tune"; }
  std::string_view summary() const override {
    return "Search the configs of a kernel, verify and measure, store the fastest";
  }
  VerbText text() const override {
    return {
        .description =
            "Compiles each config, checks its outputs against the reference, and times it, in a "
            "worker process that may crash or hang without harm. The fastest configs and the "
            "default are measured again in turns. The winner goes to the cache. A winner of "
            "an earlier session is confirmed instead (--fresh searches).\n\nAfter an "
            "interruption (Ctrl-C, kill, power), the same command continues the session. "
            "Another Ctrl-C, a second later, ends at once.",
        .more =
            "--transfer reads files of Kernel Tuner, T4, KTT and Kernel Launcher (wisdom), and "
            "documents of `purlin tune --json`.",
        .examples =
            {{"purlin tune gemm.toml --shape M=4096,N=4096,K=4096 --budget 60s"},
             {"purlin tune gemm.toml --shape small --shape large --strategy random --budget 200"},
             {"purlin tune --backlog 3 --budget 60s",
              "The kernels that programs launched most, untuned"},
             {"purlin tune --device replay:convolution-A100.json.gz --budget 100 --json"},
             {"purlin tune convolution.t1.json --device replay:convolution-A100.json.gz"}},
        .exit_codes = {{0, "Done"}, {2, "Error, or no config works"}, {3, "Interrupted"}},
        .see = {"docs/guide/tuning.md", "docs/concepts/search.md"}};
  }

  void declare(Flags& flags) override {
    flags.positional("SPEC", spec_, "Spec of the kernel (TOML or T1), not needed for a replay",
                     false);
    flags.option("--device", device_, "Device, or several: cuda:0,cuda:1; or replay:FILE",
                 "DEVICE");
    flags.list("--shape", shapes_, "Problem shape: M=512,N=512 or a preset; repeatable", "SHAPE");
    flags.option("--backlog", backlog_, "Tune the first N tasks of the backlog with a known spec");
    shared_.declare(flags);
    flags.option(
        "--strategy", strategy_,
        {"Search strategy, such as random, local or model",
         "The strategy auto starts from results for other devices and shapes, in the folder of the "
         "cache and from --transfer. It drops results that mislead the search.",
         {{"auto", ""},
          {"exhaustive", ""},
          {"random", ""},
          {"local", ""},
          {"ils", ""},
          {"annealing", ""},
          {"genetic", ""},
          {"evolution", ""},
          {"swarm", ""},
          {"model", ""},
          {"boosted", ""},
          {"counters", ""},
          {"transfer", ""}}},
        "NAME");
    flags.option("--budget", budget_,
                 {"Evaluations (200), time (60s) or both (200,60s)",
                  "The default is 200 evaluations. The time is that of the whole session, with its "
                  "start and the finals. --bucket-regret and the confirmation of a library's "
                  "winner come on top. The time of a replay is the recorded time."},
                 "BUDGET");
    flags.option("--seed", seed_, "Seed of the strategy");
    flags.option("--samples", samples_, "Maximum timing samples of a config during the search");
    flags.flag("--cold", cold_, "Measure with a cold L2 cache and store the winner as such");
    flags.option(
        "--inputs", inputs_,
        {"Inputs in L2: reuse or rotate (default: the spec's)",
         "With reuse, launches find their inputs in the L2 cache; with rotate, they do not.",
         {{"reuse", ""}, {"rotate", ""}}},
        "HOW");
    flags.option("--objective", objective_name_,
                 {"time, energy or edp (energy times time)",
                  "The energy is that of a launch. Winners by energy or edp are not stored.",
                  {{"time", ""}, {"energy", ""}, {"edp", ""}}},
                 "WHAT");
    flags.list("--limit", limits_,
               {"Limit of a config, such as \"power_w < 500\"; repeatable",
                "Another example is \"registers <= 128\"."},
               "EXPR");
    flags.option("--finals", finals_, "Rounds that measure the fastest again, 0 for none");
    flags.option("--jobs", jobs_, "Processes that compile ahead; -1: as many as cores allow");
    flags.option("--timeout", timeout_,
                 {"Maximum time of one step of a config",
                  "The steps are to compile, to verify and to measure it."},
                 "TIME");
    flags.option("--session", session_, "Directory of the journal (default: in the user's cache)",
                 "DIR");
    flags.flag("--fresh", fresh_,
               {"Search, with no use of an earlier session or of the cache's winner",
                "Without it, an interrupted session continues. Else, if the cache has a "
                "valid entry of exactly this key, the finals compare its config with the default "
                "in seconds. A search follows only if the config does not hold."});
    flags.list("--transfer", transfer_, "Results of other GPUs, shapes or versions to start from",
               "FILE");
    flags.flag("--no-transfer", no_transfer_,
               "Do not start from results in the folder of the cache");
    cache_.declare(flags);
    flags.flag("--no-store", no_store_, "Do not store the winner");
    flags.flag(
        "--missing", missing_,
        {"Tune only the shapes without a winner in the cache",
         "A shape with an exact winner, or the winner of its bucket, is neither compiled nor "
         "measured."});
    flags.option("--bucket-regret", regret_shapes_,
                 {"Compare the winner with the best at N other shapes",
                  "The shapes are of the winner's bucket. The ratios are stored with the winner. A "
                  "ratio above 1.05 names a rule with finer buckets."});
    flags.option("--regret-budget", regret_budget_, "Budget of the search at each of these shapes",
                 "BUDGET");
    flags.option("--top", top_, "Rows of the table");
    flags.flag("--json", json_, "Print one JSON document");
    events_.declare(flags);
    flags.option("--html", html_, "Write the session as a page that opens offline", "FILE");
    flags.option("-o,--output", output_, "Also write the JSON document to this file", "FILE");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(check_flags());
    PURLIN_TRY(events_.begin(context, name(), json_));
    const Interrupt interrupt;
    // A binary cache that cannot be pruned still works.
    if (const Status tidied = measure::BinaryCache(binary_cache()).prune(); !tidied.is_ok())
      context.log.debug("{}", tidied.message());
    Result<std::vector<Outcome>> made = is_replay()         ? tune_replay(context)
                                        : backlog_ > 0      ? tune_backlog(context)
                                        : shared_.tasks > 0 ? tune_leases(context)
                                                            : tune_spec(context);
    if (made.status().code() == Code::kCancelled) {
      context.log.warn("interrupted before the first config; nothing was measured");
      return kExitInconclusive;
    }
    PURLIN_TRY(made.status());
    if (made->empty() && shared_.tasks > 0) return without_outcomes();
    if (made->empty() && missing_ && json_) context.print(set_document({}).dump(1) + "\n");
    return made->empty() ? Result<int>(kExitOk) : print(context, *made);
  }

 private:
  static Json set_document(const std::vector<Outcome>& outcomes) {
    Json results = Json::array();
    for (const Outcome& outcome : outcomes) results.push(outcome.document);
    Json document = Json::object({{"schema", "purlin.tune-set/1"}, {"tool_version", version()}});
    document.set("environment", outcomes.empty() ? purlin::to_json(host_environment())
                                                 : outcomes.front().document["environment"]);
    document.set("results", std::move(results));
    return document;
  }

  Result<int> print(Context& context, const std::vector<Outcome>& outcomes) {
    const Json document = outcomes.size() > 1 ? set_document(outcomes) : outcomes.front().document;
    // The results are printed before anything else can fail.
    if (json_) context.print(document.dump(1) + "\n");
    bool stopped = false, worked = false;
    Status status;
    for (const Outcome& outcome : outcomes) {
      if (!json_ && !events_.on()) context.print(outcome.text);
      if (status.is_ok()) status = outcome.status;
      stopped |= outcome.stopped;
      worked |= outcome.worked;
    }
    if (events_.on()) events_.result(document, stopped ? kExitInconclusive : kExitOk);
    if (!json_ && !events_.on() && worked && !stopped) context.print(next_step(next_after()));
    if (!html_.empty() && worked) {
      PURLIN_TRY(write_page(context, page_of_document(document), html_));
    }
    if (!output_.empty() && worked) PURLIN_TRY(write_atomic(output_, document.dump(1) + "\n"));
    PURLIN_TRY(status);
    if (!stopped) return kExitOk;
    context.log.warn("interrupted; {}", is_replay()
                                            ? "a replay keeps no journal"
                                            : "the same command continues (--fresh starts again)");
    return kExitInconclusive;
  }

  std::vector<std::string> next_after() const {
    if (is_replay()) return {"purlin", "space", "--device", device_};
    if (backlog_ > 0 || shared_.tasks > 0) return {"purlin", "backlog"};
    if (no_store_) return {"purlin", "guard", "run", "SUITE"};
    std::vector<std::string> words = {"purlin", "cache", "get", spec_};
    if (!shapes_.empty()) words.insert(words.end(), {"--shape", shapes_.front()});
    if (device_ != "auto") words.insert(words.end(), {"--device", device_names().front()});
    if (!cache_.directory.empty()) words.insert(words.end(), {"--cache", cache_.directory});
    return words;
  }

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

  // Reads the flags into request_.
  Status check_flags() {
    PURLIN_TRY(check_numbers());
    PURLIN_TRY(check_measurement());
    PURLIN_TRY(check_places());
    if (!transfer_.empty() && strategy_ != "auto" && strategy_ != "transfer")
      return error(Code::kInvalid,
                   "the strategy '{}' uses no earlier results: --transfer takes auto or transfer",
                   strategy_);
    PURLIN_TRY(tune::check_strategy(strategy_));
    request_.strategy = strategy_;
    request_.priors = {transfer_, !no_transfer_};
    request_.opened.devices = device_names();
    request_.opened.binary_cache = binary_cache();
    request_.opened.limits = limits_;
    request_.opened.stop = &Interrupt::flag();
    request_.journal.root =
        session_.empty() ? join_path(user_cache_directory(), "sessions") : session_;
    request_.journal.restart = fresh_;
    request_.cache.directory = cache_directory();
    request_.cache.store = !no_store_;
    return Status::ok();
  }

  Status check_numbers() {
    PURLIN_ASSIGN(request_.budget, tune::parse_budget(budget_));
    PURLIN_ASSIGN(request_.cache.regret_budget, tune::parse_budget(regret_budget_));
    if (regret_shapes_ < 0 || regret_shapes_ > 64)
      return error(Code::kInvalid, "--bucket-regret takes 1 to 64 shapes, not {}", regret_shapes_);
    if (regret_shapes_ > 0 && (is_replay() || no_store_))
      return error(Code::kInvalid,
                   "--bucket-regret measures other shapes on the device and stores the result with "
                   "the winner; leave out {}",
                   no_store_ ? "--no-store" : "the replay");
    const std::optional<double> timeout = parse_duration_s(timeout_);
    if (!timeout || *timeout <= 0)
      return error(Code::kInvalid, "--timeout takes a time such as 30s or 2m, not '{}'", timeout_);
    if (samples_ < 1 || samples_ > measure::kMostSamples)
      return error(Code::kInvalid, "--samples must be 1 to {}, not {}", measure::kMostSamples,
                   samples_);
    if (finals_ < 0) return error(Code::kInvalid, "--finals must be 0 or more, not {}", finals_);
    if (seed_ < 0) return error(Code::kInvalid, "--seed must be 0 or more, not {}", seed_);
    if (top_ < 1) return error(Code::kInvalid, "--top must be 1 or more, not {}", top_);
    if (jobs_ < -1 || jobs_ > tune::kMostCompilers)
      return error(Code::kInvalid, "--jobs must be -1 (as many as cores allow) to {}, not {}",
                   tune::kMostCompilers, jobs_);
    request_.seed = static_cast<std::uint64_t>(seed_);
    request_.finals = finals_;
    request_.cache.regret_shapes = regret_shapes_;
    request_.opened.compilers = jobs_;
    request_.opened.timeout_s = *timeout;
    request_.opened.reference_s = request_.budget.reference_s();
    return Status::ok();
  }

  Status check_measurement() {
    measure::Policy& policy = request_.policy;
    policy.max_samples = samples_;
    policy.min_samples = std::min(policy.min_samples, samples_);
    policy.flush_l2 = cold_;
    const std::optional<Objective> objective = objective_from_name(objective_name_);
    if (!objective)
      return error(Code::kInvalid, "--objective is time, energy or edp, not '{}'", objective_name_);
    request_.opened.objective = *objective;
    if (is_replay() && (*objective != Objective::kTime || !limits_.empty()))
      return error(Code::kInvalid,
                   "a recording has times alone; leave out --objective and --limit");
    using Inputs = measure::Policy::Inputs;
    if (inputs_ == "reuse" || inputs_ == "rotate")
      policy.inputs = inputs_ == "rotate" ? Inputs::kRotate : Inputs::kReuse;
    else if (!inputs_.empty())
      return error(Code::kInvalid, "--inputs is reuse or rotate, not '{}'", inputs_);
    return Status::ok();
  }

  // The files, the shapes and the kernels.
  Status check_places() const {
    if (!output_.empty() && !is_directory(parent_path(output_)))
      return error(Code::kNotFound, "--output '{}': there is no folder '{}'", output_,
                   parent_path(output_));
    PURLIN_TRY(check_page_path(html_));
    for (const std::string& file : transfer_)
      if (!file_exists(file))
        return error(Code::kNotFound, "--transfer '{}': there is no such file", file);
    if (!html_.empty() && shapes_.size() > 1)
      return error(Code::kInvalid, "--html shows one problem shape; give one --shape");
    if (is_replay() && !shapes_.empty())
      return error(Code::kInvalid, "a replay was recorded for one shape; leave out --shape");
    if (backlog_ < 0) return error(Code::kInvalid, "--backlog takes 1 or more, not {}", backlog_);
    if (missing_ && (is_replay() || backlog_ > 0))
      return error(Code::kInvalid,
                   "--missing looks shapes up in the cache; leave out --backlog and a replay");
    PURLIN_TRY(shared_.check(!spec_.empty() || !shapes_.empty() || backlog_ > 0 || no_store_ ||
                             is_replay()));
    if (backlog_ > 0 && (is_replay() || !spec_.empty() || !shapes_.empty() || no_store_))
      return error(Code::kInvalid,
                   "--backlog brings its specs and shapes and stores its winners; leave out the "
                   "spec, --shape, --no-store and a replay");
    if (!is_replay() && backlog_ == 0 && shared_.tasks == 0 && spec_.empty())
      return error(Code::kInvalid,
                   "no spec given; use: purlin tune SPEC, or --device replay:FILE without one");
    return Status::ok();
  }

  std::string cache_directory() const {
    return cache_.directory.empty() ? cache::Store::default_directory() : cache_.directory;
  }

  // 3: no task was free. A task whose shape had a winner is done without an outcome.
  int without_outcomes() const {
    if (taken_ == 0) return kExitInconclusive;
    return failed_ > 0 ? kExitError : kExitOk;
  }

  // Tasks of the shared backlog, under leases. A task whose lease is lost does not count.
  Result<std::vector<Outcome>> tune_leases(Context& context) {
    PURLIN_ASSIGN(const auto device, gpu::open_device(device_names().front()));
    PURLIN_ASSIGN(SharedTasks tasks,
                  SharedTasks::open(shared_, cache_directory(), device->info(), context.log));
    const bool missing = missing_;
    std::vector<Outcome> outcomes;
    for (int left = shared_.tasks; left > 0 && !Interrupt::requested(); --left) {
      PURLIN_ASSIGN(std::optional<SharedTasks::Held> held, tasks.next(context.log));
      if (!held) break;
      ++taken_;
      spec_ = held->task.spec;
      shapes_ = {held->task.key.shape};
      missing_ = missing || held->task.key.kind == "tune";
      request_.opened.stop = &held->keeper->stop();
      Result<std::vector<Outcome>> made = tune_spec(context);
      request_.opened.stop = &Interrupt::flag();
      const Status ended = held->end(
          made.status(), made.is_ok() && !made->empty() ? &made->back().document : nullptr,
          made.is_ok() && !made->empty() && made->back().stopped);
      if (!ended.is_ok()) context.log.warn("{}", ended.message());
      if (!made.is_ok()) {
        ++failed_;
        context.log.warn("{} {}: {}", held->task.key.kernel, held->task.key.shape,
                         made.status().message());
        continue;
      }
      for (Outcome& outcome : *made) outcomes.push_back(std::move(outcome));
    }
    if (taken_ == 0)
      context.log.info("no free task for {} in {}", device->info().name, tasks.name());
    return outcomes;
  }

  Result<std::vector<Outcome>> tune_replay(Context& context) {
    std::optional<KernelSpec> spec;
    if (!spec_.empty()) {
      PURLIN_ASSIGN(spec, load_spec(spec_, SpecUse::kSpace));
    }
    const std::string path = device_.substr(device_.find(':') + 1);
    PURLIN_ASSIGN(const std::unique_ptr<tune::Subject> subject,
                  tune::open_recording(path, spec, context.log));
    Progress progress(stderr, context.error_terminal, !context.quiet);
    PURLIN_ASSIGN(Outcome outcome, tune_one(context, *subject, progress, 0));
    return std::vector<Outcome>{std::move(outcome)};
  }

  Result<cache::Lookup> look_up(const KernelSpec& spec, const ProblemShape& problem,
                                const DeviceInfo& device) const {
    CacheFlag flag = cache_;
    flag.directory = cache_directory();
    PURLIN_ASSIGN(const cache::Layers layers, flag.open_layers());
    PURLIN_ASSIGN(const cache::CacheKey key, cache::make_key(spec, problem, device, cold_));
    return layers.get(key, problem, {});
  }

  // The config of the exact entry, which the finals can confirm instead of a search. Sessions that
  // ask for something else than the fastest config of the cache search.
  std::optional<Config> known_winner(const tune::Subject& subject) const {
    const bool asks_for_a_search = fresh_ || backlog_ > 0 || no_store_ || strategy_ != "auto" ||
                                   finals_ == 0 || !limits_.empty() || regret_shapes_ > 0 ||
                                   !inputs_.empty() ||
                                   request_.opened.objective != Objective::kTime;
    if (asks_for_a_search || !subject.default_config || subject.spec->library) return std::nullopt;
    const Result<cache::Lookup> found = look_up(*subject.spec, subject.problem, subject.device);
    if (!found.is_ok() || found->outcome != cache::Outcome::kExact) return std::nullopt;
    return found->entry->config;
  }

  Result<std::vector<ProblemShape>> without_winner(
      Context& context, const KernelSpec& spec, const std::vector<ProblemShape>& problems) const {
    PURLIN_ASSIGN(const DeviceInfo device, tune::device_for_spec(spec, device_names().front()));
    std::vector<ProblemShape> missing;
    for (const ProblemShape& problem : problems) {
      PURLIN_ASSIGN(const cache::Lookup found, look_up(spec, problem, device));
      if (!found.entry) missing.push_back(problem);
      context.log.info("{}{}{}: {}{}", spec.name, problem.empty() ? "" : " ", problem.text(),
                       cache::outcome_name(found.outcome),
                       found.entry ? "; nothing is measured" : "");
    }
    return missing;
  }

  Result<std::vector<Outcome>> tune_spec(Context& context) {
    PURLIN_ASSIGN(const KernelSpec spec, load_spec(spec_));
    std::vector<ProblemShape> problems;
    for (const std::string& text : shapes_.empty() ? std::vector<std::string>{""} : shapes_) {
      PURLIN_ASSIGN(ProblemShape problem, resolve_shape(spec, text));
      problems.push_back(std::move(problem));
    }
    std::vector<Outcome> outcomes;
    if (missing_) {
      PURLIN_ASSIGN(problems, without_winner(context, spec, problems));
    }
    for (const ProblemShape& problem : problems) {
      Result<Outcome> outcome = tune_shape(context, spec, problem);
      if (!outcome.is_ok()) {
        if (outcomes.empty()) return outcome.status();
        // The shapes before this one were tuned, so their results are printed.
        end_with(outcomes.back(), outcome.status().with_context(problem.text()));
        break;
      }
      outcomes.push_back(std::move(outcome).value());
      if (outcomes.back().stopped || !outcomes.back().status.is_ok()) break;
    }
    return outcomes;
  }

  // The tasks of the backlog for this device. The task with the largest saving of GPU time comes
  // first.
  Result<std::vector<Outcome>> tune_backlog(Context& context) {
    const std::string directory = cache_directory();
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
      // A task of the work list ends by itself once its entry exists.
      if (outcomes.back().status.is_ok() && !outcomes.back().stopped)
        static_cast<void>(backlog::finish(directory, task.id()));
    }
    if (outcomes.empty())
      context.log.info("nothing to tune on {}: `purlin backlog` lists all tasks",
                       device->info().name);
    return outcomes;
  }

  Result<Outcome> tune_shape(Context& context, const KernelSpec& spec,
                             const ProblemShape& problem) {
    const std::int64_t start_ns = system_clock().monotonic_ns();
    Progress progress(stderr, context.error_terminal, !context.quiet);  // outlives the workers
    tune::SubjectOptions opened = request_.opened;
    opened.on_phase = [&](std::string_view phase) {
      progress.phase(
          fmt::format("{}{}{}  {}", spec.name, problem.empty() ? "" : " ", problem.text(), phase));
    };
    PURLIN_ASSIGN(const std::unique_ptr<tune::Subject> subject,
                  tune::open_kernel(spec, problem, opened, context.log));
    progress.clear();
    PURLIN_ASSIGN(const guard::Snapshot snapshot, guard::take_snapshot(*subject->spec));
    request_.journal.files.clear();
    for (const guard::Snapshot::File& file : snapshot.files)
      request_.journal.files.push_back(file.text);
    request_.known = known_winner(*subject);
    const double spent_s = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
    return tune_one(context, *subject, progress, spent_s);
  }

  // `spent_s`: of a budget in seconds, by the start of the subject.
  Result<Outcome> tune_one(Context& context, const tune::Subject& subject, Progress& progress,
                           double spent_s) {
    std::vector<DeviceInfo> devices;
    if (subject.executes())
      for (const tune::Evaluator* each : subject.evaluators) devices.push_back(each->device());
    TuneWatch watch(devices);
    std::optional<guard::Conditions> conditions;
    std::size_t total = subject.space.size();
    if (request_.budget.evaluations > 0) total = std::min(request_.budget.evaluations, total);
    tune::TuneRequest request = request_;
    request.spent_s = spent_s;
    bool counters_reported = false;
    int round = 0;
    request.on_progress = [&](const SessionState& state) {
      if (const std::string problem = subject.evaluators.front()->counters_problem();
          !counters_reported && !problem.empty()) {
        counters_reported = true;
        progress.clear();
        context.log.info("no hardware counters: {}; the search learns from the compiled kernels",
                         problem);
      }
      const std::string line = progress_line(state, request.budget, total);
      // The first evaluation and the finals begin a phase.
      if (state.last == nullptr || (state.finals_round > 0 && round == 0))
        progress.phase(line);
      else
        progress.update(line);
      round = state.finals_round;
      write_state(state, total);
    };
    request.on_session_end = [&] {
      progress.clear();
      conditions = watch.end(context.log);
    };
    PURLIN_ASSIGN(const tune::TuneOutcome made, tune::tune_kernel(subject, request, context.log));
    const tune::ReportInput input = tune::report_input(subject, request, made);
    Outcome outcome;
    outcome.status = made.status();
    outcome.worked = made.worked();
    outcome.stopped = made.stopped();
    outcome.document = report_document(input, environment_of(subject.device));
    if (!made.confirmations.empty())
      outcome.document.set("confirmations", tune::to_json(made.confirmations));
    if (conditions) outcome.document.set("conditions", guard::to_json(*conditions));
    if (!made.bucket_regret.empty()) {
      Json ratios = Json::object();
      for (const auto& [shape, ratio] : made.bucket_regret) ratios.set(shape.text(), ratio);
      outcome.document.set("bucket_regret", std::move(ratios));
    }
    outcome.text = report_text(input, context.terminal, static_cast<std::size_t>(top_));
    return outcome;
  }

  // One line for each config that begins or ends.
  void write_state(const SessionState& state, std::size_t total) {
    if (!events_.on()) return;
    Json last, best;
    if (state.last != nullptr)
      last = Json::object({{"config", state.last->config.text()},
                           {"status", status_name(state.last->status)},
                           {"time_ms", state.last->ok() ? Json(state.last->time_ms) : Json()}});
    if (state.best != nullptr) best = state.best->time_ms;
    events_.write("progress", {{"done", state.done},
                               {"at_most", total},
                               {"finals_round", state.finals_round},
                               {"best_ms", std::move(best)},
                               {"last", std::move(last)}});
  }

  Events events_;
  std::string spec_, device_ = "auto", strategy_ = "auto", budget_ = "200", timeout_ = "60s";
  std::string session_, output_, html_, inputs_, objective_name_ = "time", regret_budget_ = "50";
  std::vector<std::string> shapes_, limits_, transfer_;
  CacheFlag cache_;
  SharedTasksFlags shared_;
  int seed_ = 1, samples_ = measure::Policy{}.max_samples, finals_ = tune::FinalsOptions{}.rounds;
  int taken_ = 0, failed_ = 0;  // tasks of the shared backlog
  int jobs_ = -1, top_ = 10, backlog_ = 0, regret_shapes_ = 0;
  bool cold_ = false, fresh_ = false, no_store_ = false, json_ = false, missing_ = false,
       no_transfer_ = false;
  tune::TuneRequest request_;  // of all shapes
};

}  // namespace

std::unique_ptr<Command> make_tune_command() { return std::make_unique<TuneCommand>(); }

}  // namespace purlin::cli
