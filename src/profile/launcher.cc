// SPDX-License-Identifier: Apache-2.0
#include "profile/launcher.h"

#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"
#include "base/time.h"
#include "profile/format/file.h"
#include "profile/jax/jax_programs.h"
#include "profile/privileged_watch.h"
#include "profile/run_facts.h"
#include "profile/spool.h"
#include "profile/spool_reaper.h"
#include "profile/stall_lines.h"
#include "profile/torch/daemon.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <errno.h>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace purlin::profile {
namespace {

constexpr const char* kCudaLibrary = "libpurlin_cuda.so";
constexpr const char* kOpenclLibrary = "libpurlin_opencl.so";
constexpr const char* kTorchHook = "python/sitecustomize.py";

// A signal handler can reach these only.
std::atomic<pid_t> running_child = 0;
std::atomic<int> early_signal = 0;  // came before the child's number was known

void hand_on(int signal) {
  early_signal = signal;
  const pid_t child = running_child;
  if (child > 0 && early_signal.exchange(0) != 0) ::kill(child, signal);
}

void already_delivered(int) {}  // the terminal sends these to the whole foreground group

// Installed before the child starts: handlers, unlike ignored signals, are reset by exec.
class SignalsOfTheChild {
 public:
  SignalsOfTheChild() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      struct sigaction action = {};
      const bool from_terminal = kSignals[i] == SIGINT || kSignals[i] == SIGQUIT;
      action.sa_handler = from_terminal ? &already_delivered : &hand_on;
      ::sigaction(kSignals[i], &action, &before_[i]);
    }
  }
  void child_is(pid_t child) {
    running_child = child;
    if (const int signal = early_signal.exchange(0); signal != 0) ::kill(child, signal);
  }
  ~SignalsOfTheChild() {
    running_child = 0;
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalsOfTheChild(const SignalsOfTheChild&) = delete;
  SignalsOfTheChild& operator=(const SignalsOfTheChild&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)];
};

// An installed tree has them in lib/purlin for each kind of library folder.
std::string library_place(const CaptureOptions& options) {
  if (!options.library_directory.empty()) return options.library_directory;
  return absolute_path(join_path(executable_directory(), "../lib/purlin"));
}

std::string find_library(const CaptureOptions& options, const char* name) {
  const std::string path = join_path(library_place(options), name);
  return file_exists(path) ? absolute_path(path) : "";
}

CoverageNote missing_library(const CaptureOptions& options, const char* name, const char* what) {
  return {
      "no_capture_library",
      fmt::format("{} is not captured: {} is not in {}; reinstall Purlin, or build it where the "
                  "headers are",
                  what, name, library_place(options)),
      0, 0};
}

// Nsight Compute starts no program that has CUDA_INJECTION64_PATH set, so it goes without: when it
// is what is run, and when it runs Purlin.
bool nsight_compute(const CaptureOptions& options) {
  if (!environment_variable("NV_COMPUTE_PROFILER_PERFWORKS_DIR").empty()) return true;
  if (options.command.empty()) return false;
  const std::string tool = base_name(options.command.front());
  return tool == "ncu" || tool == "nv-nsight-cu-cli";
}

const char* name_of(Choice ops) {
  return ops == Choice::kOn ? "on" : ops == Choice::kOff ? "off" : "auto";
}

// The name of the run for all its ranks, so that they choose alike.
std::string run_id() {
  if (std::string id = environment_variable("PURLIN_RUN_ID"); !id.empty()) return id;
  // A job has many runs, each a step of its.
  if (const std::string job = environment_variable("SLURM_JOB_ID"); !job.empty())
    return job + '.' + environment_variable("SLURM_STEP_ID");
  // torchrun calls each run "none" by default.
  for (const char* name :
       {"TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID", "OMPI_MCA_ess_base_jobid"})
    if (std::string id = environment_variable(name); !id.empty() && id != "none") return id;
  return fmt::format("{}-{}", ::getpid(), system_clock().monotonic_ns());
}

// What the program's environment gets. Settings of the user for other tools stay unchanged.
std::map<std::string, std::string> injection(const CaptureOptions& options,
                                             const std::string& spool,
                                             std::vector<CoverageNote>& notes) {
  std::map<std::string, std::string> result = {
      {"PURLIN_SPOOL", spool},
      {"PURLIN_FULL", options.full ? "1" : "0"},
      {"PURLIN_WAITS", options.waits ? "1" : "0"},
      {"PURLIN_WINDOWS", name_of(options.windows)},
      {"PURLIN_COPIES", name_of(options.copies)},
      {"PURLIN_OPS", name_of(options.ops)},
      {"PURLIN_GEMM_SHAPES", options.gemm_shapes ? "1" : "0"},
      {"PURLIN_BUDGET", fmt::format("{:g}", options.budget)},
      {"PURLIN_IDLE", options.idle ? "1" : "0"},
      {"PURLIN_WINDOW",
       options.full_window_s > 0
           ? fmt::format("{:.0f}@{:.0f}", options.full_window_s * 1000, options.full_cell_s * 1000)
           : std::string()},
      {"PURLIN_SAMPLE", options.sample_auto ? "auto" : std::to_string(options.sample)},
      {"PURLIN_RUN_ID", run_id()},
      {"PURLIN_SEAL_PERIOD_MS",
       std::to_string(std::clamp(std::llround(options.seal_period_s * 1000), 10ll, 3'600'000ll))}};
  if (options.spool_file_bytes > 0)
    result["PURLIN_SPOOL_FILE_BYTES"] = std::to_string(options.spool_file_bytes);
  if (options.anonymous) result["PURLIN_ANONYMOUS"] = "1";
  if (!options.build.empty()) result["PURLIN_BUILD_LABEL"] = options.build;
  if (options.sample_auto) result["PURLIN_STATE"] = absolute_path(user_state_directory());
  result["PURLIN_STALLS"] = std::to_string(options.stall_period_log2);
  if (!options.counters.empty()) {
    result["PURLIN_COUNTERS"] = options.counters;
    result["PURLIN_COUNTERS_KERNEL"] = options.counter_kernels;
    result["PURLIN_COUNTERS_REPLAYS"] = std::to_string(options.counter_replays);
  }
  const std::string cuda = find_library(options, kCudaLibrary);
  const std::string taken = environment_variable("CUDA_INJECTION64_PATH");
  if (!taken.empty() && taken != cuda) {
    notes.push_back({"cuda_injection_taken",
                     fmt::format("CUDA is not captured: CUDA_INJECTION64_PATH is already set to {} "
                                 "(another profiler?); unset it to let Purlin see CUDA",
                                 taken),
                     0, 0});
  } else if (nsight_compute(options)) {
    notes.push_back({"nsight_compute",
                     "CUDA is not captured: Nsight Compute starts no program that another tool "
                     "injects itself into",
                     0, 0});
    if (!taken.empty()) result["CUDA_INJECTION64_PATH"] = "";
  } else if (cuda.empty()) {
    notes.push_back(missing_library(options, kCudaLibrary, "CUDA"));
  } else {
    result["CUDA_INJECTION64_PATH"] = cuda;
  }
  // Where CUDA is captured: ranges describe its launches.
  const auto injected = result.find("CUDA_INJECTION64_PATH");
  if (injected != result.end() && injected->second == cuda && options.ops != Choice::kOff) {
    const std::string reader = environment_variable("NVTX_INJECTION64_PATH");
    if (reader.empty() || reader == cuda) {
      result["NVTX_INJECTION64_PATH"] = cuda;
    } else if (options.ops == Choice::kOn) {
      notes.push_back({"nvtx_injection_taken",
                       fmt::format("ranges of NVTX are not seen: NVTX_INJECTION64_PATH is already "
                                   "set to {}; unset it to let Purlin see them",
                                   reader),
                       0, 0});
    }
  }
  const std::string opencl = find_library(options, kOpenclLibrary);
  if (opencl.empty()) {
    notes.push_back(missing_library(options, kOpenclLibrary, "OpenCL"));
  } else {
    const std::string layers = environment_variable("OPENCL_LAYERS");
    const std::vector<std::string> named = split(layers, ':');
    const bool there = std::find(named.begin(), named.end(), opencl) != named.end();
    result["OPENCL_LAYERS"] = there ? layers : layers.empty() ? opencl : layers + ":" + opencl;
  }
  const bool hooks = (options.torch.on && !options.torch.daemon) || options.torch.jax;
  const std::string hook = hooks ? find_library(options, kTorchHook) : std::string();
  if (hooks && hook.empty())
    notes.push_back(
        {"no_torch_hook",
         fmt::format("launches have no ops of PyTorch and JAX: {} is not in {}; reinstall "
                     "Purlin",
                     kTorchHook, library_place(options)),
         0, 0});
  result.merge(torch_variables(options.torch, parent_path(hook)));
  return result;
}

// The system starts such a program without its caller's libraries, and the capture libraries stay
// off in it: it has rights that its caller has not.
bool is_privileged_program(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  std::vector<std::string> places = {command.front()};
  if (command.front().find('/') == std::string::npos) {
    places.clear();
    for (const std::string& folder : split(environment_variable("PATH"), ':'))
      places.push_back(join_path(folder, command.front()));
  }
  for (const std::string& place : places) {
    struct stat info {};
    if (::stat(place.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    return ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::getuid()) ||
           ((info.st_mode & S_ISGID) != 0 && info.st_gid != ::getgid()) ||
           ::getxattr(place.c_str(), "security.capability", nullptr, 0) > 0;
  }
  return false;
}

bool names_a_privileged(const std::vector<CoverageNote>& notes) {
  return std::any_of(notes.begin(), notes.end(), [](const CoverageNote& note) {
    return note.cause == "privileged_program" || note.cause == "privileged_process";
  });
}

// Of processes that the command started: those with rights that it has not, and no record.
void add_privileged(std::map<pid_t, std::string> seen, const Profile& profile,
                    std::vector<CoverageNote>& notes) {
  for (const ProcessInfo& process : profile.processes) seen.erase(static_cast<pid_t>(process.pid));
  if (seen.empty()) return;
  std::set<std::string> names;
  for (const auto& [pid, name] : seen) names.insert(name);
  notes.push_back({"privileged_process",
                   fmt::format("not captured: {} of the command ({}) has rights that its caller "
                               "has not (setuid, setgid, file capabilities), and capture stays "
                               "off in it; profile a copy without these",
                               counted(seen.size(), "process"),
                               join(std::vector<std::string>(names.begin(), names.end()), ", ")),
                   0, 0});
}

CoverageNote privileged_program(const std::vector<std::string>& command) {
  return {"privileged_program",
          fmt::format("not captured: {} is setuid, setgid or has file capabilities, and capture "
                      "stays off in it; profile a copy without these",
                      command.front()),
          0, 0};
}

std::string quoted_command(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`&|;<>()*?") == word.npos;
    words.push_back(plain ? word : json_quote(word));
  }
  return join(words, " ");
}

// The notes explain an empty or incomplete report.
void explain(Profile& profile, double seal_period_s) {
  std::vector<CoverageNote>& notes = profile.coverage.notes;
  double cut = 0, running = 0;
  for (const ProcessInfo& process : profile.processes) {
    if (process.complete) continue;
    const bool alive = ::kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
    (alive ? running : cut) += 1;
  }
  if (cut > 0)
    notes.push_back(
        {"ended_without_seal",
         fmt::format("{} killed, ended by _exit, replaced by exec or out of disk space: launches "
                     "after the last seal, usually those of the last {:g} s, are missing",
                     counted(cut, "process"), seal_period_s),
         0, seal_period_s * cut});
  if (running > 0)
    notes.push_back(
        {"still_running",
         fmt::format("{} outlived the command: later work is missing", counted(running, "process")),
         0, 0});
  if (!profile.kernels.empty()) return;
  if (!profile.stalls.functions.empty()) {
    notes.push_back(
        {"stalls_only",
         "CUPTI gave no records of launches while stalls were sampled: kernels are ranked by "
         "samples and have no durations; for durations, profile without --stalls",
         0, 0});
    return;
  }
  if (profile.processes.empty() && names_a_privileged(notes)) return;
  if (profile.processes.empty()) {
    notes.push_back(
        {"no_gpu_use",
         "no process of this command was seen to initialise CUDA or OpenCL. One is not seen where "
         "it is setuid, sets OPENCL_LAYERS or CUDA_INJECTION64_PATH itself, or has an OpenCL "
         "loader older than OPENCL_LAYERS; `purlin doctor` shows what this machine has",
         0, 0});
  } else {
    notes.push_back(
        {"no_launches",
         "CUDA or OpenCL was initialised, but no launch was recorded; other notes name the causes",
         0, 0});
  }
}

// A command holds folders of a home and names of hosts: the program's name stays.
void make_anonymous(Profile& profile) {
  const auto program = [](const std::string& command) {
    return base_name(command.substr(0, command.find(' ')));
  };
  profile.labels = {};
  profile.command = program(profile.command);
  for (ProcessInfo& process : profile.processes) {
    process.labels = {};
    process.command = program(process.command);
  }
}

// Facts of the run that the spool's files do not hold.
void describe(Profile& profile, const CaptureOptions& options, const Environment& host,
              std::int64_t wall_ns, const std::vector<CoverageNote>& notes) {
  std::vector<DeviceInfo> devices = std::move(profile.environment.devices);
  const std::string build =
      options.build.empty() ? environment_variable("PURLIN_BUILD_LABEL") : options.build;
  profile.environment = host;
  profile.environment.devices = std::move(devices);
  profile.environment.build = build;
  for (KernelRow& row : profile.kernels) row.build = build;
  for (StallFunction& function : profile.stalls.functions) function.build = build;
  profile.command = quoted_command(options.command);
  for (const auto& [key, value] : facts_of_this_run()) set_label(profile.labels, key, value);
  if (options.anonymous) make_anonymous(profile);
  profile.wall_ns = wall_ns;
  profile.coverage.notes.insert(profile.coverage.notes.end(), notes.begin(), notes.end());
  explain(profile, options.seal_period_s);
}

// Variables of this process, as they were again afterwards.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      const char* old = std::getenv(name.c_str());
      before_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;
  ~ScopedEnvironment() {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace

CaptureLibraries find_capture_libraries(const std::string& library_directory) {
  CaptureOptions options;
  options.library_directory = library_directory;
  return {find_library(options, kCudaLibrary), find_library(options, kOpenclLibrary)};
}

std::map<std::string, std::string> capture_environment(const CaptureOptions& options,
                                                       const std::string& spool,
                                                       std::vector<CoverageNote>& notes) {
  std::map<std::string, std::string> variables = injection(options, spool, notes);
  variables.erase("PURLIN_RUN_ID");  // each run has another one
  return variables;
}

// Null without --torch daemon.
Result<std::unique_ptr<TorchDaemon>> start_daemon(const CaptureOptions& options,
                                                  const std::string& spool) {
  if (!options.torch.on || !options.torch.daemon) return std::unique_ptr<TorchDaemon>();
  if (!environment_variable("KINETO_USE_DAEMON").empty())
    return error(Code::kInvalid,
                 "--torch daemon: KINETO_USE_DAEMON is set, so PyTorch asks another daemon; unset "
                 "it, or use --torch hook");
  TorchDaemonOptions of_daemon;
  of_daemon.torch = options.torch;
  of_daemon.settle_s =
      parse_double(environment_variable("PURLIN_TORCH_WAIT")).value_or(of_daemon.settle_s);
  return TorchDaemon::start(spool, of_daemon);
}

Result<CaptureResult> run_capture(const CaptureOptions& options) {
  PURLIN_ASSIGN(Spool spool, Spool::make());
  const SpoolLock lock(spool.path());
  (void)reap_spools(spool.path(), system_clock().wall_ns());
  std::vector<CoverageNote> notes;
  if (is_privileged_program(options.command)) notes.push_back(privileged_program(options.command));
  Process::Options child;
  child.argv = options.command;
  child.environment = injection(options, spool.path(), notes);
  PURLIN_ASSIGN(const std::unique_ptr<TorchDaemon> daemon, start_daemon(options, spool.path()));
  if (daemon != nullptr) child.environment.merge(daemon->variables());
  child.in = Process::Stream::kInherit;
  if (options.stdout_to_stderr) child.out = Process::Stream::kToStderr;
  child.new_group = false;

  CaptureResult result;
  const Environment host = host_environment();
  const std::int64_t began = system_clock().monotonic_ns();
  std::map<pid_t, std::string> privileged;
  {
    SignalsOfTheChild signals;
    PURLIN_ASSIGN(Process process, Process::start(child));
    signals.child_is(process.pid());
    PrivilegedWatch watch(process.pid());
    result.exit_code = process.wait()->shell_code();
    privileged = watch.stop();
  }
  const std::int64_t ended = system_clock().monotonic_ns();
  if (daemon != nullptr) daemon->stop();

  Result<Profile> gathered = spool.gather();
  if (!gathered.is_ok())
    return gathered.status().with_context(
        fmt::format("the command ended with exit code {}", result.exit_code));
  result.profile = std::move(gathered).value();
  if (!names_a_privileged(notes)) add_privileged(std::move(privileged), result.profile, notes);
  find_lines(result.profile, spool.path());
  if (options.torch.on) add_torch_traces(result.profile, spool.path(), options.command);
  if (options.torch.jax) add_jax_programs(result.profile, spool.path());
  describe(result.profile, options, host, ended - began, notes);
  result.profile.exit_code = result.exit_code;
  return result;
}

Result<Profile> capture_children(const CaptureOptions& options,
                                 const std::function<Status()>& act) {
  PURLIN_ASSIGN(Spool spool, Spool::make());
  const SpoolLock lock(spool.path());  // a later run leaves it alone
  std::vector<CoverageNote> notes;
  const Environment host = host_environment();
  const std::int64_t began = system_clock().monotonic_ns();
  {
    const ScopedEnvironment injected(injection(options, spool.path(), notes));
    PURLIN_TRY(act());
  }
  PURLIN_ASSIGN(Profile profile, spool.gather());
  find_lines(profile, spool.path());
  if (options.torch.on) add_torch_traces(profile, spool.path(), options.command);
  if (options.torch.jax) add_jax_programs(profile, spool.path());
  describe(profile, options, host, system_clock().monotonic_ns() - began, notes);
  return profile;
}

}  // namespace purlin::profile
