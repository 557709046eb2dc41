// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on a fake driver: order of calls, limits, and what errors become.
#include "gpu/cuda/device.h"

#include "base/text.h"
#include "gpu/cuda/facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

namespace purlin::gpu {
namespace {

// A driver that records its calls. Functions of the driver API carry no state, so a pointer leads
// to the driver in use; tests run one after the other.
struct FakeDriver {
  std::vector<std::string> calls;
  std::map<std::string, CUresult> failures;  // function -> what it returns from now on
  std::map<CUdevice_attribute, int> attributes;
  std::vector<std::size_t> parameter_sizes = {8, 4};
  std::map<CUfunction_attribute, int> function_attributes = {
      {CU_FUNC_ATTRIBUTE_NUM_REGS, 40}, {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024}};
  std::uint32_t gate_word = 0;
  std::uint32_t gate_turn = 0;
  bool gate_closed() { return std::atomic_ref(gate_word).load() < gate_turn; }
  int captured = -1;       // launches of the capture under way; -1 = none
  bool serialise = false;  // as some profilers do: a launch returns once the kernel ran
  std::vector<std::vector<std::string>> launch_values;
  std::uint64_t next_address = 0x10000;
  int live = 0;  // allocations, streams, events, modules not yet released

  CUresult call(const std::string& name, const std::string& detail = "") {
    calls.push_back(detail.empty() ? name : name + " " + detail);
    const auto failure = failures.find(name);
    return failure == failures.end() ? CUDA_SUCCESS : failure->second;
  }
  template <class Handle>
  CUresult make(const std::string& name, Handle* handle) {
    const CUresult result = call(name);
    if (result != CUDA_SUCCESS) return result;
    next_address += 0x1000;
    if constexpr (std::is_pointer_v<Handle>)
      *handle = reinterpret_cast<Handle>(next_address);
    else
      *handle = next_address;
    ++live;
    return CUDA_SUCCESS;
  }
  CUresult release(const std::string& name) {
    --live;
    return call(name);
  }
};
FakeDriver* fake = nullptr;

CudaDriver fake_table() {
  CudaDriver table;
  table.cuGetErrorName = [](CUresult result, const char** name) {
    *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_X";
    return CUDA_SUCCESS;
  };
  table.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as the driver puts it";
    return CUDA_SUCCESS;
  };
  table.cuDeviceGet = [](CUdevice* device, int index) {
    *device = index;
    return fake->call("cuDeviceGet");
  };
  table.cuDeviceGetName = [](char* name, int size, CUdevice) {
    std::strncpy(name, "NVIDIA Fake", static_cast<std::size_t>(size));
    return CUDA_SUCCESS;
  };
  table.cuDeviceTotalMem_v2 = [](std::size_t* bytes, CUdevice) {
    *bytes = std::size_t{80} << 30;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    const auto found = fake->attributes.find(attribute);
    if (found == fake->attributes.end()) return CUDA_ERROR_INVALID_VALUE;
    *value = found->second;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetPCIBusId = [](char* text, int size, CUdevice) {
    std::strncpy(text, "0000:3B:00.0", static_cast<std::size_t>(size));
    return CUDA_SUCCESS;
  };
  table.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    return fake->make("cuDevicePrimaryCtxRetain", context);
  };
  table.cuDevicePrimaryCtxRelease_v2 = [](CUdevice) {
    return fake->release("cuDevicePrimaryCtxRelease");
  };
  table.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  table.cuMemAlloc_v2 = [](CUdeviceptr* address, std::size_t) {
    return fake->make("cuMemAlloc", address);
  };
  table.cuMemFree_v2 = [](CUdeviceptr) { return fake->release("cuMemFree"); };
  table.cuMemHostAlloc = [](void** word, std::size_t, unsigned) {
    *word = &fake->gate_word;
    ++fake->live;
    return CUDA_SUCCESS;
  };
  table.cuMemHostGetDevicePointer_v2 = [](CUdeviceptr* address, void*, unsigned) {
    *address = 7;
    return CUDA_SUCCESS;
  };
  table.cuMemFreeHost = [](void*) { return fake->release("cuMemFreeHost"); };
  table.cuMemsetD8Async = [](CUdeviceptr, unsigned char, std::size_t bytes, CUstream) {
    return fake->call("memset", std::to_string(bytes));
  };
  table.cuStreamCreate = [](CUstream* stream, unsigned) {
    return fake->make("cuStreamCreate", stream);
  };
  table.cuStreamDestroy_v2 = [](CUstream) { return fake->release("cuStreamDestroy"); };
  table.cuStreamSynchronize = [](CUstream) {
    EXPECT_FALSE(fake->gate_closed()) << "waiting behind a closed gate never ends";
    return fake->call("synchronize");
  };
  table.cuStreamWaitValue32 = [](CUstream, CUdeviceptr, cuuint32_t turn, unsigned) {
    const CUresult result = fake->call("close");
    if (result == CUDA_SUCCESS) fake->gate_turn = turn;
    return result;
  };
  table.cuEventCreate = [](CUevent* event, unsigned) { return fake->make("event", event); };
  table.cuEventDestroy_v2 = [](CUevent) { return fake->release("cuEventDestroy"); };
  table.cuEventRecord = [](CUevent, CUstream) { return fake->call("record"); };
  table.cuEventQuery = [](CUevent) { return fake->call("query"); };
  table.cuEventElapsedTime = [](float* ms, CUevent, CUevent) {
    *ms = 3;
    return fake->call("elapsed");
  };
  table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
    return fake->make("cuModuleLoadDataEx", module);
  };
  table.cuModuleUnload = [](CUmodule) { return fake->release("cuModuleUnload"); };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
    *function = nullptr;
    return fake->call("cuModuleGetFunction", name);
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    *value = fake->function_attributes[attribute];
    return CUDA_SUCCESS;
  };
  table.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute attribute, int value) {
    return fake->call("set", fmt::format("{}={}", static_cast<int>(attribute), value));
  };
  table.cuFuncGetParamInfo = [](CUfunction, std::size_t index, std::size_t*, std::size_t* size) {
    if (index >= fake->parameter_sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    *size = fake->parameter_sizes[index];
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, void** values, void**) {
    std::vector<std::string> copied;
    for (std::size_t i = 0; values != nullptr && i < fake->parameter_sizes.size(); ++i)
      copied.emplace_back(static_cast<char*>(values[i]), fake->parameter_sizes[i]);
    fake->launch_values.push_back(copied);
    while (fake->serialise && fake->gate_closed()) std::this_thread::yield();
    if (fake->captured >= 0) {
      ++fake->captured;
      return CUDA_SUCCESS;
    }
    return fake->call("launch");
  };
  table.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) {
    fake->captured = 0;
    return fake->call("capture");
  };
  table.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
    fake->calls.push_back("of " + std::to_string(std::exchange(fake->captured, -1)));
    return fake->make("graph", graph);
  };
  table.cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph, unsigned long long) {
    return fake->make("instantiate", exec);
  };
  table.cuGraphUpload = [](CUgraphExec, CUstream) { return fake->call("upload"); };
  table.cuGraphLaunch = [](CUgraphExec, CUstream) { return fake->call("graph launch"); };
  table.cuGraphExecDestroy = [](CUgraphExec) { return fake->release("end"); };
  table.cuGraphDestroy = [](CUgraph) { return fake->release("drop"); };
  table.cuTensorMapEncodeTiled = [](void* map, int, cuuint32_t, void* address, const cuuint64_t*,
                                    const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, int,
                                    int, int, int) {
    std::memcpy(map, &address, sizeof address);
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void**, void**) {
    return fake->call("cluster",
                      std::to_string(config->numAttrs > 0 ? config->attrs->value.clusterDim.x : 0));
  };
  return table;
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    fake = &driver_;
    driver_.attributes = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
                          {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                          {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
                          {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1000},
                          {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
                          {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448}};
    const CudaDriver table = fake_table();
    auto info = describe_cuda_device(table, 0, "580.1", "NVRTC 13.0");
    ASSERT_TRUE(info.is_ok());
    CudaTools tools;
    tools.nvrtc_problem = error(Code::kUnavailable, "no NVRTC here");
    auto device = CudaDevice::open(table, 0, *info, std::move(tools));
    ASSERT_TRUE(device.is_ok()) << device.status().message();
    device_ = std::move(*device);
    EXPECT_EQ(calls(), "cuDeviceGet,cuDeviceGet")
        << "a process that only compiles takes no context";
    auto kernel = device_->load({"scale", "cubin", "", 0});
    ASSERT_TRUE(kernel.is_ok()) << kernel.status().message();
    kernel_ = std::move(*kernel);
    buffer_ = device_->allocate(4096).value();
    launch_.kernel = kernel_.get();
    launch_.shape.block = {256, 1, 1};
    launch_.arguments = {{buffer_.get(), 256, 64, ""}, {nullptr, 0, 0, "abcd"}};
    driver_.calls.clear();
  }
  void TearDown() override {
    buffer_.reset();
    kernel_.reset();
    device_.reset();
    EXPECT_EQ(driver_.live, 0) << "everything taken is given back";
  }
  std::string calls() {
    std::string text = join(driver_.calls, ",");
    driver_.calls.clear();
    return text;
  }

  FakeDriver driver_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> buffer_;
  Launch launch_;
};

TEST_F(CudaDeviceTest, FactsComeFromTheDriver) {
  const DeviceInfo& info = device_->info();
  EXPECT_EQ(info.id, "cuda:0");
  EXPECT_EQ(info.arch, "sm_90");
  EXPECT_EQ(info.name, "NVIDIA Fake");
  EXPECT_EQ(info.clock_mhz, 1980);
  EXPECT_EQ(info.shared_memory_per_block, 232448);
  EXPECT_EQ(info.driver, "580.1");
  EXPECT_EQ(info.max_threads_per_unit, 0);  // what this driver does not know stays unknown
  EXPECT_EQ(kernel_->registers, 40);
  EXPECT_EQ(device_->compile({}).status().message(), "no NVRTC here");
}

TEST_F(CudaDeviceTest, ALaunchPassesAddressesAndScalars) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  EXPECT_EQ(calls(), "launch,synchronize");
  CUdeviceptr address = 0;
  std::memcpy(&address, driver_.launch_values[0][0].data(), sizeof address);
  EXPECT_EQ(address % 0x1000, 256u);
  EXPECT_EQ(driver_.launch_values[0][1], "abcd");
  launch_.arguments.pop_back();
  EXPECT_EQ(device_->run(launch_).message(), "the kernel takes 2 arguments, the launch gives 1");
  launch_.arguments.push_back({nullptr, 0, 0, "abcdefgh"});
  EXPECT_EQ(device_->run(launch_).message(), "kernel argument 1 has 4 bytes, the launch gives 8");
  EXPECT_EQ(calls(), "");
}

TEST_F(CudaDeviceTest, AKernelTakesABufferAsATensorMap) {
  driver_.parameter_sizes = {128, 4};
  kernel_ = device_->load({"copy", "cubin", "", 0}).value();
  launch_.kernel = kernel_.get();
  EXPECT_EQ(device_->run(launch_).message(), "kernel argument 0 has 128 bytes, the launch gives 8");
  launch_.arguments[0].tensor_map =
      std::make_shared<TensorMap>(TensorMap{Dtype::kF32, {8, 64}, {4, 32}, 128});
  // Further sets of arguments have other places, and therefore other maps.
  launch_.further_arguments = {launch_.arguments};
  launch_.further_arguments[0][0].offset = 512;
  driver_.launch_values.clear();
  ASSERT_TRUE(device_->time(launch_, {2, 1, false, 0}).is_ok());
  std::vector<CUdeviceptr> places;
  for (const auto& values : driver_.launch_values) {
    CUdeviceptr address = 0;
    std::memcpy(&address, values[0].data(), sizeof address);
    places.push_back(address % 0x1000);
    EXPECT_EQ(values[1], "abcd");
  }
  EXPECT_NE(std::find(places.begin(), places.end(), 256u), places.end());
  EXPECT_NE(std::find(places.begin(), places.end(), 512u), places.end());
}

TEST_F(CudaDeviceTest, SamplesAreQueuedBehindTheGateWithoutWaiting) {
  auto samples = device_->time(launch_, {2, 2, true, 0});
  ASSERT_TRUE(samples.is_ok()) << samples.status().message();
  ASSERT_EQ(samples->size(), 2u);
  EXPECT_EQ((*samples)[0].ms, 1.5);  // two launches in 3 ms
  EXPECT_EQ(calls(),
            "launch,synchronize,"  // once outside the gate, where it may load code
            "cuMemAlloc,event,event,event,event,close,"
            "memset 2000,record,launch,launch,record,"
            "memset 2000,record,launch,launch,record,"
            "synchronize,elapsed,elapsed");
  ASSERT_TRUE(device_->time(launch_, {1, 1, false, 0}).is_ok());
  EXPECT_EQ(calls(), "close,record,launch,record,synchronize,elapsed");
}

// Counts what is launched between its begin and its end.
class FakeCounters : public HardwareCounters {
 public:
  Result<std::map<std::string, double>> count(CUcontext context, int device,
                                              const std::function<Status()>& prepare,
                                              const std::function<Status()>& launch) override {
    EXPECT_NE(context, nullptr);
    EXPECT_EQ(device, 0);
    PURLIN_TRY(prepare());
    fake->call("begin");
    const Status launched = launch();
    fake->call("end");
    PURLIN_TRY(launched);
    return std::map<std::string, double>{{"instructions", 5}};
  }
};

TEST_F(CudaDeviceTest, CountsOneLaunchAndOpensTheCounterOnce) {
  const Status none = device_->count(launch_, false).status();
  EXPECT_EQ(none.code(), Code::kUnavailable);
  calls();
  CudaTools tools;
  int opened = 0;
  tools.open_counters = [&opened]() -> Result<std::unique_ptr<HardwareCounters>> {
    ++opened;
    return std::unique_ptr<HardwareCounters>(std::make_unique<FakeCounters>());
  };
  const CudaDriver table = fake_table();
  DeviceInfo info = device_->info();
  auto counting = CudaDevice::open(table, 0, info, std::move(tools)).value();
  ASSERT_TRUE(counting->run(launch_).is_ok());
  calls();
  const auto counted = counting->count(launch_, false);
  ASSERT_TRUE(counted.is_ok()) << counted.status().message();
  EXPECT_EQ(counted->at("instructions"), 5);
  EXPECT_EQ(calls(), "begin,launch,end,synchronize");
  ASSERT_TRUE(counting->count(launch_, true).is_ok());
  EXPECT_EQ(calls(), "cuMemAlloc,memset 2000,synchronize,begin,launch,end,synchronize")
      << "a cold cache is made before the counters are on";
  EXPECT_EQ(opened, 1);
  driver_.failures["launch"] = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(counting->count(launch_, false).status().code(), Code::kInvalid);
  EXPECT_EQ(calls(), "begin,launch,end,synchronize") << "what was begun is ended";
}

TEST_F(CudaDeviceTest, MoreCommandsThanTheQueueHoldsAreNotGated) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  calls();
  ASSERT_TRUE(device_->time(launch_, {3, 100, false, 0}).is_ok());
  std::string text = calls();
  EXPECT_EQ(text.find("close") != std::string::npos, true);  // two samples fit, then one
  ASSERT_TRUE(device_->time(launch_, {1, 300, false, 0}).is_ok());
  EXPECT_EQ(calls().find("close"), std::string::npos);
}

TEST_F(CudaDeviceTest, ManyShortLaunchesAreOneGraph) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  calls();
  EXPECT_TRUE(device_->has_graphs());
  TimingRequest request;
  request.samples = 2;
  request.launches_per_sample = 300;  // more than the gate holds of single launches
  request.graph = true;
  auto samples = device_->time(launch_, request);
  ASSERT_TRUE(samples.is_ok()) << samples.status().message();
  EXPECT_EQ((*samples)[0].ms, 3.0 / 300);
  EXPECT_EQ(device_->how(), "graph");
  EXPECT_EQ(calls(),
            "capture,of 300,graph,instantiate,drop,upload,event,event,event,event,close,"
            "record,graph launch,record,record,graph launch,record,synchronize,elapsed,elapsed,"
            "end");
}

// So that it never waits for the host: energy is counted meanwhile.
TEST_F(CudaDeviceTest, KeptBusyTheNextBatchIsQueuedBeforeOneEnds) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  calls();
  int asked = 0;
  auto busy =
      device_->keep_busy(launch_, {2, 1, false, 0}, [&](const Busy&) { return ++asked < 3; });
  ASSERT_TRUE(busy.is_ok()) << busy.status().message();
  EXPECT_EQ(busy->launches, 6);
  EXPECT_NEAR(busy->busy_s, 3 * 0.003, 1e-12);
  EXPECT_EQ(calls(),
            "event,event,event,event,event,event,record,"
            "record,launch,launch,record,record,launch,launch,record,query,elapsed,elapsed,"
            "record,launch,launch,record,query,elapsed,elapsed,query,elapsed,elapsed,synchronize");
  TimingRequest request;
  request.samples = 2;
  request.launches_per_sample = 300;
  request.graph = true;
  busy = device_->keep_busy(launch_, request, [](const Busy&) { return false; });
  ASSERT_TRUE(busy.is_ok()) << busy.status().message();
  EXPECT_EQ(busy->launches, 600);
  EXPECT_EQ(calls(),
            "capture,of 300,graph,instantiate,drop,upload,record,record,graph launch,graph launch,"
            "record,query,elapsed,elapsed,synchronize,end");
}

TEST_F(CudaDeviceTest, ADeviceLostWhileKeptBusyIsSaidToBe) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  driver_.failures["query"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  const auto busy = device_->keep_busy(launch_, {2, 1, false, 0}, [](const Busy&) { return true; });
  EXPECT_EQ(busy.status().code(), Code::kFailed);
}

TEST_F(CudaDeviceTest, WorkThatCannotBeCapturedIsABatch) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  driver_.failures["graph"] = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  TimingRequest request;
  request.launches_per_sample = 3;
  request.graph = true;
  ASSERT_TRUE(device_->time(launch_, request).is_ok());
  EXPECT_EQ(device_->how(), "batch");
  request.launches_per_sample = 300;
  ASSERT_TRUE(device_->time(launch_, request).is_ok());
  EXPECT_EQ(device_->how(), "ungated batch");
  request.launches_per_sample = 1;
  ASSERT_TRUE(device_->time(launch_, request).is_ok());
  EXPECT_EQ(device_->how(), "event");
}

TEST_F(CudaDeviceTest, LaunchesTakeTheSetsOfArgumentsInTurn) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  launch_.further_arguments = {launch_.arguments, launch_.arguments};
  launch_.further_arguments[0][0].offset = 512;
  launch_.further_arguments[1][0].offset = 768;
  driver_.launch_values.clear();
  ASSERT_TRUE(device_->time(launch_, {2, 1, false, 0}).is_ok());
  ASSERT_TRUE(device_->time(launch_, {2, 1, false, 0}).is_ok());  // goes on where it was
  std::vector<CUdeviceptr> offsets;
  for (const auto& values : driver_.launch_values) {
    CUdeviceptr address = 0;
    std::memcpy(&address, values[0].data(), sizeof address);
    offsets.push_back(address % 0x1000);
  }
  EXPECT_EQ(offsets, (std::vector<CUdeviceptr>{256, 512, 768, 256}));
  launch_.further_arguments[0][0].offset = 100;
  EXPECT_EQ(device_->time(launch_, {1, 1, false, 0}).status().code(), Code::kInvalid);
}

TEST_F(CudaDeviceTest, AFailedLaunchOpensTheGate) {
  ASSERT_TRUE(device_->run(launch_).is_ok());
  driver_.failures["launch"] = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const Status status = device_->time(launch_, {4, 1, false, 0}).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("registers or shared memory"), std::string::npos);
  EXPECT_FALSE(driver_.gate_closed());
}

TEST_F(CudaDeviceTest, TheWatchdogOpensTheGateUnderASerialisingProfiler) {
  CudaDriver table = fake_table();
  auto impatient = StreamGate::create(table, 0.01);
  driver_.serialise = true;
  ASSERT_TRUE(impatient->close(nullptr));
  ASSERT_EQ(table.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_SUCCESS);
  impatient->open();
  EXPECT_FALSE(impatient->close(nullptr));  // not used again
}

TEST_F(CudaDeviceTest, ErrorsOfTheKernelCostTheDevice) {
  driver_.failures["synchronize"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  const Status status = device_->run(launch_);
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_EQ(status.message(),
            "the kernel on cuda:0: CUDA_ERROR_ILLEGAL_ADDRESS 700 (as the driver puts it); the "
            "kernel accesses memory outside its arguments; run it under compute-sanitizer. The "
            "device must be opened again");
  driver_.failures["cuMemAlloc"] = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(device_->allocate(1).status().code(), Code::kUnavailable);
  driver_.failures["cuModuleLoadDataEx"] = CUDA_ERROR_NO_BINARY_FOR_GPU;
  EXPECT_EQ(device_->load({"scale", "cubin", "", 0}).status().code(), Code::kInvalid);
}

TEST_F(CudaDeviceTest, MuchSharedMemoryAndLargeClustersAreAskedForOnce) {
  launch_.shape.dynamic_shared_bytes = 48 << 10;
  ASSERT_TRUE(device_->run(launch_).is_ok());
  EXPECT_EQ(calls(), "launch,synchronize");
  launch_.shape.dynamic_shared_bytes = 100'000;
  ASSERT_TRUE(device_->run(launch_).is_ok());
  ASSERT_TRUE(device_->run(launch_).is_ok());
  EXPECT_EQ(calls(), "set 8=100000,launch,synchronize,launch,synchronize");
  launch_.shape.dynamic_shared_bytes = 300'000;
  EXPECT_EQ(device_->run(launch_).code(), Code::kInvalid);
  launch_.shape.dynamic_shared_bytes = 0;
  launch_.shape.grid = {16, 1, 1};
  launch_.shape.cluster = {16, 1, 1};
  ASSERT_TRUE(device_->run(launch_).is_ok());
  EXPECT_EQ(calls(), "set 14=1,cluster 16,synchronize");
}

TEST(CudaFacts, TheKernelModulesVersionIsFound) {
  EXPECT_EQ(parse_kernel_module_version(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release "
                "Build  (dvs-builder)\nGCC version:  gcc version 12.2.0\n"),
            "580.159.04");
  EXPECT_EQ(parse_kernel_module_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03 "
                                        " Tue Jun  6 22:20:39 UTC 2023\n"),
            "535.54.03");
  EXPECT_EQ(parse_kernel_module_version(""), "");
}

}  // namespace
}  // namespace purlin::gpu
