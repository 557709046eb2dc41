// SPDX-License-Identifier: Apache-2.0
// Runs on a real OpenCL device; PoCL makes every machine have one.
#include "gpu/device.h"

#include "base/files.h"
#include "base/os/process.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <unistd.h>

namespace purlin::gpu {
namespace {

constexpr const char* kSaxpy = R"(
kernel void saxpy(global const float* x, global float* y, float a, int n) {
  const int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i] + OFFSET;
})";

std::string raw(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

class OpenCl : public testing::Test {
 protected:
  void SetUp() override {
    auto device = make_opencl_backend()->open(0);
    ASSERT_TRUE(device.is_ok()) << "install pocl-opencl-icd: " << device.status().message();
    device_ = std::move(*device);
  }

  CompileRequest saxpy() const {
    CompileRequest request;
    request.name = "saxpy.cl";
    request.source = kSaxpy;
    request.entry = "saxpy";
    request.config.set("OFFSET", std::int64_t{0});
    return request;
  }

  std::unique_ptr<Kernel> build(const CompileRequest& request) {
    auto binary = device_->compile(request);
    EXPECT_TRUE(binary.is_ok()) << binary.status().message();
    auto kernel = device_->load(*binary);
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().message();
    return std::move(*kernel);
  }

  std::unique_ptr<Buffer> upload(const std::vector<float>& values) {
    auto buffer = device_->allocate(values.size() * sizeof(float));
    EXPECT_TRUE(device_->write(**buffer, 0, values.data(), (*buffer)->bytes()).is_ok());
    return std::move(*buffer);
  }

  std::vector<float> download(const Buffer& buffer) {
    std::vector<float> values(buffer.bytes() / sizeof(float));
    EXPECT_TRUE(device_->read(buffer, 0, values.data(), buffer.bytes()).is_ok());
    return values;
  }

  Launch launch_saxpy(Kernel* kernel, Buffer* x, Buffer* y, int n) const {
    Launch launch;
    launch.kernel = kernel;
    launch.shape.block = {64, 1, 1};
    launch.shape.grid = {static_cast<std::uint32_t>((n + 63) / 64), 1, 1};
    launch.arguments = {
        {x, 0, 0, ""}, {y, 0, 0, ""}, {nullptr, 0, 0, raw(2.0F)}, {nullptr, 0, 0, raw(n)}};
    return launch;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(OpenCl, FactsAreThoseOfADevice) {
  const DeviceInfo& info = device_->info();
  EXPECT_EQ(info.id, "opencl:0");
  EXPECT_EQ(info.backend, "opencl");
  EXPECT_NE(info.name, "");
  EXPECT_NE(info.arch, "");
  EXPECT_NE(info.driver, "");
  EXPECT_NE(info.toolkit.find("OpenCL C"), std::string::npos) << info.toolkit;
  EXPECT_GT(info.compute_units, 0);
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_GT(info.shared_memory_per_block, 0);
  EXPECT_GT(info.max_threads_per_block, 0);
  EXPECT_GT(info.max_block[0], 0);
}

TEST_F(OpenCl, SaxpyIsRight) {
  constexpr int kCount = 1000;  // not a multiple of the block
  std::vector<float> x(kCount), y(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[static_cast<std::size_t>(i)] = static_cast<float>(i);
    y[static_cast<std::size_t>(i)] = 1;
  }
  CompileRequest request = saxpy();
  request.config = {};
  request.config.set("OFFSET", true);  // a boolean macro is 1
  auto kernel = build(request);
  auto dx = upload(x), dy = upload(y);
  ASSERT_TRUE(device_->run(launch_saxpy(kernel.get(), dx.get(), dy.get(), kCount)).is_ok());
  const std::vector<float> result = download(*dy);
  for (int i = 0; i < kCount; ++i)
    ASSERT_EQ(result[static_cast<std::size_t>(i)], 2.0F * static_cast<float>(i) + 2.0F) << i;
}

TEST_F(OpenCl, AnArgumentIsAWindowOnItsBuffer) {
  const std::size_t gap = device_->buffer_alignment();
  constexpr int kCount = 64;
  auto kernel = build(saxpy());
  auto dx = upload(std::vector<float>(kCount, 3.0F));
  auto dy = device_->allocate(2 * gap + kCount * sizeof(float));
  ASSERT_TRUE(dy.is_ok());
  ASSERT_TRUE(device_->fill(**dy, 0, 0xAB, (*dy)->bytes()).is_ok());
  ASSERT_TRUE(device_->fill(**dy, gap, 0, kCount * sizeof(float)).is_ok());
  Launch launch = launch_saxpy(kernel.get(), dx.get(), dy->get(), kCount);
  launch.arguments[1].offset = gap;
  launch.arguments[1].bytes = kCount * sizeof(float);
  ASSERT_TRUE(device_->run(launch).is_ok());
  ASSERT_TRUE(device_->run(launch).is_ok());  // the window is there already
  std::vector<std::uint8_t> bytes((*dy)->bytes());
  ASSERT_TRUE(device_->read(**dy, 0, bytes.data(), bytes.size()).is_ok());
  for (std::size_t i = 0; i < gap; ++i) {
    ASSERT_EQ(bytes[i], 0xAB) << i;
    ASSERT_EQ(bytes[bytes.size() - 1 - i], 0xAB) << i;
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    float value = 0;
    std::memcpy(&value, &bytes[gap + i * sizeof value], sizeof value);
    ASSERT_EQ(value, 12.0F) << i;
  }
  launch.arguments[1].offset = 4;
  EXPECT_EQ(device_->run(launch).code(), Code::kInvalid);
  launch.arguments[1].offset = (*dy)->bytes();
  EXPECT_EQ(device_->run(launch).code(), Code::kInvalid);
}

TEST_F(OpenCl, ACompileErrorCarriesTheCompilersLog) {
  CompileRequest request = saxpy();
  request.source = "kernel void saxpy(global float* x) { x[0] = no_such_thing; }";
  auto binary = device_->compile(request);
  ASSERT_FALSE(binary.is_ok());
  EXPECT_EQ(binary.status().code(), Code::kInvalid);
  EXPECT_NE(binary.status().message().find("no_such_thing"), std::string::npos)
      << binary.status().message();
  EXPECT_NE(binary.status().message().find("saxpy.cl"), std::string::npos);
}

TEST_F(OpenCl, AMissingEntryIsNamedWithWhatThereIs) {
  CompileRequest request = saxpy();
  request.entry = "daxpy";
  auto binary = device_->compile(request);
  ASSERT_FALSE(binary.is_ok());
  EXPECT_EQ(binary.status().code(), Code::kInvalid);
  EXPECT_NE(binary.status().message().find("it has: saxpy"), std::string::npos)
      << binary.status().message();
}

TEST_F(OpenCl, ASourceWithoutKernelsSaysSo) {
  CompileRequest request = saxpy();
  request.source = "#define BLOCK 64\n";
  auto binary = device_->compile(request);
  ASSERT_FALSE(binary.is_ok());
  EXPECT_NE(binary.status().message().find("it has none"), std::string::npos)
      << binary.status().message();
}

TEST_F(OpenCl, ABlockTooLargeIsInvalid) {
  auto kernel = build(saxpy());
  auto dx = upload(std::vector<float>(64)), dy = upload(std::vector<float>(64));
  Launch launch = launch_saxpy(kernel.get(), dx.get(), dy.get(), 64);
  launch.shape.block = {static_cast<std::uint32_t>(device_->info().max_threads_per_block), 2, 1};
  const Status status = device_->run(launch);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("threads per block"), std::string::npos) << status.message();
  EXPECT_EQ(device_->time(launch, {}).status().code(), Code::kInvalid);
  launch = launch_saxpy(kernel.get(), dx.get(), dy.get(), 64);
  launch.arguments.pop_back();
  EXPECT_EQ(device_->run(launch).code(), Code::kInvalid);
  launch = launch_saxpy(kernel.get(), dx.get(), dy.get(), 64);
  launch.arguments[3].scalar = raw(std::int64_t{64});  // the kernel wants 4 bytes
  EXPECT_EQ(device_->run(launch).code(), Code::kInvalid);
  EXPECT_TRUE(device_->run(launch_saxpy(kernel.get(), dx.get(), dy.get(), 64)).is_ok());
}

TEST_F(OpenCl, TimesEverySampleAsked) {
  auto kernel = build(saxpy());
  auto dx = upload(std::vector<float>(1 << 16)), dy = upload(std::vector<float>(1 << 16));
  const Launch launch = launch_saxpy(kernel.get(), dx.get(), dy.get(), 1 << 16);
  for (const TimingRequest& request :
       {TimingRequest{100, 1, false, 0}, TimingRequest{5, 3, true, 0}}) {
    auto samples = device_->time(launch, request);
    ASSERT_TRUE(samples.is_ok()) << samples.status().message();
    ASSERT_EQ(static_cast<int>(samples->size()), request.samples);
    for (const Sample& sample : *samples) {
      EXPECT_GT(sample.ms, 0);
      EXPECT_LT(sample.ms, 60'000);
    }
  }
  // A budget that is gone at once still gives a sample.
  EXPECT_EQ(device_->time(launch, {100, 1, false, 1e-9})->size(), 1u);
}

TEST_F(OpenCl, CopiesAndFillsRanges) {
  auto from = upload({1, 2, 3, 4}), to = upload({9, 9, 9, 9});
  ASSERT_TRUE(device_->copy(*to, 4, *from, 0, 8).is_ok());
  EXPECT_EQ(download(*to), (std::vector<float>{9, 1, 2, 9}));
  ASSERT_TRUE(device_->fill(*to, 3 * sizeof(float), 0, 4).is_ok());
  EXPECT_EQ(download(*to), (std::vector<float>{9, 1, 2, 0}));
  EXPECT_EQ(device_->copy(*to, 12, *from, 0, 8).code(), Code::kInvalid);
  EXPECT_EQ(device_->fill(*to, 17, 0, 0).code(), Code::kInvalid);
  EXPECT_FALSE(device_->allocate(0).is_ok());
  EXPECT_EQ(device_->allocate(std::size_t{1} << 50).status().code(), Code::kUnavailable);
}

TEST_F(OpenCl, CompilesFromSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<Status> statuses(4);
  for (std::size_t i = 0; i < statuses.size(); ++i)
    threads.emplace_back([&, i] {
      CompileRequest request = saxpy();
      request.config.set("OFFSET", static_cast<std::int64_t>(i));
      statuses[i] = device_->compile(request).status();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST_F(OpenCl, ADamagedBinaryIsRefused) {
  EXPECT_EQ(device_->load({"saxpy", "not a binary", "", 0}).status().code(), Code::kInvalid);
  EXPECT_EQ(device_->load({"saxpy", "", "", 0}).status().code(), Code::kInvalid);
}

// What PoCL gives where another process builds the same source; to load it would abort.
TEST_F(OpenCl, ABinaryWithoutItsProgramIsRefused) {
  auto binary = device_->compile(saxpy());
  ASSERT_TRUE(binary.is_ok());
  const std::string name = "/program.bc";
  const std::size_t at = binary->image.find(name);
  if (at == std::string::npos) GTEST_SKIP() << "not a binary of PoCL's";
  std::uint32_t length = 0;
  std::memcpy(&length, binary->image.data() + at + name.size(), sizeof length);
  ASSERT_GT(length, 0U);
  Binary emptied = *binary, absent = *binary;
  emptied.image.replace(at + name.size(), sizeof length + length, sizeof length, '\0');
  absent.image.erase(at, name.size() + sizeof length + length);
  for (const Binary& less : {emptied, absent})
    EXPECT_EQ(device_->load(less).status().message(),
              "the binary of 'saxpy' lacks its program: compile it again");
  EXPECT_TRUE(device_->load(*binary).is_ok());
}

// The other half of the next test, which runs it in a separate process.
TEST_F(OpenCl, DISABLED_LoadsABinaryFromAFile) {
  const std::string path = environment_variable("PURLIN_TEST_BINARY");
  ASSERT_NE(path, "");
  auto kernel = device_->load({"saxpy", *read_file(path), "", 0});
  ASSERT_TRUE(kernel.is_ok()) << kernel.status().message();
  auto dx = upload(std::vector<float>(64, 5.0F)), dy = upload(std::vector<float>(64, 1.0F));
  ASSERT_TRUE(device_->run(launch_saxpy(kernel->get(), dx.get(), dy.get(), 64)).is_ok());
  EXPECT_EQ(download(*dy)[63], 18.0F);
}

TEST_F(OpenCl, BinariesOutliveTheirProcess) {
  CompileRequest request = saxpy();
  request.config.set("OFFSET", std::int64_t{7});
  auto binary = device_->compile(request);
  ASSERT_TRUE(binary.is_ok());
  EXPECT_GT(binary->compile_s, 0);
  const std::string folder = *make_temporary_directory("purlin-gpu-test");
  const std::string path = join_path(folder, "saxpy.bin");
  ASSERT_TRUE(write_atomic(path, binary->image).is_ok());
  Process::Options options;
  options.argv = {"/proc/" + std::to_string(::getpid()) + "/exe", "--gtest_also_run_disabled_tests",
                  "--gtest_filter=OpenCl.DISABLED_Loads*"};
  options.environment["PURLIN_TEST_BINARY"] = path;
  options.environment["POCL_CACHE_DIR"] = folder;  // nothing to be found but the binary itself
  auto child = run_captured(options, 120);
  ASSERT_TRUE(child.is_ok()) << child.status().message();
  EXPECT_TRUE(child->exit.ok()) << child->out << child->err;
  EXPECT_NE(child->out.find("[  PASSED  ] 1 test"), std::string::npos) << child->out;
  EXPECT_TRUE(remove_tree(folder).is_ok());
}

TEST(OpenClBackend, ADeviceThatIsNotThereIsNamed) {
  auto device = make_opencl_backend()->open(999);
  EXPECT_EQ(device.status().code(), Code::kNotFound);
  EXPECT_NE(device.status().message().find("opencl:999"), std::string::npos);
}

}  // namespace
}  // namespace purlin::gpu
