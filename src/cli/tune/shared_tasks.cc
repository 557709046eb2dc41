// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/shared_tasks.h"

#include "analyze/kernel_name/kernel_name.h"
#include "backlog/backlog.h"
#include "backlog/file.h"
#include "backlog/profile_tasks.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/tune/kernels_directory.h"
#include "cli/tune/spec_files.h"

#include <algorithm>
#include <unistd.h>

namespace purlin::cli {
namespace {

constexpr double kMinLeaseS = 10, kMaxLeaseS = 24 * 3600.0;

// What this machine's own backlog lists joins the shared one.
Status share_own_tasks(const std::string& cache_directory, Log& log) {
  PURLIN_ASSIGN(const std::vector<backlog::RankedTask> own, backlog::read(cache_directory, log));
  std::vector<backlog::Leases::Put> puts;
  for (const backlog::RankedTask& ranked : own)
    if (ranked.task.key.kind != "validate")
      puts.push_back({ranked, ranked.task.key.kind == "retune"});
  if (puts.empty()) return Status::ok();
  PURLIN_ASSIGN(backlog::Leases leases, backlog::Leases::open(fleet::lease_path(cache_directory)));
  return leases.put(puts, system_clock().wall_ns());
}

}  // namespace

Result<backlog::Task> find_spec(const backlog::Task& task, const DeviceInfo& device,
                                const std::vector<KernelSpec>& specs, const cache::Store& store) {
  if (!task.spec.empty() && file_exists(task.spec)) return task;
  for (const KernelSpec& spec : specs) {
    if (spec.name != task.key.kernel) continue;
    backlog::Task found = task;
    found.spec = absolute_path(spec.file);
    return found;
  }
  const analyze::KernelName name = analyze::describe_kernel(task.key.kernel);
  backlog::ProfiledKernel kernel;
  kernel.label = name.brief, kernel.full = name.full, kernel.brief = name.brief;
  kernel.op_class = name.op_class, kernel.family = name.family;
  kernel.shape = task.key.shape;
  kernel.dtype = task.dtype.empty() ? std::string(name.dtype) : task.dtype;
  kernel.device = device.name;
  kernel.launches = static_cast<double>(task.launches);
  kernel.total_ns = kernel.launches * task.launch_ns;
  const DeviceInfo devices[] = {device};
  const backlog::ProfiledKernel kernels[] = {kernel};
  const backlog::ProfileTasks made = backlog::profile_tasks(kernels, devices, specs, store);
  if (made.tasks.empty())
    return Status(Code::kNotFound, made.left_out.empty() ? "no spec" : made.left_out.front());
  backlog::Task found = task;
  found.spec = made.tasks.front().spec;
  found.key.shape = made.tasks.front().key.shape;
  return found;
}

void SharedTasksFlags::declare(Flags& flags) {
  flags.option("--from-backlog", tasks,
               {"Tune up to N tasks of the shared backlog",
                "Each task is held under a lease that is renewed. Many machines can share one "
                "backlog. The backlog is that of --server, else the file leases.db of the cache."});
  flags.option("--server", server, "Purlin server with the shared backlog", "URL");
  flags.list("--specs", specs,
             {"Specs for --from-backlog, or folders of specs; repeatable",
              "Without it, the sample kernels are used."},
             "SPEC");
  flags.option("--lease", lease, "Time until the task of a dead worker is free", "TIME");
}

Status SharedTasksFlags::check(bool others) const {
  if (tasks < 0) return error(Code::kInvalid, "--from-backlog takes 1 or more, not {}", tasks);
  if (tasks == 0 && !server.empty())
    return error(Code::kInvalid, "--server is for --from-backlog; add --from-backlog 1");
  if (tasks > 0 && others)
    return error(Code::kInvalid,
                 "--from-backlog brings its shapes and stores its winners; leave out the spec, "
                 "--shape, --backlog, --no-store and a replay");
  const std::optional<double> seconds = parse_duration_s(lease);
  if (!seconds || *seconds < kMinLeaseS || *seconds > kMaxLeaseS)
    return error(Code::kInvalid, "--lease takes a time from 10s to 24h, not '{}'", lease);
  return Status::ok();
}

std::string worker_name() {
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return fmt::format("{}:{}", host, ::getpid());
}

Result<SharedTasks> SharedTasks::open(const SharedTasksFlags& flags,
                                      const std::string& cache_directory, const DeviceInfo& device,
                                      Log& log) {
  SharedTasks tasks;
  tasks.cache_directory_ = cache_directory;
  tasks.device_ = device;
  tasks.seconds_ = parse_duration_s(flags.lease).value_or(120);
  std::vector<std::string> places = flags.specs;
  if (places.empty()) {
    PURLIN_ASSIGN(std::string samples, kernels_directory());
    places.push_back(std::move(samples));
  }
  PURLIN_ASSIGN(tasks.specs_, load_specs(places, log));
  if (flags.server.empty()) {
    PURLIN_TRY(share_own_tasks(cache_directory, log));
    PURLIN_ASSIGN(tasks.source_,
                  fleet::open_lease_file(fleet::lease_path(cache_directory), system_clock()));
  } else {
    PURLIN_ASSIGN(auto client, fleet::ServerClient::open(flags.server, system_clock()));
    PURLIN_ASSIGN(tasks.source_, fleet::open_lease_server(std::move(client)));
  }
  return tasks;
}

Result<std::optional<SharedTasks::Held>> SharedTasks::next(Log& log) {
  for (;;) {
    PURLIN_ASSIGN(const std::optional<backlog::Lease> lease,
                  source_->take(worker_name(), {device_.name}, seconds_));
    if (!lease) return std::optional<Held>();
    Held held;
    held.id = lease->ranked.task.id();
    held.cache_directory = cache_directory_;
    held.keeper = std::make_unique<LeaseKeeper>(*source_, *lease, seconds_, log);
    PURLIN_ASSIGN(const cache::Store store, cache::Store::open(cache_directory_));
    Result<backlog::Task> found = find_spec(lease->ranked.task, device_, specs_, store);
    if (found.is_ok()) {
      held.task = std::move(found).value();
      log.info("task {}: {} {}", held.task.id(), held.task.key.kernel, held.task.key.shape);
      return std::optional<Held>(std::move(held));
    }
    log.warn("task {}: {}", lease->ranked.task.id(), found.status().message());
    PURLIN_TRY(held.keeper->end(fleet::TaskEnd::kFailed, found.status().message()));
  }
}

Status SharedTasks::Held::end(const Status& status, const Json* document, bool stopped) {
  if (keeper->lost()) return keeper->end(fleet::TaskEnd::kGivenBack, "lost");
  if (stopped || status.code() == Code::kCancelled)
    return keeper->end(fleet::TaskEnd::kGivenBack, "the worker stopped");
  if (!status.is_ok()) return keeper->end(fleet::TaskEnd::kFailed, status.message());
  std::string outcome = "a winner was there already";
  if (document != nullptr) {
    if ((*document)["best"].is_null())
      return keeper->end(fleet::TaskEnd::kFailed, "no config worked");
    const double speedup = (*document)["speedup_over_default"].as_double();
    outcome = speedup > 0 ? fmt::format("{:.2f}x of the default", speedup) : "tuned";
  }
  PURLIN_TRY(keeper->end(fleet::TaskEnd::kDone, outcome));
  // It may be queued on this machine, too.
  static_cast<void>(backlog::finish(cache_directory, id));
  return Status::ok();
}

}  // namespace purlin::cli
