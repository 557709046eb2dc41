// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/stream_timer.h"

#include "gpu/launching.h"

#include <algorithm>

namespace purlin::gpu {
namespace {

// Commands queued behind a closed gate. Drivers hold about a thousand before a launch blocks, and
// a launch that blocks there would wait for the gate that it keeps closed.
constexpr int kMaxGated = 256;
constexpr std::size_t kBatches = 2;        // queued at once by keep_busy()
constexpr std::int64_t kLookNs = 200'000;  // at whether a batch is over

}  // namespace

class StreamTimer::Graph {
 public:
  Graph(const CudaDriver& driver, CUgraphExec exec) : driver_(driver), exec_(exec) {}
  ~Graph() { driver_.cuGraphExecDestroy(exec_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  CUresult launch(CUstream stream) const { return driver_.cuGraphLaunch(exec_, stream); }

 private:
  const CudaDriver& driver_;
  CUgraphExec exec_;
};

StreamTimer::StreamTimer(const CudaDriver& driver, CUstream stream, std::string where)
    : driver_(driver),
      stream_(stream),
      where_(std::move(where)),
      gate_(StreamGate::create(driver)) {}

StreamTimer::~StreamTimer() {
  for (const auto& [start, end] : events_) {
    driver_.cuEventDestroy_v2(start);
    driver_.cuEventDestroy_v2(end);
  }
}

Status StreamTimer::check(std::string_view what, CUresult result) const {
  return result == CUDA_SUCCESS
             ? Status::ok()
             : cuda_failure(driver_, fmt::format("{} on {}", what, where_), result);
}

Status StreamTimer::synchronize() {
  const Status status = check("timing the kernel", driver_.cuStreamSynchronize(stream_));
  // An error that appears only here happened on the device, and the context is lost.
  return status.is_ok() ? status : Status(Code::kFailed, status.message());
}

// Of a sample: two events and a flush in addition to the launches.
int StreamTimer::commands_of(const StreamWork& work, const TimingRequest& request) const {
  return (graph_ ? 1 : request.launches_per_sample * work.commands) + 3;
}

bool StreamTimer::has_graphs(const CudaDriver& driver) {
  return driver.cuStreamBeginCapture_v2 != nullptr && driver.cuStreamEndCapture != nullptr &&
         driver.cuGraphInstantiateWithFlags != nullptr && driver.cuGraphUpload != nullptr &&
         driver.cuGraphLaunch != nullptr && driver.cuGraphExecDestroy != nullptr &&
         driver.cuGraphDestroy != nullptr;
}

// nullptr where the work cannot be captured: a library may refuse, or ask the device something.
std::unique_ptr<StreamTimer::Graph> StreamTimer::capture(const StreamWork& work, int launches) {
  if (driver_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS)
    return nullptr;
  Status captured = Status::ok();
  for (int n = 0; n < launches && captured.is_ok(); ++n)
    captured = work.enqueue(static_cast<std::size_t>(n));
  CUgraph graph = nullptr;
  const CUresult ended = driver_.cuStreamEndCapture(stream_, &graph);
  CUgraphExec exec = nullptr;
  const bool made = captured.is_ok() && ended == CUDA_SUCCESS && graph != nullptr &&
                    driver_.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS;
  if (graph != nullptr) driver_.cuGraphDestroy(graph);
  if (!made) return nullptr;
  auto owned = std::make_unique<Graph>(driver_, exec);
  // Done here, or else the first launch does it inside the first sample.
  if (driver_.cuGraphUpload(exec, stream_) != CUDA_SUCCESS) return nullptr;
  return owned;
}

void StreamTimer::choose_how(const StreamWork& work, const TimingRequest& request) {
  graph_.reset();
  how_ = request.launches_per_sample > 1 ? "batch" : "event";
  if (!request.graph || request.launches_per_sample <= 1 || !has_graphs(driver_)) return;
  graph_ = capture(work, request.launches_per_sample);
  if (graph_) how_ = "graph";
}

Result<std::vector<Sample>> StreamTimer::time(const StreamWork& work,
                                              const TimingRequest& request) {
  choose_how(work, request);
  Result<std::vector<Sample>> samples =
      sample_in_chunks(request, system_clock(), [&](int count, std::vector<Sample>& taken) {
        const int commands = commands_of(work, request);
        const int most = std::max(1, (kMaxGated - 1) / commands);
        for (int left = count; left > 0; left -= most)
          PURLIN_TRY(time_chunk(work, request, std::min(left, most), taken));
        return Status::ok();
      });
  graph_.reset();
  return samples;
}

Status StreamTimer::time_chunk(const StreamWork& work, const TimingRequest& request, int count,
                               std::vector<Sample>& samples) {
  PURLIN_TRY(make_events(static_cast<std::size_t>(count)));
  const int commands = commands_of(work, request);
  const bool gated = gate_ != nullptr && count * commands < kMaxGated && gate_->close(stream_);
  // Without the gate a batch goes at the pace of the host, which for short kernels is what shows.
  if (!gated && how_ == "batch") how_ = "ungated batch";
  const Status enqueued = enqueue_samples(work, request, static_cast<std::size_t>(count));
  if (gated) gate_->open();  // before anything else: behind a closed gate nothing ever finishes
  // Read while the kernels run: an idle GPU lowers its clock.
  const double clock_first = work.clock_mhz ? work.clock_mhz() : 0;
  if (request.sleeps && enqueued.is_ok())
    PURLIN_TRY(wait_for(events_[static_cast<std::size_t>(count) - 1].second));
  const Status finished = synchronize();
  const double clock_last = work.clock_mhz ? work.clock_mhz() : 0;
  PURLIN_TRY(enqueued);
  PURLIN_TRY(finished);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    PURLIN_ASSIGN(const double ms, elapsed_ms(events_[i].first, events_[i].second));
    const double place = (static_cast<double>(i) + 0.5) / count;
    const double clock =
        clock_first > 0 && clock_last > 0 ? clock_first + (clock_last - clock_first) * place : 0;
    samples.push_back({ms / request.launches_per_sample, clock});
  }
  return Status::ok();
}

Result<double> StreamTimer::elapsed_ms(CUevent first, CUevent last) const {
  float ms = 0;
  PURLIN_TRY(check("cuEventElapsedTime", driver_.cuEventElapsedTime(&ms, first, last)));
  return static_cast<double>(ms);
}

Status StreamTimer::enqueue_samples(const StreamWork& work, const TimingRequest& request,
                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (request.flush_l2 && work.flush) PURLIN_TRY(work.flush(i));
    PURLIN_TRY(check("cuEventRecord", driver_.cuEventRecord(events_[i].first, stream_)));
    PURLIN_TRY(enqueue_sample(work, request));
    PURLIN_TRY(check("cuEventRecord", driver_.cuEventRecord(events_[i].second, stream_)));
  }
  return Status::ok();
}

Status StreamTimer::enqueue_sample(const StreamWork& work, const TimingRequest& request) {
  if (graph_) return check("cuGraphLaunch", graph_->launch(stream_));
  for (int n = 0; n < request.launches_per_sample; ++n) PURLIN_TRY(work.enqueue(nth_++));
  return Status::ok();
}

Status StreamTimer::enqueue_batch(const StreamWork& work, const TimingRequest& request,
                                  std::size_t events) {
  PURLIN_TRY(check("cuEventRecord", driver_.cuEventRecord(events_[events].first, stream_)));
  for (int i = 0; i < request.samples; ++i) PURLIN_TRY(enqueue_sample(work, request));
  return check("cuEventRecord", driver_.cuEventRecord(events_[events].second, stream_));
}

// Looks now and then: waiting in the driver would keep a processor busy for as long.
Status StreamTimer::wait_for(CUevent event) {
  for (;;) {
    const CUresult result = driver_.cuEventQuery(event);
    if (result != CUDA_ERROR_NOT_READY) {
      const Status status = check("keeping the device busy", result);
      return status.is_ok() ? status : Status(Code::kFailed, status.message());
    }
    system_clock().sleep_ns(kLookNs);
  }
}

Result<Busy> StreamTimer::keep_busy(const StreamWork& work, const TimingRequest& request,
                                    const Device::GoOn& go_on) {
  choose_how(work, request);
  TimingRequest batch = request;
  // The events leave room for two batches in the queue, which holds about a thousand commands.
  const int commands = graph_ ? 1 : request.launches_per_sample * work.commands;
  batch.samples = std::clamp(request.samples, 1, std::max(1, kMaxGated / commands));
  PURLIN_TRY(make_events(kBatches + 1));
  const CUevent origin = events_[kBatches].first;
  Busy busy;
  std::size_t begun = 0, ended = 0;
  const auto end_one = [&]() -> Status {
    const auto& [first, last] = events_[ended % kBatches];
    PURLIN_TRY(wait_for(last));
    PURLIN_ASSIGN(const double ms, elapsed_ms(first, last));
    PURLIN_ASSIGN(const double since_ms, elapsed_ms(origin, last));
    busy.busy_s += ms * 1e-3;
    busy.elapsed_s = since_ms * 1e-3;
    busy.launches += static_cast<double>(batch.samples) * batch.launches_per_sample;
    ++ended;
    return Status::ok();
  };
  const auto all = [&]() -> Status {
    PURLIN_TRY(check("cuEventRecord", driver_.cuEventRecord(origin, stream_)));
    do {
      if (begun - ended == kBatches) PURLIN_TRY(end_one());
      PURLIN_TRY(enqueue_batch(work, batch, begun++ % kBatches));
    } while (go_on(busy));
    while (ended < begun) PURLIN_TRY(end_one());
    return Status::ok();
  };
  const Status status = all();
  const Status finished = synchronize();  // before the graph goes
  graph_.reset();
  PURLIN_TRY(status);
  PURLIN_TRY(finished);
  return busy;
}

Status StreamTimer::make_events(std::size_t count) {
  while (events_.size() < count) {
    CUevent start = nullptr, end = nullptr;
    PURLIN_TRY(check("cuEventCreate", driver_.cuEventCreate(&start, CU_EVENT_DEFAULT)));
    if (const CUresult result = driver_.cuEventCreate(&end, CU_EVENT_DEFAULT);
        result != CUDA_SUCCESS) {
      driver_.cuEventDestroy_v2(start);
      return check("cuEventCreate", result);
    }
    events_.emplace_back(start, end);
  }
  return Status::ok();
}

}  // namespace purlin::gpu
