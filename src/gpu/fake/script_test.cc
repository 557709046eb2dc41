// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "gpu/fake/fake_device.h"

#include <gtest/gtest.h>

#include <cstring>

namespace purlin::gpu {
namespace {

class FakeScript : public testing::Test {
 protected:
  void SetUp() override { folder_ = *make_temporary_directory("purlin-fake"); }
  void TearDown() override { EXPECT_TRUE(remove_tree(folder_).is_ok()); }

  Result<std::unique_ptr<Device>> open(const std::string& text) {
    path_ = join_path(folder_, "script.json");
    EXPECT_TRUE(write_atomic(path_, text).is_ok());
    return open_fake(path_);
  }
  void script(const std::string& text) {
    auto device = open(text);
    ASSERT_TRUE(device.is_ok()) << device.status().message();
    device_ = std::move(*device);
    output_ = device_->allocate(1024).value();
  }
  Result<std::unique_ptr<Kernel>> build(std::int64_t n, const std::string& entry = "k") {
    CompileRequest request;
    request.name = "k.cl";
    request.entry = entry;
    request.config.set("N", n);
    PURLIN_ASSIGN(const Binary binary, device_->compile(request));
    return device_->load(binary);
  }
  // Runs with a window of 512 bytes at 256; gives back the whole buffer.
  Result<std::string> run(std::int64_t n, const std::string& entry = "k") {
    PURLIN_ASSIGN(const auto kernel, build(n, entry));
    PURLIN_TRY(device_->fill(*output_, 0, 0, 1024));
    Launch launch;
    launch.kernel = kernel.get();
    launch.arguments = {{output_.get(), 256, 512, ""}};
    PURLIN_TRY(device_->run(launch));
    std::string bytes(1024, '\0');
    PURLIN_TRY(device_->read(*output_, 0, bytes.data(), bytes.size()));
    return bytes;
  }
  std::string folder_, path_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Buffer> output_;
};

TEST_F(FakeScript, TimeIsAnExpressionOverTheParameters) {
  script(R"({"time_ms": "100 / N if N > 1 else 7", "device": {"name": "Toy", "warp_size": 16}})");
  EXPECT_EQ(device_->info().name, "Toy");
  EXPECT_EQ(device_->info().warp_size, 16);
  EXPECT_EQ(device_->info().max_threads_per_block, 1024);  // a default
  EXPECT_EQ(device_->info().id, "fake:" + path_);
  for (const auto& [n, ms] : {std::pair<int, double>{1, 7}, {4, 25}}) {
    auto kernel = build(n);
    EXPECT_EQ(device_->time({kernel->get(), {}, {}}, {})->front().ms, ms);
  }
}

TEST_F(FakeScript, ConditionsMakeConfigsFail) {
  script(R"({"compile_error_if": "N == 1", "launch_error_if": "N == 2"})");
  EXPECT_EQ(build(1).status().code(), Code::kInvalid);
  EXPECT_EQ(run(2).status().code(), Code::kInvalid);
  EXPECT_TRUE(run(3).is_ok());
  EXPECT_TRUE(run(1, "k_reference").is_ok());
  EXPECT_TRUE(run(2, "k_reference").is_ok());
}

TEST_F(FakeScript, WrongAndOutOfBoundsDifferWhereTheyShould) {
  script(R"({"wrong_if": "N == 1", "out_of_bounds_if": "N == 2"})");
  const std::string good = *run(0), wrong = *run(1), outside = *run(2);
  EXPECT_EQ(good, *run(1, "k_reference"));
  EXPECT_EQ(good.substr(0, 256), wrong.substr(0, 256));
  EXPECT_NE(good.substr(256, 512), wrong.substr(256, 512));
  EXPECT_EQ(good.substr(768), wrong.substr(768));
  EXPECT_EQ(good.substr(0, 768), outside.substr(0, 768));
  EXPECT_NE(good.substr(768), outside.substr(768));
}

TEST_F(FakeScript, CrashTakesTheProcessDown) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  script(R"({"crash_if": "N == 1"})");
  EXPECT_TRUE(run(0).is_ok());
  EXPECT_EXIT((void)run(1), testing::KilledBySignal(SIGABRT), "");
}

TEST_F(FakeScript, MistakesAreNamed) {
  EXPECT_NE(open(R"({"time_ms": "1 +"})").status().message().find("'time_ms'"), std::string::npos);
  EXPECT_NE(open(R"({"crash_of": "1"})").status().message().find("unknown key 'crash_of'"),
            std::string::npos);
  EXPECT_NE(open(R"({"hang_if": []})").status().message().find("expression"), std::string::npos);
  EXPECT_EQ(open("[]").status().code(), Code::kInvalid);
  EXPECT_EQ(open("{").status().code(), Code::kInvalid);
  EXPECT_EQ(open_fake(join_path(folder_, "absent.json")).status().code(), Code::kNotFound);
  script(R"({"time_ms": "M"})");  // the config has no M
  EXPECT_EQ(run(1).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::gpu
