// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatcher.h"

#include "backlog/file.h"
#include "backlog/work_tasks.h"
#include "cache/testing.h"
#include "runtime/testing.h"

#include <gtest/gtest.h>

#include <thread>

namespace purlin::runtime {
namespace {

using cache::Store;
using cache::TemporaryDirectory;

// A dispatcher on a fake context of the program, over a cache in a separate folder.
struct Bench {
  TemporaryDirectory folder;
  std::string cache = folder.path() + "/configs";
  DispatcherOptions options;
  std::shared_ptr<CacheSession> session;
  gpu::FakeAppContext* app_context = nullptr;
  std::unique_ptr<Dispatcher> dispatcher;
  int x = 0, out = 0, n = 0;
  void* x_handle = &x;
  void* out_handle = &out;
  void* values[3] = {&x_handle, &out_handle, &n};

  void put(std::int64_t extent, const Config& config, const Config& runner_up = {}) {
    cache::Entry entry = sample_winner(sample_spec(), extent, config);
    entry.runner_up = runner_up;
    ASSERT_TRUE(Store::open(cache)->put(entry).is_ok());
  }
  Status open(
      std::unique_ptr<gpu::FakeAppContext> device = std::make_unique<gpu::FakeAppContext>()) {
    PURLIN_ASSIGN(session, CacheSession::open(cache.c_str()));
    app_context = device.get();
    app_context->notes = true;
    options.binaries = folder.path() + "/binaries";
    PURLIN_ASSIGN(dispatcher, Dispatcher::open(session, sample_spec(), std::move(device), options));
    return Status::ok();
  }
  Status launch(std::int64_t extent) { return dispatcher->dispatch(&extent, {nullptr, values, 3}); }
  // What the last launch was.
  std::string last() const {
    return app_context->noted.back().config + " " +
           std::to_string(app_context->noted.back().shape.grid[0]);
  }
};

TEST(Dispatcher, ServesTheWinnerOfEachShapeAndTheDefaultElsewhere) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  ASSERT_TRUE(bench.open().is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=64 ITEMS=4 4");
  ASSERT_TRUE(bench.launch(1000).is_ok());  // of its bucket
  EXPECT_EQ(bench.last(), "BLOCK=64 ITEMS=4 4");
  ASSERT_TRUE(bench.launch(1001).is_ok());  // of its bucket, but 1001 % 4 != 0
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 32");
  ASSERT_TRUE(bench.launch(4096).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 128");
  EXPECT_EQ(bench.app_context->compiles, 2);
}

TEST(Dispatcher, CompilesOnceForAllProcesses) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  ASSERT_TRUE(bench.open().is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.app_context->compiles, 2);
  ASSERT_TRUE(bench.open().is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.app_context->compiles, 0);
}

TEST(Dispatcher, WhatDoesNotCompileLeavesTheDefault) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  auto app_context = std::make_unique<gpu::FakeAppContext>();
  app_context->on_compile = [](const gpu::CompileRequest& request) {
    return *request.config.find("BLOCK") == Value(std::int64_t{64})
               ? error(Code::kInvalid, "ptxas is unhappy")
               : Status::ok();
  };
  ASSERT_TRUE(bench.open(std::move(app_context)).is_ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 32");
  EXPECT_EQ(bench.app_context->compiles, 2);  // the failure is remembered
  const std::int64_t n = 1024;
  EXPECT_EQ(bench.dispatcher->choice(&n).reason, "ptxas is unhappy");
}

TEST(Dispatcher, ADefaultThatDoesNotCompileIsAnErrorAtOpen) {
  Bench bench;
  auto app_context = std::make_unique<gpu::FakeAppContext>();
  app_context->on_compile = [](const gpu::CompileRequest&) { return error(Code::kInvalid, "no"); };
  EXPECT_EQ(bench.open(std::move(app_context)).message(), "copy: the default config: no");
}

TEST(Dispatcher, ASpecWithATensorMapIsRefusedWithWhatToDo) {
  const Bench bench;
  KernelSpec spec = sample_spec();
  spec.arguments[0].tensor_map.emplace();
  const Status status = Dispatcher::open(CacheSession::open(bench.cache.c_str()).value(), spec,
                                         std::make_unique<gpu::FakeAppContext>(), {})
                            .status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("'x' is a tensor map"), std::string::npos) << status.message();
}

TEST(Dispatcher, CompilesNothingWhileAGraphIsCaptured) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  bench.put(2048, sample_config(128, 2));
  ASSERT_TRUE(bench.open().is_ok());
  const std::int64_t prepared = 2048;
  ASSERT_TRUE(bench.dispatcher->prepare(&prepared).is_ok());
  bench.app_context->is_capturing = true;
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 32");
  ASSERT_TRUE(bench.launch(2048).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=128 ITEMS=2 8");
  EXPECT_EQ(bench.app_context->compiles, 2);
  bench.app_context->is_capturing = false;
  ASSERT_TRUE(bench.launch(1024).is_ok());  // and catches up afterwards
  EXPECT_EQ(bench.last(), "BLOCK=64 ITEMS=4 4");
}

TEST(Dispatcher, CompileAheadOnlyLeavesCompilingToPrepare) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  bench.options.compile_ahead_only = true;
  ASSERT_TRUE(bench.open().is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 32");
  const std::int64_t n = 1024;
  ASSERT_TRUE(bench.dispatcher->prepare(&n).is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=64 ITEMS=4 4");
}

TEST(Dispatcher, TakesUpWhatWasTunedSince) {
  Bench bench;
  ASSERT_TRUE(bench.open().is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 32");
  bench.put(1024, sample_config(64, 4));
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 32");
  ASSERT_TRUE(bench.session->reload().is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=64 ITEMS=4 4");
}

TEST(Dispatcher, AShapeThatNothingCanRunIsAnError) {
  Bench bench;
  ASSERT_TRUE(bench.open().is_ok());
  const Status status = bench.launch(-5);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("copy at N=-5: the default config"), std::string::npos)
      << status.message();
}

TEST(Dispatcher, ServesAnEntryOfAnotherDriverUnlessRefused) {
  for (const bool refuse : {false, true}) {
    Bench bench;
    bench.put(1024, sample_config(64, 4));
    auto app_context = std::make_unique<gpu::FakeAppContext>();
    app_context->mutable_info().driver = "2.0";
    bench.options.refuse_stale = refuse;
    ASSERT_TRUE(bench.open(std::move(app_context)).is_ok());
    ASSERT_TRUE(bench.launch(1024).is_ok());
    EXPECT_EQ(bench.last(), refuse ? "BLOCK=32 ITEMS=1 32" : "BLOCK=64 ITEMS=4 4");
    ASSERT_TRUE(bench.session->flush().is_ok());
    const auto tasks =
        backlog::work_tasks(*backlog::WorkList::read(bench.cache), *Store::open(bench.cache)).tasks;
    ASSERT_EQ(tasks.size(), 1u);
    EXPECT_EQ(tasks[0].key.kind, "validate");
  }
}

TEST(Dispatcher, AnEntryOfAnotherModelIsNeverServed) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  auto app_context = std::make_unique<gpu::FakeAppContext>();
  app_context->mutable_info().name = "Another GPU";
  ASSERT_TRUE(bench.open(std::move(app_context)).is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=32 ITEMS=1 32");
}

TEST(Dispatcher, CountsLaunchesForTheWorkList) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  ASSERT_TRUE(bench.open().is_ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(bench.launch(1024).is_ok());
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(bench.launch(4000).is_ok());
  bench.dispatcher.reset();
  bench.session.reset();
  const backlog::WorkList list = *backlog::WorkList::read(bench.cache);
  ASSERT_EQ(list.rows().size(), 2u);
  EXPECT_EQ(backlog::hot_entries(list).begin()->second, 5u);
  const auto tasks = backlog::work_tasks(list, *Store::open(bench.cache)).tasks;
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].key.kind, "tune");
  EXPECT_EQ(tasks[0].key.shape, "N=4000");
  EXPECT_EQ(tasks[0].launches, 7u);
  // Once it is tuned, it is off the list.
  bench.put(4096, sample_config(128, 1));
  EXPECT_TRUE(backlog::work_tasks(list, *Store::open(bench.cache)).tasks.empty());
}

TEST(Dispatcher, DemotesAWinnerThatNoLongerWins) {
  Bench bench;
  bench.put(1024, sample_config(64, 4), sample_config(128, 2));
  bench.options.shadow_every = 2;
  bench.options.seed = 7;
  auto app_context = std::make_unique<gpu::FakeAppContext>();
  app_context->time_ms = [](const std::string& config) {
    return config == "BLOCK=64 ITEMS=4" ? 1.10 : config == "BLOCK=128 ITEMS=2" ? 1.0 : 2.0;
  };
  ASSERT_TRUE(bench.open(std::move(app_context)).is_ok());
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.last(), "BLOCK=128 ITEMS=2 4");
  const std::int64_t n = 1024;
  EXPECT_TRUE(bench.dispatcher->choice(&n).demoted);
  // Every launch of the program was one of the two, and none was lost to the shadow.
  EXPECT_EQ(bench.app_context->noted.size(), 2000u);
  const auto tasks = *backlog::open_tasks(bench.cache);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].key.kind, "retune");
  EXPECT_NEAR(tasks[0].ratio, 1.10, 1e-6);
  // Other processes do not get it either.
  ASSERT_TRUE(bench.open().is_ok());
  ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_NE(bench.last(), "BLOCK=64 ITEMS=4 4");
}

TEST(Dispatcher, AWinnerThatWinsIsNotDemoted) {
  Bench bench;
  bench.put(1024, sample_config(64, 4), sample_config(128, 2));
  bench.options.shadow_every = 2;
  bench.options.seed = 7;
  ASSERT_TRUE(bench.open().is_ok());  // all take the same time
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_GT(bench.app_context->shadows, 2000u);
  EXPECT_EQ(bench.last(), "BLOCK=64 ITEMS=4 4");
}

TEST(Dispatcher, NoShadowOverAnOutputThatIsAlsoAnInput) {
  Bench bench;
  bench.put(1024, sample_config(64, 4));
  bench.options.shadow_every = 2;
  ASSERT_TRUE(bench.open().is_ok());
  bench.out_handle = bench.x_handle;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(bench.launch(1024).is_ok());
  EXPECT_EQ(bench.app_context->shadows, 0u);
}

TEST(Dispatcher, ManyThreadsLaunchWhileTheCacheIsReloaded) {
  Bench bench;
  for (std::int64_t n = 64; n <= 4096; n *= 2) bench.put(n, sample_config(64, 2));
  bench.options.shadow_every = 8;
  ASSERT_TRUE(bench.open().is_ok());
  bench.app_context->notes = false;
  constexpr int kThreads = 4, kLaunches = 3000;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLaunches; ++i)
        if (!bench.launch(64 + 2 * ((i * 7 + t) % 500)).is_ok()) ++failures;
    });
  for (int i = 0; i < 20; ++i) {
    bench.put(8192 << (i % 4), sample_config(32, 4));
    ASSERT_TRUE(bench.session->reload().is_ok());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(bench.app_context->launches, static_cast<std::uint64_t>(kThreads) * kLaunches);
  ASSERT_TRUE(bench.session->flush().is_ok());
  std::uint64_t counted = 0;
  const Result<backlog::WorkList> work = backlog::WorkList::read(bench.cache);
  ASSERT_TRUE(work.is_ok()) << work.status().message();
  for (const backlog::WorkRow& row : work->rows()) counted += row.launches();
  EXPECT_EQ(counted, static_cast<std::uint64_t>(kThreads) * kLaunches);
}

}  // namespace
}  // namespace purlin::runtime
