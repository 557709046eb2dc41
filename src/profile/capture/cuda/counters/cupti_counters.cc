// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/counters/cupti_counters.h"

#include "gpu/cuda/range_profiler.h"
#include "profile/capture/session/session.h"

#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <time.h>

namespace purlin::profile::capture::cuda {
namespace {

#define PURLIN_CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

constexpr CUpti_CallbackId kLaunches[] = {PURLIN_CBID(cuLaunchKernel),
                                          PURLIN_CBID(cuLaunchKernel_ptsz),
                                          PURLIN_CBID(cuLaunchKernelEx),
                                          PURLIN_CBID(cuLaunchKernelEx_ptsz),
                                          PURLIN_CBID(cuLaunchCooperativeKernel),
                                          PURLIN_CBID(cuLaunchCooperativeKernel_ptsz),
                                          PURLIN_CBID(cuGraphLaunch),
                                          PURLIN_CBID(cuGraphLaunch_ptsz)};
constexpr CUpti_CallbackId kCaptureBegins[] = {
    PURLIN_CBID(cuStreamBeginCapture),        PURLIN_CBID(cuStreamBeginCapture_ptsz),
    PURLIN_CBID(cuStreamBeginCapture_v2),     PURLIN_CBID(cuStreamBeginCapture_v2_ptsz),
    PURLIN_CBID(cuStreamBeginCaptureToGraph), PURLIN_CBID(cuStreamBeginCaptureToGraph_ptsz)};
constexpr CUpti_CallbackId kCaptureEnds[] = {PURLIN_CBID(cuStreamEndCapture),
                                             PURLIN_CBID(cuStreamEndCapture_ptsz)};
constexpr CUpti_CallbackId kContextEnds[] = {
    PURLIN_CBID(cuCtxDestroy), PURLIN_CBID(cuCtxDestroy_v2), PURLIN_CBID(cuDevicePrimaryCtxReset),
    PURLIN_CBID(cuDevicePrimaryCtxReset_v2)};

#undef PURLIN_CBID

template <std::size_t N>
bool among(const CUpti_CallbackId (&ids)[N], CUpti_CallbackId id) {
  return std::find(std::begin(ids), std::end(ids), id) != std::end(ids);
}

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

struct DriverApi {
  decltype(&cuCtxGetDevice) get_device = nullptr;
  decltype(&cuCtxRecordEvent) record_event = nullptr;
  decltype(&cuEventCreate) create_event = nullptr;
  decltype(&cuEventQuery) query_event = nullptr;
  decltype(&cuFuncGetAttribute) attribute = nullptr;
  decltype(&cuKernelGetFunction) function_of = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) primary_state = nullptr;

  bool bind() {
    void* driver = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    return driver != nullptr && find(driver, get_device, "cuCtxGetDevice") &&
           find(driver, record_event, "cuCtxRecordEvent") &&
           find(driver, create_event, "cuEventCreate") &&
           find(driver, query_event, "cuEventQuery") &&
           find(driver, attribute, "cuFuncGetAttribute") &&
           find(driver, function_of, "cuKernelGetFunction") &&
           find(driver, primary_state, "cuDevicePrimaryCtxGetState");
  }
};

// Also of launches that a compiler marked: programmatic dependence lets a kernel begin before the
// one ahead has ended.
void read_attributes(const CUlaunchConfig& config, LaunchSite& site) {
  for (unsigned i = 0; config.attrs != nullptr && i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        site.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                        attribute.value.clusterDim.z};
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        site.dependent |= attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        site.dependent |= attribute.value.programmaticStreamSerializationAllowed != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        site.dependent = true;
        break;
      default:
        break;
    }
  }
}

template <class Params>
void read_shape(const Params& params, LaunchSite& site) {
  site.function = params.f;
  site.stream = params.hStream;
  site.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  site.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  site.dynamic_shared_bytes = params.sharedMemBytes;
}

LaunchSite site_of(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  LaunchSite site;
  site.context = data.context;
  site.symbol = data.symbolName;
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      read_shape(*static_cast<const cuLaunchKernel_params*>(data.functionParams), site);
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto& params = *static_cast<const cuLaunchKernelEx_params*>(data.functionParams);
      site.function = params.f;
      if (params.config == nullptr) break;
      const CUlaunchConfig& config = *params.config;
      site.stream = config.hStream;
      site.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
      site.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
      site.dynamic_shared_bytes = config.sharedMemBytes;
      read_attributes(config, site);
      break;
    }
    default:
      read_shape(*static_cast<const cuLaunchCooperativeKernel_params*>(data.functionParams), site);
      site.dependent = true;
  }
  return site;
}

// Whether a stream that was being captured no longer is.
bool capture_is_over(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
         result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

class CuptiCounters : public CounterHardware {
 public:
  // Finds CUPTI's functions now: later on, the loader yields the hooks for clients in their place.
  explicit CuptiCounters(const Cupti& cupti) : cupti_(cupti) {
    bound_ = range_.bind(cupti.handle) && cupti.subscribe != nullptr &&
             cupti.unsubscribe != nullptr && cupti.enable_callback != nullptr;
  }

  bool subscribe(LaunchListener& listener, std::string& reason) override;
  void unsubscribe() override { cupti_.unsubscribe(subscriber_); }
  void watch_launches(bool on) override {
    for (const CUpti_CallbackId id : kLaunches) watch(id, on);
  }
  std::string chip(const void* context) override;
  bool idle(const void* context, bool afresh) override;
  void warm_up() override;
  Answer begin(const void* context, const CounterCard& card, std::size_t ranges, bool replay,
               std::string& reason) override;
  bool push(std::size_t range) override;
  bool pop() override;
  bool finish(CounterImage& image) override;
  void leave() override;
  LaunchFacts facts(const LaunchSite& site) override;
  bool values(const CounterImage& image, std::size_t range, std::vector<double>& values) override;
  std::int64_t now_ns() override { return monotonic_ns(); }
  void pause() override {
    const timespec some = {0, 20'000};
    ::nanosleep(&some, nullptr);
  }

 private:
  static void CUPTIAPI called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void* data);
  void dispatch(CUpti_CallbackId id, const CUpti_CallbackData& data);
  void launch(CUpti_CallbackId id, const CUpti_CallbackData& data);
  void watch(CUpti_CallbackId id, bool on) {
    cupti_.enable_callback(on ? 1 : 0, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
  bool primary_is_active() const {
    unsigned flags = 0;
    int active = 0;
    return driver_.primary_state(static_cast<CUdevice>(device_), &flags, &active) == CUDA_SUCCESS &&
           active != 0;
  }
  Answer answer_of(const gpu::RangeStep& step, std::string& reason) const;

  const Cupti& cupti_;
  gpu::RangeProfiler range_;
  DriverApi driver_;
  LaunchListener* listener_ = nullptr;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool bound_ = false;
  std::string chip_;
  std::uint32_t device_ = 0;
  std::map<const void*, CUevent> events_;
  bool primary_ = false;  // the context's device had one when the session began
};

// ---- callbacks ----

bool CuptiCounters::subscribe(LaunchListener& listener, std::string& reason) {
  if (!bound_) {
    reason = cupti_.path + " has no range profiler; CUPTI of CUDA 12.8 and newer has one";
    return false;
  }
  if (!driver_.bind()) {
    reason = "the driver is older than CUDA 12.4's";
    return false;
  }
  listener_ = &listener;
  const CUptiResult result = cupti_.subscribe(&subscriber_, &CuptiCounters::called, this);
  if (result != CUPTI_SUCCESS) {
    reason = "CUPTI's callbacks belong to another tool (" + cupti_.text_of(result) + ')';
    return false;
  }
  for (const CUpti_CallbackId id : kCaptureBegins) watch(id, true);
  for (const CUpti_CallbackId id : kCaptureEnds) watch(id, true);
  for (const CUpti_CallbackId id : kContextEnds) watch(id, true);
  return true;
}

void CUPTIAPI CuptiCounters::called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                    const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  try {
    static_cast<CuptiCounters*>(self)->dispatch(id, *static_cast<const CUpti_CallbackData*>(data));
  } catch (...) {  // out of memory: this launch is not counted
  }
}

void CuptiCounters::dispatch(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  const bool enters = data.callbackSite == CUPTI_API_ENTER;
  const auto result = [&] { return *static_cast<const CUresult*>(data.functionReturnValue); };
  if (among(kCaptureBegins, id)) {
    if (enters) {
      listener_->capture_begins();
    } else if (result() != CUDA_SUCCESS) {
      listener_->capture_ended();
    }
  } else if (among(kCaptureEnds, id)) {
    if (!enters && capture_is_over(result())) listener_->capture_ended();
  } else if (among(kContextEnds, id)) {
    if (enters) listener_->context_ends();
  } else {
    launch(id, data);
  }
}

void CuptiCounters::launch(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  const bool enters = data.callbackSite == CUPTI_API_ENTER;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ||
      id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz) {
    if (enters) listener_->graph_launched();
    return;
  }
  constexpr std::uint64_t kChosen = 0x7075726c696eu;
  if (enters) {
    *data.correlationData = 0;
    if (listener_->entering(site_of(id, data))) *data.correlationData = kChosen;
  } else if (*data.correlationData == kChosen) {
    *data.correlationData = 0;
    listener_->left();
  }
}

// ---- the driver ----

// Only once the program has a context: CUPTI must not be the first to use the driver.
void CuptiCounters::warm_up() {
  unsigned flags = 0;
  int active = 0;
  for (CUdevice device = 0; device < 64; ++device) {
    if (driver_.primary_state(device, &flags, &active) != CUDA_SUCCESS) return;
    if (active == 0) continue;
    range_.initialize();
    return;
  }
}

// REQUIRES: the context is the thread's current one.
std::string CuptiCounters::chip(const void*) {
  CUdevice device = 0;
  if (driver_.get_device(&device) != CUDA_SUCCESS) return "";
  device_ = static_cast<std::uint32_t>(device);
  return chip_ = range_.chip(device_);
}

bool CuptiCounters::idle(const void* context, bool afresh) {
  auto event = events_.find(context);
  if (event == events_.end()) {
    CUevent fresh = nullptr;
    if (driver_.create_event(&fresh, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
    event = events_.emplace(context, fresh).first;
    afresh = true;
  }
  if (afresh) {
    // Releasing the last reference also ends a primary context; other ends were reported.
    if (context == range_.context() && primary_ && !primary_is_active()) return false;
    auto* const handle = static_cast<CUcontext>(const_cast<void*>(context));
    if (driver_.record_event(handle, event->second) != CUDA_SUCCESS) {
      events_.erase(event);  // of a context that is gone
      return false;
    }
  }
  return driver_.query_event(event->second) == CUDA_SUCCESS;
}

// As records have it: at least 16 registers, and no local memory.
LaunchFacts CuptiCounters::facts(const LaunchSite& site) {
  constexpr std::uint32_t kMinRegisters = 16;
  LaunchFacts facts;
  facts.name = site.symbol;
  facts.grid = site.grid;
  facts.block = site.block;
  facts.cluster = site.cluster;
  facts.dynamic_shared_bytes = site.dynamic_shared_bytes;
  facts.device = device_;
  auto* function = static_cast<CUfunction>(const_cast<void*>(site.function));
  int value = 0;
  // The runtime launches kernels of libraries, which are no functions yet.
  if (driver_.attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) != CUDA_SUCCESS &&
      driver_.function_of(&function, reinterpret_cast<CUkernel>(function)) != CUDA_SUCCESS)
    return facts;
  const auto attribute = [&](CUfunction_attribute what) {
    int number = 0;
    return driver_.attribute(&number, what, function) == CUDA_SUCCESS && number > 0
               ? static_cast<std::uint32_t>(number)
               : 0u;
  };
  facts.registers = std::max(kMinRegisters, attribute(CU_FUNC_ATTRIBUTE_NUM_REGS));
  facts.static_shared_bytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  if (const std::uint32_t width = attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH); width > 0)
    facts.cluster = {width, attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                     attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
  return facts;
}

// ---- the range profiler ----

CounterHardware::Answer CuptiCounters::answer_of(const gpu::RangeStep& step,
                                                 std::string& reason) const {
  if (step.result == CUPTI_SUCCESS) return Answer::kYes;
  reason = gpu::counters_problem(step, cupti_.text_of(step.result));
  return gpu::counters_are_busy(step.result) ? Answer::kNotNow : Answer::kNever;
}

CounterHardware::Answer CuptiCounters::begin(const void* context, const CounterCard& card,
                                             std::size_t ranges, bool replay, std::string& reason) {
  if (context != range_.context()) {
    leave();
    if (chip(context).empty()) return answer_of({CUPTI_ERROR_NOT_INITIALIZED, "chip"}, reason);
  }
  CUptiResult unknown = CUPTI_SUCCESS;
  const gpu::CounterConfig* config = range_.config(chip_, card.metrics, unknown);
  if (config == nullptr) {
    reason = "the card '" + std::string(card.topic) + "' is unknown to CUPTI on " + chip_ + ": " +
             cupti_.text_of(unknown);
    return Answer::kNotNow;
  }
  if (!replay && config->passes != 1) {
    reason = "the card '" + std::string(card.topic) + "' needs more than one pass on " + chip_;
    return Answer::kNotNow;
  }
  const bool enabled = range_.context() != nullptr;
  const gpu::RangeStep step =
      range_.begin(static_cast<CUcontext>(const_cast<void*>(context)), *config, ranges, replay);
  if (step.result != CUPTI_SUCCESS) {
    leave();
  } else if (!enabled) {
    primary_ = primary_is_active();
  }
  return answer_of(step, reason);
}

bool CuptiCounters::push(std::size_t range) { return range_.push(range); }
bool CuptiCounters::pop() { return range_.pop(); }

bool CuptiCounters::finish(CounterImage& image) {
  if (!range_.finish()) return false;
  image.bytes = range_.image();
  image.config = range_.config();
  return true;
}

void CuptiCounters::leave() {
  range_.disable();
  events_.clear();  // of contexts that may end now
}

bool CuptiCounters::values(const CounterImage& image, std::size_t range,
                           std::vector<double>& values) {
  return range_.values(*static_cast<const gpu::CounterConfig*>(image.config), image.bytes, range,
                       values);
}

}  // namespace

std::unique_ptr<CounterHardware> make_cupti_counters(const Cupti& cupti) {
  return std::make_unique<CuptiCounters>(cupti);
}

}  // namespace purlin::profile::capture::cuda
