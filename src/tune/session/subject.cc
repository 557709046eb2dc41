// SPDX-License-Identifier: Apache-2.0
#include "tune/session/subject.h"

#include "base/files.h"
#include "base/time.h"
#include "gpu/library_kernel.h"
#include "gpu/registry.h"
#include "tune/space/build.h"
#include "tune/space/library_space.h"

#include <algorithm>

namespace purlin::tune {
namespace {

double seconds_since(std::int64_t start_ns) {
  return static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
}

Status parse_limits(const SubjectOptions& options, Subject& subject) {
  for (const std::string& text : options.limits) {
    PURLIN_ASSIGN(SpecExpression limit, parse_limit(*subject.spec, text));
    subject.limits.push_back(std::move(limit));
  }
  return Status::ok();
}

Status check_energy(const SubjectOptions& options, const WorkerPool& pool, Subject& subject) {
  const bool by_objective = options.objective != Objective::kTime;
  subject.energy =
      by_objective || needs_energy(subject.limits) || needs_energy(subject.spec->limits);
  if (!subject.energy || pool.energy_problem().empty()) return Status::ok();
  return error(Code::kUnavailable, "{} takes the energy, which cannot be measured here: {}",
               by_objective ? fmt::format("--objective {}", objective_name(options.objective))
                            : "a limit on energy_mj or power_w",
               pool.energy_problem());
}

// The space of a library's operation, as the library reports it.
Status list_library(WorkerPool& pool, Subject& subject, Log& log) {
  PURLIN_ASSIGN(const gpu::LibrarySpace found, pool.library_space());
  PURLIN_ASSIGN(LibraryChoices choices, library_choices(*subject.spec, found));
  log.info("{} has {}{} algorithms for {} ({} candidates checked in {:.2f} s)", found.version,
           found.complete ? "" : "at least ", choices.space.size(), subject.problem.text(),
           found.checked, found.seconds);
  if (found.not_rebuilt > 0)
    log.warn(
        "{} of {}'s own proposals cannot be rebuilt from their attributes; the cache keeps what "
        "the attributes describe",
        found.not_rebuilt, found.version);
  subject.space = std::move(choices.space);
  subject.default_config = std::move(choices.default_config);
  subject.seeds = std::move(choices.proposals);
  subject.device.toolkit = found.version;
  return Status::ok();
}

// Gains are stated against it, so a shape at which the declared one cannot run has another.
void set_default(const KernelSpec& spec, Log& log, Subject& subject) {
  subject.default_config = default_config(spec, subject.problem, subject.device);
  if (*subject.default_config == default_config(spec)) return;
  log.warn(
      "{} at {}: the default config breaks a constraint or a limit of the device; {} takes its "
      "place",
      spec.name, subject.problem.text(), subject.default_config->text());
}

// The energy and the facts of a binary are those of launches, which a command makes by itself.
Result<std::unique_ptr<Subject>> open_commands(const KernelSpec& spec, const ProblemShape& problem,
                                               const SubjectOptions& options, Log& log) {
  if (!options.limits.empty() || options.objective != Objective::kTime)
    return error(Code::kInvalid,
                 "{}: of a command, the time is all that is known; leave out "
                 "--limit and --objective",
                 spec.file);
  auto subject = std::make_unique<Subject>();
  subject->spec = spec;
  subject->problem = problem;
  subject->name = spec.name;
  if (options.devices.size() > 1)
    return error(Code::kInvalid,
                 "{}: Purlin does not pass the device to commands, so they are tuned on one; name "
                 "one --device",
                 spec.file);
  PURLIN_ASSIGN(subject->device, device_for_spec(spec, options.devices.front()));
  const int builders = options.compilers < 0 ? default_compilers() : options.compilers;
  PURLIN_ASSIGN(subject->commands,
                CommandEvaluator::start(spec, problem, subject->device,
                                        {builders, options.timeout_s, options.stop}));
  subject->evaluators = {subject->commands.get()};
  set_default(spec, log, *subject);
  const std::int64_t start_ns = system_clock().monotonic_ns();
  const std::atomic<bool>* stop = options.stop;
  PURLIN_ASSIGN(subject->space, build_space(spec, problem, subject->device, {}, [stop](double) {
                  return stop == nullptr || !stop->load();
                }));
  subject->space_s = seconds_since(start_ns);
  return subject;
}

Status start_pools(const measure::WorkerSetup& setup, const SubjectOptions& options,
                   Subject& subject) {
  const int compilers = subject.spec->library   ? 0  // nothing is compiled
                        : options.compilers < 0 ? default_compilers()
                                                : options.compilers;
  PURLIN_ASSIGN(std::unique_ptr<WorkerPool> first,
                WorkerPool::start(setup, {compilers, options.timeout_s, options.stop}));
  subject.pools.push_back(std::move(first));
  for (std::size_t i = 1; i < options.devices.size(); ++i) {
    measure::WorkerSetup other = setup;
    other.device = options.devices[i];
    PURLIN_ASSIGN(auto started, WorkerPool::start_beside(*subject.pools.front(), other));
    subject.pools.push_back(std::move(started));
  }
  for (const auto& pool : subject.pools) subject.evaluators.push_back(pool.get());
  return Status::ok();
}

}  // namespace

Result<DeviceInfo> device_for_spec(const KernelSpec& spec, const std::string& name) {
  if (spec.command && spec.command->on_host) {
    if (name == "auto" || name == "host") return host_device();
    return error(Code::kInvalid,
                 "{}: its commands run on the host (device = \"host\"); leave out --device {}",
                 spec.file, name);
  }
  PURLIN_ASSIGN(const std::unique_ptr<gpu::Device> opened, gpu::open_device(name));
  return gpu::device_for(spec.library, opened->info());
}

Result<std::unique_ptr<Subject>> open_kernel(const KernelSpec& spec, const ProblemShape& problem,
                                             const SubjectOptions& options, Log& log) {
  if (spec.command) return open_commands(spec, problem, options, log);
  auto subject = std::make_unique<Subject>();
  subject->spec = spec;
  subject->problem = problem;
  subject->name = spec.name;
  PURLIN_TRY(parse_limits(options, *subject));  // before the reference, which may take long
  measure::WorkerSetup setup;
  setup.device = options.devices.front();
  setup.spec_path = spec.file;
  setup.problem = problem;
  setup.binary_cache = options.binary_cache;
  if (options.reference_s > 0)
    setup.reference_timeout_s = std::min(setup.reference_timeout_s, options.reference_s);
  // Of several devices, each has its own thread.
  if (options.devices.size() == 1) setup.on_phase = options.on_phase;
  PURLIN_TRY(start_pools(setup, options, *subject));
  WorkerPool& pool = *subject->pools.front();
  subject->device = pool.device();
  PURLIN_TRY(check_energy(options, pool, *subject));
  const std::int64_t start_ns = system_clock().monotonic_ns();
  if (spec.library) {
    PURLIN_TRY(list_library(pool, *subject, log));
    setup.device = pool.device().id;
    setup.verify = false;
    subject->fresh = [setup, timeout_s = options.timeout_s,
                      stop = options.stop]() -> Result<std::unique_ptr<Evaluator>> {
      PURLIN_ASSIGN(auto started, WorkerPool::start(setup, {0, timeout_s, stop}));
      return std::unique_ptr<Evaluator>(std::move(started));
    };
  } else {
    set_default(spec, log, *subject);
    const std::atomic<bool>* stop = options.stop;
    if (options.on_phase) options.on_phase("builds the space");
    PURLIN_ASSIGN(subject->space, build_space(spec, problem, pool.device(), {}, [stop](double) {
                    return stop == nullptr || !stop->load();
                  }));
  }
  subject->space_s = seconds_since(start_ns);
  return subject;
}

Result<std::unique_ptr<Subject>> open_recording(const std::string& path,
                                                const std::optional<KernelSpec>& spec, Log& log) {
  PURLIN_ASSIGN(gpu::ReplaySpace read, gpu::ReplaySpace::read(path));
  if (const std::string& note = read.recording().note; !note.empty())
    log.warn("{}: {}", path, note);
  auto subject = std::make_unique<Subject>();
  subject->recording = std::make_unique<gpu::ReplayDevice>(std::move(read), path);
  const gpu::ReplayDevice& device = *subject->recording;
  subject->replay = std::make_unique<ReplayEvaluator>(device.space(), device.info());
  subject->evaluators = {subject->replay.get()};
  subject->device = device.info();
  const std::int64_t start_ns = system_clock().monotonic_ns();
  if (spec) {
    PURLIN_ASSIGN(RecordedSpace shared, space_of(device.space(), *spec));
    if (shared.not_recorded + shared.not_valid > 0)
      log.warn(
          "{} valid configs of {} are not recorded, {} recorded ones are not valid; "
          "the {} that are both are searched",
          shared.not_recorded, spec->file, shared.not_valid, shared.space.size());
    subject->space = std::move(shared.space);
    subject->name = spec->name;
  } else {
    PURLIN_ASSIGN(subject->space, space_of(device.space()));
    subject->name = device.space().kernel().empty() ? base_name(path) : device.space().kernel();
  }
  subject->space_s = seconds_since(start_ns);
  return subject;
}

}  // namespace purlin::tune
