// SPDX-License-Identifier: Apache-2.0
// What the host's times cost next to kernel records: ns per launch while they are recorded, and
// after that. One process per script of actions, since CUPTI's state is the process's.
//
//   nvcc -O2 -std=c++20 -arch=sm_90 -o cupti_calls_cost cupti_calls_cost.cu -lcupti -lcuda
//   cupti_calls_cost xmKmCmcmkm
//
// Actions: x makes the context. m measures and prints one column. g prints ns per node of a replayed
// graph, u the median duration of a kernel's record in ns. H keeps CUPTI's buffers of the device in
// page-locked host memory, T takes times of the wall clock. A capital letter switches on, a small
// one off: K kernel records; C records of the calls that launch or wait (single calls of two
// kinds); L latency timestamps in kernel records; B callbacks of the launching calls alone; D the
// same of the driver's calls; W of the driver's calls that wait; P records of memcpy and memset.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

constexpr CUpti_CallbackId kRuntime[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020};
constexpr CUpti_CallbackId kDriver[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx};
constexpr CUpti_CallbackId kWaits[] = {
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize};
constexpr CUpti_ActivityKind kCopies[] = {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
cudaStream_t stream;
float* data;
CUpti_SubscriberHandle subscriber;
volatile unsigned long long last;
long kernels, calls, queued;
std::vector<double> durations;

__global__ void tiny(float* p) {
  if (p) p[threadIdx.x] += 1.f;
}

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = std::size_t{4} << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

void completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++kernels;
      const auto* kernel = reinterpret_cast<CUpti_ActivityKernel10*>(record);
      durations.push_back(static_cast<double>(kernel->end - kernel->start));
      queued += reinterpret_cast<CUpti_ActivityKernel10*>(record)->queued != 0;
    } else {
      ++calls;
    }
  }
  std::free(buffer);
}

void called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* argument) {
  const auto* info = static_cast<const CUpti_CallbackData*>(argument);
  std::uint64_t now = 0;
  cuptiGetTimestamp(&now);
  last = now + info->correlationId;
  if (info->callbackSite == CUPTI_API_EXIT) ++calls;
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double launch_ns(double seconds) {
  std::vector<double> times;
  for (const double end = now_ns() + seconds * 1e9; now_ns() < end;) {
    const double begin = now_ns();
    for (int i = 0; i < 500; ++i) tiny<<<1, 64, 0, stream>>>(data);
    cudaStreamSynchronize(stream);
    times.push_back((now_ns() - begin) / 500);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];  // the machine's other work only adds
}

double node_ns() {
  static cudaGraphExec_t exec = nullptr;
  constexpr int kNodes = 1000, kReplays = 40;
  if (exec == nullptr) {
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < kNodes; ++i) tiny<<<1, 64, 0, stream>>>(data);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
  }
  std::vector<double> times;
  for (int i = 0; i < kReplays; ++i) {
    const double begin = now_ns();
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    times.push_back((now_ns() - begin) / kNodes);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];
}

double median_duration() {
  cuptiActivityFlushAll(0);
  std::vector<double> all = std::exchange(durations, {});
  if (all.empty()) return 0;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

void select_calls() {
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
  const auto wanted = [](const auto& list, CUpti_CallbackId id) {
    return std::find(std::begin(list), std::end(list), id) != std::end(list);
  };
  for (CUpti_CallbackId id = 1; id < CUPTI_RUNTIME_TRACE_CBID_SIZE; ++id)
    if (!wanted(kRuntime, id)) cuptiActivityEnableRuntimeApi(id, 0);
  for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; ++id)
    if (!wanted(kDriver, id)) cuptiActivityEnableDriverApi(id, 0);
}

template <class Ids>
void callbacks(bool on, CUpti_CallbackDomain domain, const Ids& ids) {
  if (subscriber == nullptr) cuptiSubscribe(&subscriber, called, nullptr);
  for (const CUpti_CallbackId id : ids) cuptiEnableCallback(on, subscriber, domain, id);
}

void act(char action) {
  switch (action) {
    case 'x':
      cudaFree(nullptr);
      cudaStreamCreate(&stream);
      cudaMalloc(&data, 4096);
      launch_ns(0.2);
      return;
    case 'm':
      std::printf("   %6.0f", launch_ns(0.4));
      std::fflush(stdout);
      return;
    case 'g': std::printf("  g%6.0f", node_ns()); return;
    case 'u': std::printf("  u%6.0f", median_duration()); return;
    case 'H': {
      std::uint8_t on = 1;
      std::size_t size = sizeof on;
      if (cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size, &on) != CUPTI_SUCCESS)
        std::printf("  H refused");
      return;
    }
    case 'K': cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); return;
    case 'k': cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); return;
    case 'C': select_calls(); return;
    case 'c':
      cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME);
      cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
      return;
    case 'L': cuptiActivityEnableLatencyTimestamps(1); return;
    case 'l': cuptiActivityEnableLatencyTimestamps(0); return;
    case 'B': callbacks(true, CUPTI_CB_DOMAIN_RUNTIME_API, kRuntime); return;
    case 'b': callbacks(false, CUPTI_CB_DOMAIN_RUNTIME_API, kRuntime); return;
    case 'D': callbacks(true, CUPTI_CB_DOMAIN_DRIVER_API, kDriver); return;
    case 'd': callbacks(false, CUPTI_CB_DOMAIN_DRIVER_API, kDriver); return;
    case 'W': callbacks(true, CUPTI_CB_DOMAIN_DRIVER_API, kWaits); return;
    case 'w': callbacks(false, CUPTI_CB_DOMAIN_DRIVER_API, kWaits); return;
    case 'P':
      for (const CUpti_ActivityKind kind : kCopies) cuptiActivityEnable(kind);
      return;
    case 'p':
      for (const CUpti_ActivityKind kind : kCopies) cuptiActivityDisable(kind);
      return;
    case 'T':
      cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t {
        return static_cast<std::uint64_t>(
            std::chrono::system_clock::now().time_since_epoch().count());
      });
      return;
    case 'r': cuptiActivityRegisterCallbacks(requested, completed); return;
    default: std::exit(2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* script = argc > 1 ? argv[1] : "rxmKmkm";
  std::printf("%-16s", script);
  for (const char* action = script; *action != '\0'; ++action) act(*action);
  cuptiActivityFlushAll(1);
  std::printf("   kernels %ld calls %ld queued %ld\n", kernels, calls, queued);
}
