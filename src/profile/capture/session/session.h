// SPDX-License-Identifier: Apache-2.0
// CaptureSession: the capture of one process: its Recorder, its file in the spool, and the thread
// that seals a period every second. A killed process loses only the records after the last seal.
//
// A Source feeds it. The session's thread calls tick() at the times that the source requests, and
// collect() before each seal. finish() calls collect(true) on the thread that exits. Sessions are
// created once per process and never destroyed: the program's other threads may still be inside
// Purlin's callbacks while it exits. [MT] every method. Nothing throws; without its file a session
// counts and writes nothing.
#pragma once

#include "profile/capture/recording/recorder.h"
#include "profile/capture/sampling/process_sampler.h"
#include "profile/capture/session/clock.h"
#include "profile/capture/session/control.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/types.h>

namespace purlin::profile::capture {

class Source {
 public:
  virtual ~Source() = default;
  // Does the work that is due and returns the time of the next call (monotonic ns); at each
  // wake-up.
  virtual std::int64_t tick() { return std::numeric_limits<std::int64_t>::max(); }
  virtual void collect(bool final) = 0;  // [MT]
  virtual std::uint32_t tracer_version() const { return 0; }
  // Answers a request of `purlin capture`, between two ticks; a JSON object.
  virtual std::string control(const ControlRequest& request);
};

struct SessionOptions {
  std::string spool;              // folder; PURLIN_SPOOL
  std::string layer;              // "cuda", "opencl"
  std::int64_t period_ms = 1000;  // PURLIN_SEAL_PERIOD_MS
  // PURLIN_SPOOL_FILE_BYTES: about so large a file is ended, and another one continues it; 0: none.
  std::uint64_t file_bytes = 0;
  bool every_launch = false;  // PURLIN_FULL=1
  double budget = 0.01;       // PURLIN_BUDGET, of the program's time
  bool idle = false;          // PURLIN_IDLE=1: nothing is recorded until requested
  bool waits = false;         // PURLIN_WAITS=1: the host's waits as well as launches
  bool windows = false;  // PURLIN_WINDOWS: after the start-up window, within the budget; as drawn
  // PURLIN_WINDOW="LENGTH_MS@CELL_MS": launches with their times for so long in each cell.
  std::int64_t full_window_ns = 0, full_cell_ns = 0;

  // PURLIN_LASTING_LAUNCH_NS (docs/guide/profiling.md): the overhead of a second window on each
  // later launch, for another CUPTI than that of cost_model.h; -1: as there.
  double lasting_launch_ns = -1;
  ProcessSampler sampler;  // PURLIN_SAMPLE
  bool has_control() const { return sampler.left_out.empty(); }
  // False if PURLIN_SPOOL is not set: the program does not run under `purlin profile`.
  static bool from_environment(const char* layer, SessionOptions& options);
};

class CaptureSession {
 public:
  CaptureSession(SessionOptions options, Source& source);

  Recorder& recorder() { return recorder_; }
  const SessionOptions& options() const { return options_; }
  void start();                                  // writes the first seal, starts the thread
  void set_devices(const std::string& devices);  // a JSON array, as in the document's environment
  void wake();                                   // tick and collect soon, without sealing
  void poke();                                   // tick soon
  // The program's first work has begun. The next seals follow each other quickly, so that a program
  // that aborts early leaves a profile. False on the session's own thread: the work is not its own.
  bool hurry();
  void finish();  // at exit: the final seal; later calls do nothing

 private:
  static void* run(void* self);
  void loop();
  void seal(bool final);
  void keep_cost(bool final);
  struct SpoolFile {
    std::string path;
    int fd = -1;
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t offset = 0;  // its end
  };
  static bool create(SpoolFile& file);
  std::string process_from(std::int64_t start_ns) const;
  std::string path_from(std::int64_t start_ns) const;
  void continue_in_another();
  bool write_at(SpoolFile& file, std::string_view bytes);
  void switch_file();
  void open_file();
  bool reach_file();
  bool write_pending();
  void report_fault(int code);

  const SessionOptions options_;
  Source& source_;
  Recorder recorder_;
  std::string process_;  // JSON of META
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_;
  bool awake_ = false, poked_ = false, hurried_ = false;
  std::atomic<bool> finished_ = false;
  std::mutex file_mutex_;
  std::optional<CostKeeper> keeper_;
  std::int64_t began_ns_ = 0;
  Control control_;
  SpoolFile file_;
  std::string pending_;  // a period that could not be written yet
  // The file that continues this one when pending_ is written, and what it lacks then.
  std::optional<SpoolFile> next_;
  std::string next_pending_;
  std::uint64_t continue_at_ = 0;  // bytes of the file
  bool reported_ = false;
};

}  // namespace purlin::profile::capture
