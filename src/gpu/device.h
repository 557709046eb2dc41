// SPDX-License-Identifier: Apache-2.0
// Device: the seam between Purlin and a device's driver. compile, load, allocate, launch, time.
//
// Implementations: cuda (driver API + NVRTC), opencl, replay (recorded search spaces), fake
// (tests). Vendor libraries are opened at run time. Thread-safety: methods marked [MT]; all others
// belong to the thread that opened the device. Failure: kInvalid if the compiler or driver refuses
// the user's kernel (with its log), kUnavailable for what the machine lacks, kFailed when the
// device is lost (an illegal access, a hang). After kFailed the process must end, so candidates
// run in a worker (measure/worker.h).
#pragma once

#include "base/status.h"
#include "model/device/device.h"
#include "model/device/launch.h"
#include "model/evaluation.h"
#include "model/expression/value.h"
#include "model/problem/dtype.h"
#include "model/spec/library_operation.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::gpu {

struct CompileRequest {
  std::string name;    // file name for the compiler's messages
  std::string source;  // CUDA C++ or OpenCL C
  std::string entry;
  std::vector<std::string> options;
  std::vector<std::string> include_directories;
  Config config;        // each parameter becomes a macro: -DBM=64; booleans are 0 and 1
  std::string library;  // "cublaslt": not compiled, the source is LibraryOperation::text()
  // CUDA only. "nvcc" where NVRTC cannot take the source; "" = NVRTC.
  std::string compiler{};
  std::string compiler_version{};    // Device::compiler_version(), for caches
  std::vector<std::string> archs{};  // what the source is for: "sm_90a"; empty = the device's own
  double timeout_s = 0;              // of a compiler that is a process; 0 = a quarter of an hour
};

// What a library offers for an operation at one problem shape: its algorithms, as configs.
struct LibrarySpace {
  std::string version;                  // "cuBLASLt 13.1.0": what the configs are valid for
  std::vector<std::string> parameters;  // names of the columns
  std::vector<std::int32_t> values;     // a row for each config, one after another
  // Rows of the library's own proposals, in its order: the first is what a program gets untuned.
  std::vector<std::size_t> proposals;
  std::size_t checked = 0;      // configs the library was asked about
  std::size_t not_rebuilt = 0;  // proposals whose attributes do not give the same algorithm again
  bool complete = true;         // false: the time for it was over
  double seconds = 0;           // what it took

  std::size_t size() const { return parameters.empty() ? 0 : values.size() / parameters.size(); }
  Config config(std::size_t row) const;
};
Json to_json(const LibrarySpace& space);
Result<LibrarySpace> library_space_from_json(const Json& json);

// What a compiler made: self-contained, so it can be kept on disk and loaded by another process.
struct Binary {
  std::string entry;  // as the loader must ask for it (lowered, for CUDA C++)
  std::string image;  // cubin, OpenCL program binary, or a backend's own token
  std::string log;    // warnings
  double compile_s = 0;
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  std::size_t bytes() const { return bytes_; }

 protected:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes_;
};

// What a kernel takes, known after compilation; 0 where the backend does not say.
struct Resources {
  int registers = 0;  // per thread
  std::int64_t static_shared_bytes = 0;
  std::int64_t local_bytes = 0;  // per thread: spills and stack
};

class Kernel : public Resources {
 public:
  virtual ~Kernel() = default;
  int max_threads_per_block = 0;
};

// A buffer as the tensor of which a CUDA kernel copies boxes. Extents are row-major.
struct TensorMap {
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> extents, box;
  std::int64_t swizzle = 0;  // width in bytes
};

// One kernel argument: a place in a buffer, or the bytes of a scalar.
struct KernelArgument {
  Buffer* buffer = nullptr;
  std::size_t offset = 0;  // bytes into the buffer; a multiple of Device::buffer_alignment()
  std::size_t bytes = 0;   // extent visible to the kernel where the backend can bound it
  std::string scalar;      // raw bytes, when buffer is nullptr
  // The kernel takes the place as a tensor map in place of its address (CUDA).
  std::shared_ptr<const TensorMap> tensor_map{};
};

struct Launch {
  Kernel* kernel = nullptr;
  LaunchShape shape;
  std::vector<KernelArgument> arguments;
  // Other arguments of the same sizes: time() takes them in turn with the first, so that a launch
  // does not find its inputs in the cache.
  std::vector<std::vector<KernelArgument>> further_arguments{};
};

// The seconds that a config took where it was recorded.
struct RecordedCost {
  double compile_s = 0, verify_s = 0, measure_s = 0;
  double total_s = 0;  // these and the recording tuner's own time
};

struct TimingRequest {
  int samples = 1;
  int launches_per_sample = 1;  // >1: back to back, the sample is their mean.
  bool flush_l2 = false;        // Evict the L2 cache before each sample.
  double budget_s = 0;          // >0: stop after the sample during which this time has passed.
  bool graph = false;           // the launches of a sample as one graph, where has_graphs()
  // The host sleeps meanwhile: others need its cores (CUDA).
  bool sleeps = false;
};

// The work that the device did in keep_busy().
struct Busy {
  double launches = 0;
  double busy_s = 0;     // without what is between batches of launches
  double elapsed_s = 0;  // with it
};

// Memory of the host. Backends derive one that their copies reach faster.
class HostMemory {
 public:
  explicit HostMemory(std::size_t bytes) : own_(bytes), data_(own_.data()), bytes_(bytes) {}
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  void* data() { return data_; }
  const void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 protected:
  // Of memory that the derived class owns.
  HostMemory(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  std::vector<char> own_;
  void* data_;
  std::size_t bytes_;
};

class Device {
 public:
  virtual ~Device() = default;
  const DeviceInfo& info() const { return info_; }
  // The language of KernelSpec::sources this device compiles: "cuda", "opencl"; "" for replay.
  virtual std::string_view language() const = 0;
  // True when outputs exist, so that verification means something; false for replay.
  virtual bool executes() const { return true; }
  // Known to recordings only; nullopt where trying a config takes real time.
  virtual std::optional<RecordedCost> recorded_cost(const Config&) const { return std::nullopt; }

  virtual Result<Binary> compile(const CompileRequest& request) = 0;  // [MT]
  // What a request's compiler is beyond info().toolkit; "" for the backend's own, or not known.
  virtual std::string compiler_version(const CompileRequest&) { return ""; }  // [MT]
  // From the image alone; nullopt where it does not say.
  virtual std::optional<Resources> resources(const Binary&) const { return std::nullopt; }
  virtual Result<std::unique_ptr<Kernel>> load(const Binary& binary) = 0;

  // Of libraries that CompileRequest::library names. kUnavailable where the device or this machine
  // has not got the library.
  virtual Result<std::string> library_version(std::string_view library);  // "cuBLASLt 13.1.0"
  virtual Result<LibrarySpace> library_space(const LibraryOperation& operation,
                                             const ProblemShape& problem);

  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) = 0;
  virtual std::size_t buffer_alignment() const { return 256; }
  virtual Status write(Buffer& buffer, std::size_t offset, const void* data, std::size_t bytes) = 0;
  virtual Status read(const Buffer& buffer, std::size_t offset, void* data, std::size_t bytes) = 0;
  // Memory of the host that read() fills fastest. [MT] Destroyed before the device.
  virtual std::unique_ptr<HostMemory> host_memory(std::size_t bytes) {
    return std::make_unique<HostMemory>(bytes);
  }
  virtual Status copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                      std::size_t from_offset, std::size_t bytes) = 0;
  // Every byte of the range becomes `byte`.
  virtual Status fill(Buffer& buffer, std::size_t offset, std::uint8_t byte, std::size_t bytes) = 0;

  // Launches once and waits. kInvalid when the driver refuses the launch.
  virtual Status run(const Launch& launch) = 0;
  // Launches and times on the device's own clock. At least one sample unless it fails.
  virtual Result<std::vector<Sample>> time(const Launch& launch, const TimingRequest& request) = 0;

  // Launches as time() does, in batches of request.samples. Before each batch it calls `go_on` with
  // the work that is done, and ends when that returns false. Where the backend can, the next batch
  // is queued before the last one ends.
  using GoOn = std::function<bool(const Busy& so_far)>;
  virtual Result<Busy> keep_busy(const Launch& launch, const TimingRequest& request,
                                 const GoOn& go_on);

  // Hardware counters of one launch, by names with units (model/device/launch_counters.h), with a
  // cold L2 cache or as the launch before leaves it. Launches of this process may take longer from
  // then on. kUnavailable, with the reason, if there are no counters; kTimeout if they are in use.
  virtual Result<std::map<std::string, double>> count(const Launch&, bool /*flush_l2*/) {
    return error(Code::kUnavailable, "hardware counters are read on CUDA devices only");
  }

  // Whether launches can be made a graph. A graph has no host overhead while it is timed.
  virtual bool has_graphs() const { return false; }
  // How the last time() did it: "event" (one launch between two events), "batch" or "graph" (so
  // many back to back), "ungated batch" (at the pace of the host), "recorded".
  virtual std::string_view how() const { return "event"; }

  // The SM clock now, in MHz; 0 where it cannot be read.
  virtual double current_clock_mhz() { return 0; }
  // The energy that the device has used since some moment, in mJ. kUnavailable, with the reason, if
  // it does not count energy. [MT]
  virtual Result<double> energy_mj() {
    return error(Code::kUnavailable, "{} ({}) does not count the energy it uses", info_.id,
                 info_.name);
  }

 protected:
  DeviceInfo info_;
};

// A family of devices.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "cuda"
  // kUnavailable with the reason and the fix when the machine has none of it.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  virtual Result<std::unique_ptr<Device>> open(int index) = 0;
};

std::unique_ptr<Backend> make_cuda_backend();
std::unique_ptr<Backend> make_opencl_backend();
// Recorded spaces: `path` is a Kernel Tuner cache file (.json or .json.gz).
Result<std::unique_ptr<Device>> open_replay(const std::string& path);

}  // namespace purlin::gpu
