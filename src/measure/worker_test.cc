// SPDX-License-Identifier: Apache-2.0
// Workers over a fake device whose kernels misbehave on demand. The test program is its own worker:
// run as `measure_test worker` it serves with that device.
#include "measure/worker.h"

#include "base/files.h"
#include "gpu/fake/fake_device.h"
#include "measure/worker_server.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

namespace purlin::measure {
namespace {

constexpr double kNever = 60;  // seconds; a limit no test is meant to reach

Status misbehave(const gpu::FakeKernel& kernel, const gpu::Launch&) {
  const Value* value = kernel.config.find("MODE");
  const std::string mode = value == nullptr ? "" : to_text(*value);
  if (mode == "crash") {
    std::fputs("about to crash\n", stderr);
    ::raise(SIGSEGV);
  }
  if (mode == "hang")
    while (true) ::pause();
  if (mode == "exit") ::_exit(7);
  if (mode == "lost") return {Code::kFailed, "an illegal memory access"};
  if (mode == "refuse") return {Code::kInvalid, "too many resources"};
  if (mode == "chatter")
    for (int i = 0; i < 20'000; ++i)
      std::puts("{\"id\": 1, \"evaluation\": {}} printed by a kernel");
  if (mode == "garbage")
    for (int fd = 3; fd < 8; ++fd)
      if (::write(fd, "]]not a reply\n", 14) < 0) continue;
  if (mode == "endless")
    while (true)
      for (int fd = 3; fd < 8; ++fd)
        if (::write(fd, std::string(1 << 16, 'x').data(), 1 << 16) < 0) continue;
  return Status::ok();
}

Result<std::unique_ptr<gpu::Device>> open_test_device(std::string_view name) {
  if (name == "none") return error(Code::kUnavailable, "no such device here");
  if (name == "stillborn") ::raise(SIGKILL);
  while (name == "silent") ::pause();
  gpu::FakeBehaviour behaviour;
  behaviour.launch = misbehave;
  if (name == "sleeper")
    behaviour.launch = [](const gpu::FakeKernel&, const gpu::Launch&) -> Status {
      while (true) ::pause();
    };
  if (name != "uncounted")
    behaviour.count = [](const gpu::FakeKernel& kernel,
                         const gpu::Launch&) -> Result<std::map<std::string, double>> {
      if (to_text(*kernel.config.find("MODE")) == "chatter")
        return Status(Code::kTimeout, "somebody else counts");
      return std::map<std::string, double>{{"dram_read_bytes", 4096}};
    };
  behaviour.compile = [device = std::string(name)](const gpu::CompileRequest& request) -> Status {
    const Value* mode = request.config.find("MODE");
    while (mode == nullptr && device == "stuck compiler") ::pause();
    if (mode == nullptr && device == "busy compiler") ::sleep(1);
    if (mode == nullptr || to_text(*mode) != "syntax") return Status::ok();
    return {Code::kInvalid,
            "bad.cl:3:1: error: unknown type name 'flaot'\n" + std::string(10'000, '^') + " note"};
  };
  return std::unique_ptr<gpu::Device>(std::make_unique<gpu::FakeDevice>(std::move(behaviour)));
}

constexpr const char* kSpec = R"toml(
schema = "purlin.spec/1"
name = "pattern"
op = "elementwise"
[problem]
N = 64
[kernel]
entry = "pattern"
[kernel.opencl]
file = "pattern.cl"
[parameters]
MODE = ["good", "crash", "hang", "exit", "lost", "refuse", "chatter", "garbage", "endless", "syntax"]
[launch]
grid = ["ceil_div(N, 32)"]
block = [32]
[[arguments]]
name = "out"
role = "output"
dtype = "f32"
shape = ["N"]
[reference]
entry = "pattern"
[reference.opencl]
file = "pattern.cl"
[reference.launch]
grid = ["ceil_div(N, 32)"]
block = [32]
)toml";

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = make_temporary_directory("purlin-worker").value();
    ASSERT_TRUE(write_atomic(join_path(directory_, "pattern.toml"), kSpec).is_ok());
    ASSERT_TRUE(write_atomic(join_path(directory_, "pattern.cl"), "kernel").is_ok());
    setup_.executable = "/proc/self/exe";
    setup_.device = "test";
    setup_.spec_path = join_path(directory_, "pattern.toml");
  }
  void TearDown() override { static_cast<void>(remove_tree(directory_)); }

  void start(bool compile_only = false) {
    Result<std::unique_ptr<Worker>> worker = Worker::start(setup_, compile_only);
    ASSERT_TRUE(worker.is_ok()) << worker.status().message();
    worker_ = std::move(worker).value();
  }
  Evaluation evaluate(const char* mode, double timeout_s = kNever) {
    const Result<Evaluation> result = worker_->evaluate(config(mode), Policy{}, timeout_s);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    return result.is_ok() ? *result : Evaluation{};
  }
  static Config config(const char* mode) {
    Config config;
    config.set("MODE", std::string(mode));
    return config;
  }
  void expect_alive() {
    const Evaluation after = evaluate("good");
    EXPECT_EQ(after.status, EvaluationStatus::kOk) << after.message;
  }

  std::string directory_;
  WorkerSetup setup_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(WorkerTest, RepeatsABatchAndOutlivesOneThatCrashes) {
  start();
  ASSERT_TRUE(evaluate("good").ok());
  Evaluation batch = *worker_->repeat(config("good"), Policy{}, kNever);
  EXPECT_TRUE(batch.ok()) << batch.message;
  EXPECT_TRUE(batch.samples.empty()) << "it was loaded";
  batch = *worker_->repeat(config("good"), Policy{}, kNever);
  EXPECT_TRUE(batch.ok()) << batch.message;
  EXPECT_FALSE(batch.samples.empty());
  EXPECT_EQ(worker_->repeat(config("crash"), Policy{}, kNever)->status, EvaluationStatus::kCrash);
  expect_alive();
  EXPECT_TRUE(worker_->repeat(config("good"), Policy{}, kNever)->ok());
}

TEST_F(WorkerTest, EvaluatesInAnotherProcess) {
  start();
  EXPECT_EQ(worker_->device().backend, "fake");
  EXPECT_TRUE(worker_->executes());
  const Evaluation evaluation = evaluate("good");
  EXPECT_EQ(evaluation.status, EvaluationStatus::kOk) << evaluation.message;
  EXPECT_EQ(evaluation.samples.size(), 7u);
  EXPECT_EQ(evaluation.time_ms, 1.0);
  EXPECT_EQ(evaluation.config, config("good"));
  EXPECT_GT(evaluation.cost_s, 0);
  EXPECT_EQ(worker_->restarts(), 0);
}

TEST_F(WorkerTest, CountsWhereTheDeviceDoes) {
  start();
  const auto counted = worker_->count(config("good"), Policy{}, kNever);
  ASSERT_TRUE(counted.is_ok()) << counted.status().message();
  EXPECT_EQ(*counted, (std::map<std::string, double>{{"dram_read_bytes", 4096}}));
  EXPECT_EQ(evaluate("good").counters.count("dram_read_bytes"), 0u) << "only when asked";
  EXPECT_EQ(worker_->count(config("chatter"), Policy{}, kNever).status().code(), Code::kTimeout);
  const Status crashed = worker_->count(config("crash"), Policy{}, kNever).status();
  EXPECT_EQ(crashed.code(), Code::kFailed);
  EXPECT_NE(crashed.message().find("signal 11"), std::string::npos) << crashed.message();
  EXPECT_EQ(worker_->restarts(), 1);
  EXPECT_EQ(worker_->count(config("hang"), Policy{}, 0.2).status().code(), Code::kTimeout);
  EXPECT_FALSE(worker_->count(config("syntax"), Policy{}, kNever).is_ok());
  EXPECT_TRUE(worker_->count(config("good"), Policy{}, kNever).is_ok());
  setup_.device = "uncounted";
  start();
  const Status none = worker_->count(config("good"), Policy{}, kNever).status();
  EXPECT_EQ(none.code(), Code::kUnavailable);
  EXPECT_EQ(none.message(), "hardware counters are read on CUDA devices only");
}

TEST_F(WorkerTest, ACrashCostsOneEvaluation) {
  start();
  const Evaluation evaluation = evaluate("crash");
  EXPECT_EQ(evaluation.status, EvaluationStatus::kCrash);
  EXPECT_NE(evaluation.message.find("signal 11"), std::string::npos) << evaluation.message;
  EXPECT_NE(evaluation.message.find("verified"), std::string::npos) << evaluation.message;
  EXPECT_NE(evaluation.message.find("about to crash"), std::string::npos) << evaluation.message;
  expect_alive();
  EXPECT_EQ(worker_->restarts(), 1);
}

TEST_F(WorkerTest, AHangIsKilledAtTheTimeout) {
  start();
  const Evaluation evaluation = evaluate("hang", 0.2);
  EXPECT_EQ(evaluation.status, EvaluationStatus::kTimeout);
  EXPECT_NE(evaluation.message.find("longer than 0.2 s"), std::string::npos) << evaluation.message;
  expect_alive();
}

TEST_F(WorkerTest, AnExitIsACrash) {
  start();
  const Evaluation evaluation = evaluate("exit");
  EXPECT_EQ(evaluation.status, EvaluationStatus::kCrash);
  EXPECT_NE(evaluation.message.find("exit status 7"), std::string::npos) << evaluation.message;
  expect_alive();
}

TEST_F(WorkerTest, ALostDeviceIsGivenUpWithItsProcess) {
  start();
  const Evaluation evaluation = evaluate("lost");
  EXPECT_EQ(evaluation.status, EvaluationStatus::kCrash);
  EXPECT_NE(evaluation.message.find("illegal memory access"), std::string::npos);
  EXPECT_EQ(worker_->restarts(), 1);
  expect_alive();
}

TEST_F(WorkerTest, ARefusedLaunchKeepsTheProcess) {
  start();
  EXPECT_EQ(evaluate("refuse").status, EvaluationStatus::kLaunch);
  EXPECT_EQ(worker_->restarts(), 0);
  expect_alive();
}

TEST_F(WorkerTest, WhatAKernelPrintsIsNoReply) {
  start();
  const Evaluation evaluation = evaluate("chatter");
  EXPECT_EQ(evaluation.status, EvaluationStatus::kOk) << evaluation.message;
  EXPECT_EQ(evaluation.samples.size(), 7u);
}

TEST_F(WorkerTest, GarbageOnThePipeIsACrash) {
  start();
  const Evaluation evaluation = evaluate("garbage");
  EXPECT_EQ(evaluation.status, EvaluationStatus::kCrash);
  EXPECT_NE(evaluation.message.find("not a reply"), std::string::npos) << evaluation.message;
  expect_alive();
}

TEST_F(WorkerTest, AReplyWithoutAnEndIsCutOff) {
  start();
  EXPECT_EQ(evaluate("endless").status, EvaluationStatus::kCrash);
  expect_alive();
}

TEST_F(WorkerTest, ACompilersLogIsBoundedAndKeepsTheError) {
  start();
  const Evaluation evaluation = evaluate("syntax");
  EXPECT_EQ(evaluation.status, EvaluationStatus::kCompile);
  EXPECT_NE(evaluation.message.find("unknown type name"), std::string::npos);
  EXPECT_LT(evaluation.message.size(), 5000u);
}

TEST_F(WorkerTest, CompilesForAnotherWorkerToUse) {
  setup_.binary_cache = join_path(directory_, "binaries");
  start(true);
  Result<Evaluation> compiled = worker_->compile(config("good"), kNever);
  ASSERT_TRUE(compiled.is_ok());
  EXPECT_EQ(compiled->status, EvaluationStatus::kOk) << compiled->message;
  EXPECT_FALSE(compiled->cached_binary);
  EXPECT_EQ(worker_->compile(config("syntax"), kNever)->status, EvaluationStatus::kCompile);
  EXPECT_FALSE(worker_->evaluate(config("good"), Policy{}, kNever).is_ok());
  start();
  EXPECT_TRUE(evaluate("good").cached_binary);
}

TEST_F(WorkerTest, HoldsSeveralBenchesAndOpensThemAgain) {
  setup_.spec_path.clear();
  start();
  EXPECT_FALSE(worker_->evaluate(config("good"), Policy{}, kNever).is_ok());
  BenchSetup bench{join_path(directory_, "pattern.toml"), {}, true, 0};
  EXPECT_EQ(worker_->open(bench).value_or(-1), 0);
  bench.problem.set("N", 96);
  EXPECT_EQ(worker_->open(bench).value_or(-1), 1);
  EXPECT_TRUE(worker_->evaluate(config("good"), Policy{}, kNever, 1)->ok());
  EXPECT_EQ(worker_->evaluate(config("crash"), Policy{}, kNever, 0)->status,
            EvaluationStatus::kCrash);
  EXPECT_TRUE(worker_->evaluate(config("good"), Policy{}, kNever, 1)->ok());
  EXPECT_TRUE(worker_->evaluate(config("good"), Policy{}, kNever, 0)->ok());
}

TEST_F(WorkerTest, WhatIsWrongWithTheSetupIsSaid) {
  setup_.spec_path = join_path(directory_, "missing.toml");
  EXPECT_EQ(Worker::start(setup_).status().code(), Code::kNotFound);
  setup_.device = "none";
  const Status device = Worker::start(setup_).status();
  EXPECT_EQ(device.code(), Code::kUnavailable);
  EXPECT_EQ(device.message(), "no such device here");
  setup_.executable = "/nonexistent/purlin";
  EXPECT_EQ(Worker::start(setup_).status().code(), Code::kNotFound);
}

TEST_F(WorkerTest, AChildThatCannotLiveIsGivenUp) {
  setup_.device = "stillborn";
  const Status status = Worker::start(setup_).status();
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_NE(status.message().find("3 times"), std::string::npos) << status.message();
}

TEST_F(WorkerTest, AStartIsStoppedOnRequest) {
  const std::atomic<bool> stop = true;
  setup_.device = "silent";
  const Status status = Worker::start(setup_, false, &stop).status();
  EXPECT_EQ(status.code(), Code::kCancelled) << status.message();
}

// The budget of a session ends while a kernel hangs: that says nothing of the kernel.
TEST_F(WorkerTest, ALimitEndsAnEvaluationWithoutAResult) {
  start();
  Policy policy;
  policy.limit_s = 0.2;
  EXPECT_EQ(worker_->evaluate(config("hang"), policy, kNever).status().code(), Code::kCancelled);
  expect_alive();
}

TEST_F(WorkerTest, ARequestToStopEndsAnEvaluationUnderWay) {
  std::atomic<bool> stop = false;
  Result<std::unique_ptr<Worker>> worker = Worker::start(setup_, false, &stop);
  ASSERT_TRUE(worker.is_ok()) << worker.status().message();
  stop = true;
  EXPECT_EQ((*worker)->evaluate(config("hang"), Policy{}, kNever).status().code(),
            Code::kCancelled);
}

TEST_F(WorkerTest, ThePhasesOfTheStartAreReported) {
  std::vector<std::string> phases;
  setup_.on_phase = [&](std::string_view phase) { phases.emplace_back(phase); };
  start();
  EXPECT_EQ(phases, (std::vector<std::string>{"starts a worker for test", "lays out the arguments",
                                              "compiles the reference", "runs the reference"}));
}

TEST_F(WorkerTest, AReferenceThatTakesTooLongIsNamed) {
  setup_.device = "sleeper";
  setup_.reference_timeout_s = 0.5;
  const Status status = Worker::start(setup_).status();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_NE(status.message().find("a smaller shape"), std::string::npos) << status.message();
}

// A compiler that waits for a processor says nothing of the shape.
TEST_F(WorkerTest, AReferenceThatCompilesForLongIsNotTooMuchForTheDevice) {
  setup_.device = "busy compiler";
  setup_.reference_timeout_s = 0.5;
  start();
  expect_alive();
  setup_.device = "stuck compiler";
  setup_.start_timeout_s = 0.5;
  const Status status = Worker::start(setup_).status();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_EQ(status.message().find("a smaller shape"), std::string::npos) << status.message();
}

TEST_F(WorkerTest, AProgramThatIsNoWorkerIsGivenUp) {
  setup_.executable = "/bin/true";
  EXPECT_EQ(Worker::start(setup_).status().code(), Code::kFailed);
}

}  // namespace
}  // namespace purlin::measure

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "worker")
    return purlin::measure::worker_main(purlin::measure::open_test_device);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
