// SPDX-License-Identifier: Apache-2.0
// StreamTimer: times work on a CUDA stream, a kernel's launch or a library's call, on the device's
// clock.
//
// Samples are queued behind a closed gate (stream_gate.h), so the device runs them at its own
// pace, not at the host's. A sample of several launches can be one graph, captured from the stream.
// The host's launch overhead then precedes the sample, and the gate holds any number of launches.
// Owned by a device, used from its thread. Failure: as the driver's; work that cannot be captured
// is timed without a graph.
#pragma once

#include "gpu/cuda/driver.h"
#include "gpu/cuda/stream_gate.h"
#include "gpu/device.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace purlin::gpu {

// What is timed. The functions are called from time() alone.
struct StreamWork {
  // Enqueues a launch; nothing may wait for the stream. `nth` counts on from call to call, but in a
  // graph, whose launches are the same each time: there it counts from 0.
  std::function<Status(std::size_t nth)> enqueue;
  std::function<Status(std::size_t sample)> flush;  // enqueues an eviction of L2; may be empty
  std::function<double()> clock_mhz;                // the SM clock now; may be empty
  int commands = 1;                                 // on the stream, of one launch, at most
};

class StreamTimer {
 public:
  // `where` names the device in messages ("cuda:0"). The stream outlives the timer.
  StreamTimer(const CudaDriver& driver, CUstream stream, std::string where);
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  // The work has run once before: a first launch may load code, and waits for the device.
  Result<std::vector<Sample>> time(const StreamWork& work, const TimingRequest& request);
  // Launches until `go_on` says no, two batches queued at any time, so that the device never waits
  // for the host. As Device::keep_busy().
  Result<Busy> keep_busy(const StreamWork& work, const TimingRequest& request,
                         const Device::GoOn& go_on);
  static bool has_graphs(const CudaDriver& driver);
  // How the last call timed, as Device::how() says it.
  std::string_view how() const { return how_; }

 private:
  class Graph;
  Status check(std::string_view what, CUresult result) const;
  Status synchronize();
  Status wait_for(CUevent event);
  Result<double> elapsed_ms(CUevent first, CUevent last) const;
  Status make_events(std::size_t count);
  void choose_how(const StreamWork& work, const TimingRequest& request);
  int commands_of(const StreamWork& work, const TimingRequest& request) const;
  std::unique_ptr<Graph> capture(const StreamWork& work, int launches);
  Status time_chunk(const StreamWork& work, const TimingRequest& request, int count,
                    std::vector<Sample>& samples);
  Status enqueue_samples(const StreamWork& work, const TimingRequest& request, std::size_t count);
  Status enqueue_sample(const StreamWork& work, const TimingRequest& request);
  Status enqueue_batch(const StreamWork& work, const TimingRequest& request, std::size_t events);

  const CudaDriver& driver_;
  CUstream stream_;
  std::string where_;
  std::unique_ptr<StreamGate> gate_;
  std::vector<std::pair<CUevent, CUevent>> events_;  // made once, reused by every chunk
  std::unique_ptr<Graph> graph_;                     // of the call under way
  std::size_t nth_ = 0;                              // launches so far, those of graphs left out
  std::string_view how_ = "event";
};

}  // namespace purlin::gpu
