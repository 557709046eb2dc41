// SPDX-License-Identifier: Apache-2.0
// FakeDevice: a device without hardware, for tests of everything above the seam.
//
// Unit tests program it through FakeBehaviour's callbacks; processes under test open it as
// "fake:FILE", a JSON script (docs/formats/fake.md). Buffers are host memory. A launch writes
// element i = 0.5 * i, as floats, to the visible range of its last buffer argument; a library's
// kernel is launched by the library (tests/programs/fake_cublaslt.cc), and its reference is
// computed here. Thread-safety and failure as for Device; callbacks used by compile() must be safe
// to call from any thread.
#pragma once

#include "base/random.h"
#include "gpu/device.h"
#include "gpu/library_kernel.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::gpu {

class FakeKernel : public Kernel {
 public:
  std::string entry;
  Config config;
  std::string operation;  // of a library's reference
};

class FakeBuffer : public Buffer {
 public:
  explicit FakeBuffer(std::size_t size) : Buffer(size), data(size) {}
  std::vector<std::uint8_t> data;
};

// What differs from a well-behaved device; an empty callback is good behaviour.
struct FakeBehaviour {
  std::function<Status(const CompileRequest&)> compile;            // [MT]
  std::function<double(const Config&)> compile_s;                  // [MT] reported, not slept
  std::function<Resources(const Config&)> resources;               // 32 registers without
  std::function<Status(const FakeKernel&, const Launch&)> launch;  // before anything is written
  // Runs in place of the pattern; `output` is the visible range of the last buffer argument.
  std::function<void(const FakeKernel&, const Launch&, FakeBuffer& buffer, std::size_t offset,
                     std::size_t bytes)>
      write;
  std::function<double(const FakeKernel&, const LaunchShape&)> time_ms;  // 1 ms without
  // Drawn from a launch until the next; without it no energy is counted.
  std::function<double(const FakeKernel&)> power_w;
  // Of one launch; without it the device has no hardware counters.
  std::function<Result<std::map<std::string, double>>(const FakeKernel&, const Launch&)> count;
  double noise = 0;  // relative standard deviation of a sample
  std::uint64_t seed = 1;
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(FakeBehaviour behaviour = {});
  // The pattern of a well-behaved kernel over [offset, offset + bytes).
  static void write_pattern(FakeBuffer& buffer, std::size_t offset, std::size_t bytes);

  std::string_view language() const override { return info_.backend == "cuda" ? "cuda" : "opencl"; }
  Result<std::string> library_version(std::string_view library) override;
  Result<LibrarySpace> library_space(const LibraryOperation& operation,
                                     const ProblemShape& problem) override;
  Result<Binary> compile(const CompileRequest& request) override;
  std::optional<Resources> resources(const Binary& binary) const override;
  Result<std::unique_ptr<Kernel>> load(const Binary& binary) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Status write(Buffer& buffer, std::size_t offset, const void* data, std::size_t bytes) override;
  Status read(const Buffer& buffer, std::size_t offset, void* data, std::size_t bytes) override;
  Status copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
              std::size_t bytes) override;
  Status fill(Buffer& buffer, std::size_t offset, std::uint8_t byte, std::size_t bytes) override;
  Status run(const Launch& launch) override;
  // Spends no time: the budget is counted in the samples' own milliseconds.
  Result<std::vector<Sample>> time(const Launch& launch, const TimingRequest& request) override;
  Result<std::map<std::string, double>> count(const Launch& launch, bool flush_l2) override;
  bool has_graphs() const override { return graphs; }
  std::string_view how() const override { return how_; }
  double current_clock_mhz() override { return info_.clock_mhz; }
  Result<double> energy_mj() override;

  DeviceInfo& mutable_info() { return info_; }
  // What was asked of the device so far.
  std::atomic<int> compiles{0};
  int launches = 0;
  bool graphs = false;

 private:
  Result<LibraryRuntime*> library(std::string_view name);
  Status write_outputs(const FakeKernel& kernel, const Launch& launch);
  Status run_library(LibraryKernel& kernel, const Launch& launch);

  std::string_view how_ = "event";
  std::mutex meter_;
  double drawn_w_ = 0, used_mj_ = 0;  // guarded by meter_, as the next
  std::int64_t counted_ns_ = 0;
  FakeBehaviour behaviour_;
  Random random_;
  std::unique_ptr<LibraryRuntime> library_;
};

// Opens a script; kInvalid with file and key when it is malformed.
Result<std::unique_ptr<Device>> open_fake(const std::string& path);

}  // namespace purlin::gpu
