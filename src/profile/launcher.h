// SPDX-License-Identifier: Apache-2.0
// Runs a command under capture: injects the capture libraries through the environment
// (CUDA_INJECTION64_PATH, OPENCL_LAYERS), waits, gathers the spool of every process into one
// Profile. The program and its children are not changed. Their exit code, streams and signals are
// passed through. The command stays in the terminal's foreground group: Ctrl-C reaches it directly.
// SIGTERM and SIGHUP are passed on.
//
// One run at a time in a process: signal handlers are the process's own.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"
#include "profile/torch/torch_traces.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace purlin::profile {

enum class Choice { kAuto, kOn, kOff };

struct CaptureOptions {
  std::vector<std::string> command;
  // Whether launches carry the ops that the program names (NVTX); auto: once it names any.
  Choice ops = Choice::kAuto;
  // memcpy and memset; auto: with sample_auto not of programs known to be launch-bound.
  Choice copies = Choice::kAuto;
  bool gemm_shapes = false;  // what cuBLAS and cuBLASLt are asked for
  bool full = false;         // a timeline of every launch, not only sketches
  bool waits = false;        // the host's waits, too, at any overhead
  // After the start-up window, if the budget is too small to record everything; auto: with
  // sample_auto of programs known to have room for them.
  Choice windows = Choice::kAuto;
  double budget = 0.01;  // of the program's time: what capture of CUDA may take
  double full_window_s = 0, full_cell_s = 0;  // a timeline of so much time in each such cell
  bool idle = false;                          // nothing until `purlin capture` asks for it

  int sample = 1;               // one run, or one rank of a run, in so many
  bool sample_auto = false;     // in as many as hold the budget over all runs
  std::string counters;         // topics of hardware counters, "all", "full"; "" = none
  std::string counter_kernels;  // an expression: of these kernels only

  int counter_replays = 3;   // "full": launches of each kernel that are run again
  double seal_period_s = 1;  // what a kill -9 can lose
  // About so large a capture's file is continued in another one; 0: one file for each process.
  std::uint64_t spool_file_bytes = 0;
  std::string build;       // label
  bool anonymous = false;  // without host, user, job, container and pod
  // Stalls are sampled, one of an SM in 2^this GPU cycles; 0 = not.
  std::uint32_t stall_period_log2 = 0;
  TorchOptions torch;             // ops and shapes of PyTorch programs, from a trace of some steps
  bool stdout_to_stderr = false;  // the command's stdout, so that ours holds nothing else
  std::string library_directory;  // "" = next to the executable: ../lib/purlin, or the build tree
};

// Where run_capture finds what it injects; "" = nowhere.
struct CaptureLibraries {
  std::string cuda, opencl;
};
CaptureLibraries find_capture_libraries(const std::string& library_directory = "");

// The variables that have a program captured which is started without the launcher, for as long as
// it runs, into a folder that a collector reads (`purlin env`). Notes say what is missing.
std::map<std::string, std::string> capture_environment(const CaptureOptions& options,
                                                       const std::string& spool,
                                                       std::vector<CoverageNote>& notes);

struct CaptureResult {
  Profile profile;
  int exit_code = 0;  // the command's, as a shell reports it
};

// kNotFound when the command does not exist, kIo where nothing can be recorded: the spool's folder
// is full, missing or not writable. A capture library that cannot be found or loaded is a
// coverage note, not an error: the program still runs.
Result<CaptureResult> run_capture(const CaptureOptions& options);

// The same for everything that `act` starts: while it runs, this process's own environment carries
// what is injected, so that its children inherit it. options.command only names the run. For
// programs of one thread, as the environment is the process's. A failing `act` is the result.
Result<Profile> capture_children(const CaptureOptions& options, const std::function<Status()>& act);

}  // namespace purlin::profile
