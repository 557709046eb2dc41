// SPDX-License-Identifier: Apache-2.0
// Collector: the OpenCL side of a capture session. It keeps the event of each tracked command until
// the command has completed, then reads its times into the recorder. That happens on the session's
// thread, so the overhead on the program's threads is one retained event per command.
//
// One per process (PerProcess). [MT] every method. At most kMaxPending events are held: later
// launches count as lost.
#pragma once

#include "profile/capture/opencl/command.h"
#include "profile/capture/session/session.h"

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::profile::capture::opencl {

class Collector : public Source {
 public:
  static constexpr std::size_t kMaxPending = 1 << 16;
  static constexpr std::size_t kWakeAt = 1 << 12;

  Collector(const cl_icd_dispatch& driver, const SessionOptions& options);

  CaptureSession& session() { return session_; }
  void add_queue(cl_command_queue queue, cl_device_id device, bool profiled, bool asked);
  // Whether the queue times its commands only because of Purlin.
  bool hides_profiling(cl_command_queue queue);
  // The device's index in the environment; the queue's device is kUnknownDevice when never seen.
  cl_device_id device_of(cl_command_queue queue);
  // Takes over one reference to the event.
  void track(cl_command_queue queue, cl_event event, Command command, std::int64_t enqueued_ns);
  void add_overhead(std::int64_t ns) { overhead_ns_.fetch_add(ns, std::memory_order_relaxed); }
  void collect(bool final) override;
  // Status and windows: every launch is recorded from the start to the end anyhow. A window makes
  // the timeline that of the window.
  std::string control(const ControlRequest& request) override;

 private:
  struct Queue {
    cl_device_id handle = nullptr;
    std::uint32_t device = 0, number = 0;
    bool profiled = false, hidden = false;
  };
  struct Pending {
    cl_event event = nullptr;
    Command command;
    std::uint32_t device = 0, stream = 0;
    std::int64_t enqueued_ns = 0;  // wall clock
  };
  struct Device {
    cl_device_id id = nullptr;
    std::string json;
    bool clock_known = false;
    std::int64_t clock_offset_ns = 0;  // wall clock minus the device's profiling clock
  };

  std::uint32_t device_index(cl_device_id device);
  void find_devices();
  std::string describe(cl_device_id device, std::size_t index) const;
  // True when the event has ended, one way or the other, and was released.
  bool settle(Pending& pending, double& failed);
  std::int64_t clock_offset(const Pending& pending);
  bool is_requested(std::int64_t start_ns) const;

  const cl_icd_dispatch& driver_;
  CaptureSession session_;
  std::mutex mutex_;  // queues_, devices_, pending_; taken before the recorder's lock
  std::unordered_map<cl_command_queue, Queue> queues_;
  std::vector<Device> devices_;
  std::uint32_t queues_seen_ = 0;
  std::vector<Pending> pending_;
  std::mutex collecting_;  // one collect at a time; taken before mutex_
  std::atomic<std::int64_t> overhead_ns_ = 0;
  std::atomic<std::uint64_t> launches_ = 0;  // enqueued since the last collect
  // The last window that was requested, wall clock; 0, 0: none.
  std::atomic<std::int64_t> window_begin_ns_ = 0, window_end_ns_ = 0;
  std::atomic<int> windows_ = 0;
};

}  // namespace purlin::profile::capture::opencl
