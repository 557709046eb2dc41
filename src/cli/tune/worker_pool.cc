// SPDX-License-Identifier: Apache-2.0
// `purlin worker-pool`: tunes the shared backlog on devices that are idle, and leaves at once when
// a program needs one. Each device has one child, `purlin tune --from-backlog 1`.
#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "cli/tune/idle_device.h"
#include "cli/tune/shared_tasks.h"
#include "cli/tune/spec_files.h"
#include "cli/tune/tuning_hours.h"
#include "fleet/client/server_client.h"
#include "gpu/registry.h"
#include "tune/session/budget.h"

#include <csignal>
#include <optional>

namespace purlin::cli {
namespace {

constexpr std::int64_t kPoolLookNs = 200'000'000;
constexpr double kIdleLookS = 2, kAccountS = 10, kStopS = 60, kPushS = 120;

double seconds_since(std::int64_t start_ns) {
  return static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
}

// A device of the pool, and the child that tunes on it.
struct PoolSlot {
  std::string name;
  IdleDevice idle;
  std::optional<Process> child;
  std::int64_t accounted_ns = 0, looked_ns = 0, next_ns = 0, stopping_ns = 0;
  bool drained = false;  // the last child found no task
  std::string said;      // the last reason, so that each is logged once
};

class WorkerPool : public Command {
 public:
  std::string_view name() const override { return "worker-pool"; }
  std::string_view summary() const override { return "Tune the shared backlog on idle devices"; }
  VerbText text() const override {
    return {.description =
                "Takes tasks of the shared backlog under leases and tunes them, one at a time on "
                "each device. A device with another compute process is not idle: its task is "
                "given back and goes on elsewhere or later.\n\nGPU time spent on tuning is counted "
                "by device and UTC day and bounded by --max-per-day. SIGTERM and Ctrl-C give the "
                "tasks back.",
            .more =
                "A GPU is idle if NVML lists no other compute process. For other devices, and for "
                "other rules, --idle-command decides. Winners go to the config cache of "
                "--cache, and from there to the shared cache of --push.",
            .examples = {{"purlin worker-pool --server http://purlin:8717 --device cuda:0,cuda:1"},
                         {"purlin worker-pool --drain --device cuda:0",
                          "End when no task is free: for a Slurm job array or a Kubernetes Job"}},
            .exit_codes = {{0, "Stopped, or drained"}, {2, "Error"}},
            .see = {"docs/guide/deploy.md", "docs/formats/backlog.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("--device", device_, "Devices of the pool, such as cuda:0,cuda:1", "DEVICE");
    flags.option("--server", server_, "Purlin server with the shared backlog", "URL");
    flags.list("--specs", specs_, "Specs, or folders of specs; repeatable", "SPEC");
    flags.option("--cache", cache_, "Directory of the config cache", "DIR");
    flags.option("--budget", budget_, "Budget of one task: evaluations, time or both", "BUDGET");
    flags.option("--lease", lease_, "Time until the task of a dead worker is free", "TIME");
    flags.option("--max-per-day", most_, "GPU time for tuning by device and UTC day", "TIME");
    flags.option("--hours", hours_, "File that counts that time (default: in the state folder)",
                 "FILE");
    flags.option("--idle-command", idle_,
                 {"Shell command that decides if a device is idle",
                  "Exit status 0 means idle. The variable PURLIN_DEVICE has the device."},
                 "CMD");
    flags.option("--poll", poll_, "Pause when no task is free or a device is in use", "TIME");
    flags.option("--push", push_,
                 {"Shared cache that gets each winner", "As for `purlin cache push`."}, "TARGET");
    flags.flag("--drain", drain_, "End when no task is free");
  }

  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const double most_s, duration_of("--max-per-day", most_));
    PURLIN_ASSIGN(const double poll_s, duration_of("--poll", poll_));
    PURLIN_TRY(check_tasks(context.log));
    PURLIN_ASSIGN(std::vector<PoolSlot> slots, open_slots());
    const std::string path =
        hours_.empty() ? join_path(user_state_directory(), "tuning-hours.json") : hours_;
    PURLIN_TRY(make_directories(parent_path(absolute_path(path))));
    PURLIN_ASSIGN(TuningHours hours, TuningHours::open(path, system_clock()));
    const Interrupt interrupt;
    for (;;) {
      bool busy = false, drained = true;
      for (PoolSlot& slot : slots) {
        PURLIN_TRY(tend(context, slot, hours, most_s, poll_s));
        busy |= slot.child.has_value();
        drained &= slot.drained;
      }
      if (!busy && (Interrupt::requested() || (drain_ && drained))) return kExitOk;
      system_clock().sleep_ns(kPoolLookNs);
    }
  }

 private:
  static Result<double> duration_of(std::string_view flag, const std::string& text) {
    const std::optional<double> seconds = parse_duration_s(text);
    if (seconds && *seconds > 0) return *seconds;
    return error(Code::kInvalid, "{} takes a time such as 30s or 4h, not '{}'", flag, text);
  }

  // What each task would fail with, for ever.
  Status check_tasks(Log& log) const {
    PURLIN_TRY(tune::parse_budget(budget_).status());
    SharedTasksFlags tasks;
    tasks.tasks = 1;
    tasks.lease = lease_;
    PURLIN_TRY(tasks.check(false));
    if (!server_.empty()) PURLIN_TRY(fleet::ServerClient::open(server_, system_clock()).status());
    return specs_.empty() ? Status::ok() : load_specs(specs_, log).status();
  }

  Result<std::vector<PoolSlot>> open_slots() const {
    std::vector<PoolSlot> slots;
    for (const std::string& name : split(device_, ',')) {
      PURLIN_ASSIGN(const auto device, gpu::open_device(name));
      slots.push_back({name, IdleDevice(name, device->info(), idle_), {}, 0, 0, 0, 0, false, ""});
    }
    return slots;
  }

  static void say(Context& context, PoolSlot& slot, const std::string& text) {
    if (slot.said != text) context.log.info("{}: {}", slot.name, text);
    slot.said = text;
  }

  Status tend(Context& context, PoolSlot& slot, TuningHours& hours, double most_s,
              double poll_s) const {
    if (slot.child) return tend_child(context, slot, hours, most_s, poll_s);
    const std::int64_t now_ns = system_clock().monotonic_ns();
    if (Interrupt::requested() || now_ns < slot.next_ns || (drain_ && slot.drained))
      return Status::ok();
    slot.next_ns = now_ns + static_cast<std::int64_t>(poll_s * 1e9);
    if (hours.spent_s(slot.name) >= most_s) {
      say(context, slot, "the time for tuning of this day is spent");
      slot.drained = true;
      return Status::ok();
    }
    slot.drained = false;
    if (const IdleDevice::Answer answer = slot.idle.look({}); !answer.idle) {
      say(context, slot, "not idle: " + answer.why);
      return Status::ok();
    }
    say(context, slot, "idle");
    PURLIN_ASSIGN(slot.child, start(slot.name));
    slot.accounted_ns = slot.looked_ns = now_ns;
    slot.stopping_ns = 0;
    return Status::ok();
  }

  Result<std::optional<Process>> start(const std::string& device) const {
    Process::Options options;
    options.argv = {"/proc/self/exe", "tune",     "--from-backlog", "1",       "--device",
                    device,           "--budget", budget_,          "--lease", lease_};
    const auto add = [&](const char* flag, const std::string& value) {
      if (!value.empty()) options.argv.insert(options.argv.end(), {flag, value});
    };
    add("--server", server_);
    add("--cache", cache_);
    for (const std::string& place : specs_) add("--specs", place);
    // Its data goes to the log of the pool.
    options.out = Process::Stream::kToStderr;
    PURLIN_ASSIGN(Process process, Process::start(options));
    return std::optional<Process>(std::move(process));
  }

  // The winner stays in the cache where it fails: the next push takes it along.
  void push(Context& context) const {
    Process::Options options;
    options.argv = {"/proc/self/exe", "cache", "push", push_};
    if (!cache_.empty()) options.argv.insert(options.argv.end(), {"--cache", cache_});
    const Result<Captured> ran = run_captured(std::move(options), kPushS);
    if (!ran.is_ok())
      context.log.warn("push: {}", ran.status().message());
    else if (!ran->exit.ok())
      context.log.warn("the winners are not pushed to {}: {}", push_, trim(ran->err));
  }

  static Status account(PoolSlot& slot, TuningHours& hours) {
    const double seconds = seconds_since(slot.accounted_ns);
    slot.accounted_ns = system_clock().monotonic_ns();
    return hours.add(slot.name, seconds);
  }

  static void stop(Context& context, PoolSlot& slot, const std::string& why) {
    if (slot.stopping_ns == 0) {
      say(context, slot, why + ": the task is given back");
      slot.stopping_ns = system_clock().monotonic_ns();
      ::kill(slot.child->pid(), SIGTERM);  // it alone: it ends its own workers
    } else if (seconds_since(slot.stopping_ns) > kStopS) {
      slot.child->kill(SIGKILL);
    }
  }

  Status tend_child(Context& context, PoolSlot& slot, TuningHours& hours, double most_s,
                    double poll_s) const {
    if (const std::optional<Exit> exit = slot.child->wait(0)) {
      PURLIN_TRY(account(slot, hours));
      slot.child.reset();
      slot.drained = exit->code == kExitInconclusive && slot.stopping_ns == 0;
      // The next task follows at once, unless there was none, or the device is needed.
      const bool pause = !exit->ok() || slot.stopping_ns != 0;
      slot.next_ns =
          system_clock().monotonic_ns() + (pause ? static_cast<std::int64_t>(poll_s * 1e9) : 0);
      if (exit->ok() && !push_.empty()) push(context);
      if (!exit->ok() && exit->code != kExitInconclusive)
        context.log.warn("{}: tuning ended with {}", slot.name, exit->text());
      return Status::ok();
    }
    if (seconds_since(slot.accounted_ns) >= kAccountS) PURLIN_TRY(account(slot, hours));
    if (Interrupt::requested()) {
      stop(context, slot, "stopping");
    } else if (hours.spent_s(slot.name) + seconds_since(slot.accounted_ns) >= most_s) {
      stop(context, slot, "the time for tuning of this day is spent");
    } else if (seconds_since(slot.looked_ns) >= kIdleLookS) {
      slot.looked_ns = system_clock().monotonic_ns();
      const IdleDevice::Answer answer = slot.idle.look(processes_below(slot.child->pid()));
      if (!answer.idle) stop(context, slot, answer.why);
    }
    if (slot.stopping_ns != 0) stop(context, slot, "");
    return Status::ok();
  }

  std::string device_ = "auto", server_, cache_, budget_ = "600s", lease_ = "120s", most_ = "4h";
  std::string hours_, idle_, push_, poll_ = "60s";
  std::vector<std::string> specs_;
  bool drain_ = false;
};

}  // namespace

std::unique_ptr<Command> make_worker_pool_command() { return std::make_unique<WorkerPool>(); }

}  // namespace purlin::cli
