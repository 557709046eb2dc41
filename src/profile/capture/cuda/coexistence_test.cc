// SPDX-License-Identifier: Apache-2.0
// CUDA's whole capture in one program with its CUPTI (tests/programs/fake_cupti.cc) and clients of
// it, so that a thread sanitizer sees all of them. There is one capture per process, with the
// environment of its begin. So where several tests are to run, each runs in a separate process.
#include <cupti.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#if !defined(PURLIN_FAKE_CUPTI) || !defined(PURLIN_FAKE_CUDA)
#error "the build passes PURLIN_FAKE_CUPTI and PURLIN_FAKE_CUDA"
#endif

extern "C" int InitializeInjection();

namespace {

constexpr auto kKernels = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;

template <class F>
F* resolve(const char* name) {
  static void* const library = dlopen(PURLIN_FAKE_CUPTI, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F*>(dlsym(library, name));
}
#define CUPTI(function) resolve<decltype(function)>(#function)

void launch(const char* name, int launches) {
  resolve<void(const char*, int, std::uint64_t)>("fake_launch")(name, launches, 5000);
}
bool enabled(CUpti_ActivityKind kind) {
  return resolve<int(CUpti_ActivityKind)>("fake_enabled")(kind) != 0;
}

// A profiler such as many: it knows its own buffers only, and guards them with one lock, which it
// also holds while it calls CUPTI.
struct Client {
  std::mutex mutex, control;
  std::set<std::uint8_t*> lent;
  std::atomic<long> seen{0}, expected{0}, foreign{0};
} client;

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = 4096;
  *most = 0;
  *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
  const std::lock_guard<std::mutex> lock(client.mutex);
  client.lent.insert(*buffer);
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  {
    const std::lock_guard<std::mutex> lock(client.mutex);
    if (client.lent.erase(buffer) == 0) {
      ++client.foreign;
      return;
    }
  }
  CUpti_Activity* record = nullptr;
  while (CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == kKernels &&
        std::strcmp(reinterpret_cast<CUpti_ActivityKernel10*>(record)->name, "profiled") == 0)
      ++client.seen;
  std::free(buffer);
}

void profile(int launches) {
  CUPTI(cuptiActivityRegisterCallbacks)(requested, completed);
  CUPTI(cuptiActivityEnable)(kKernels);
  launch("profiled", launches);
  client.expected += launches;
  CUPTI(cuptiActivityDisable)(kKernels);
  CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

// The exit status of this program with the running test alone.
int status_alone() {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const testing::TestInfo& test = *all.current_test_info();
  const std::string filter =
      std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/proc/self/exe", "coexistence_test", filter.c_str(), nullptr);
    std::_Exit(127);
  }
  int status = -1;
  (void)::waitpid(child, &status, 0);
  return status;
}

class Coexistence : public testing::Test {
 protected:
  void SetUp() override {
    if (testing::UnitTest::GetInstance()->test_to_run_count() > 1) {
      ASSERT_EQ(status_alone(), 0);
      GTEST_SKIP() << "it ran in a process of its own, and passed";
    }
    char name[] = "/tmp/purlin-coexistence-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    spool_ = name;
    setenv("PURLIN_SPOOL", name, 1);
    setenv("PURLIN_STATE", name, 1);
    setenv("PURLIN_CUPTI", PURLIN_FAKE_CUPTI, 1);
    setenv("PURLIN_FULL", "1", 1);
    setenv("PURLIN_SEAL_PERIOD_MS", "10", 1);
    if (std::getenv("PURLIN_CUPTI_GRACE_MS") == nullptr) setenv("PURLIN_CUPTI_GRACE_MS", "0", 1);
  }
  // The files stay for the exit handlers; they are small, and in /tmp.
  void TearDown() override {
    EXPECT_EQ(client.seen, client.expected);
    EXPECT_EQ(client.foreign, 0);
  }
  void begin() { ASSERT_EQ(InitializeInjection(), 1); }

  // Text that the capture has sealed.
  bool sealed(const char* text) const {
    for (const auto& file : std::filesystem::directory_iterator(spool_)) {
      if (!file.is_regular_file()) continue;  // what runs leave for later ones
      std::ifstream in(file.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)),
                              std::istreambuf_iterator<char>());
      if (bytes.find(text) != std::string::npos) return true;
    }
    return false;
  }
  static bool wait_until(const std::function<bool()>& condition) {
    for (int i = 0; i < 12'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  std::string spool_;
};

// Runs while the others do something.
class Launching {
 public:
  explicit Launching(int threads) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this] {
        while (!done_) {
          launch("work", 10);
          std::this_thread::yield();
        }
      });
  }
  ~Launching() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

TEST_F(Coexistence, ProfilerComesAndGoesWhileThreadsLaunch) {
  begin();
  const Launching others(4);
  for (int i = 0; i < 50; ++i) {
    profile(10);
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 5));
  }
}

TEST_F(Coexistence, CaptureTakesUpAgainAfterEachRun) {
  begin();
  for (int i = 0; i < 5; ++i) {
    profile(10);
    ASSERT_TRUE(wait_until([] { return enabled(kKernels); })) << "run " << i;
    launch("work", 10);
  }
  EXPECT_TRUE(wait_until([&] { return sealed("stood_aside"); }));
}

// A call of ours while Kineto shuts CUPTI down would attach CUPTI again, to the end of the run.
TEST_F(Coexistence, CaptureDoesNotComeBackBeforeAClientShutsCuptiDown) {
  setenv("TEARDOWN_CUPTI", "1", 1);
  begin();
  ASSERT_TRUE(wait_until([] { return enabled(kKernels); }));
  profile(10);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // 30 seals
  EXPECT_FALSE(enabled(kKernels));
  setenv("TEARDOWN_CUPTI", "0", 1);
  profile(10);
  EXPECT_TRUE(wait_until([] { return enabled(kKernels); })) << "it stays, so capture goes on";
}

// Kineto shuts CUPTI down in a callback, which every thread that is in CUDA then may be in.
TEST_F(Coexistence, TwoThreadsOfAClientShutCuptiDownOnce) {
  setenv("FAKE_CUPTI_SLOW", "cuptiFinalize:300000", 1);
  begin();
  ASSERT_TRUE(wait_until([] { return enabled(kKernels); }));
  const auto shut_downs = [] { return resolve<long(const char*)>("fake_calls")("cuptiFinalize"); };
  profile(10);
  std::thread first([] { EXPECT_EQ(CUPTI(cuptiFinalize)(), CUPTI_SUCCESS); });
  ASSERT_TRUE(wait_until([&] { return shut_downs() == 1; }));
  EXPECT_EQ(CUPTI(cuptiFinalize)(), CUPTI_SUCCESS) << "while the first one is in it";
  first.join();
  EXPECT_EQ(CUPTI(cuptiFinalize)(), CUPTI_SUCCESS);
  EXPECT_EQ(shut_downs(), 1);
  profile(10);  // CUPTI is in use again
  EXPECT_EQ(CUPTI(cuptiFinalize)(), CUPTI_SUCCESS);
  EXPECT_EQ(shut_downs(), 2);
}

// What its callbacks need is held while it calls CUPTI: a wait in the hooks could be for ever.
TEST_F(Coexistence, ProfilerThatHoldsItsLockWhileItCallsIsNotHeldUpForEver) {
  begin();
  const Launching others(2);
  for (int i = 0; i < 20; ++i) {
    CUPTI(cuptiActivityRegisterCallbacks)(requested, completed);
    {
      const std::lock_guard<std::mutex> lock(client.control);
      CUPTI(cuptiActivityEnable)(kKernels);
    }
    launch("profiled", 10);
    client.expected += 10;
    const std::lock_guard<std::mutex> lock(client.control);
    CUPTI(cuptiActivityDisable)(kKernels);
    CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  }
}

TEST_F(Coexistence, ClientThatCannotWaitGoesAheadAndIsNoted) {
  // A flush that takes longer than a hook waits.
  setenv("FAKE_CUPTI_SLOW", "cuptiActivityFlushAll:2500000", 1);
  begin();
  ASSERT_TRUE(wait_until(
      [] { return resolve<long(const char*)>("fake_calls")("cuptiActivityFlushAll") > 0; }));
  CUPTI(cuptiActivityRegisterCallbacks)(requested, completed);
  EXPECT_TRUE(wait_until([&] { return sealed("client_not_awaited"); }));
}

TEST_F(Coexistence, ManyThreadsCallCuptiAtOnce) {
  begin();
  const Launching others(2);
  CUPTI(cuptiActivityRegisterCallbacks)(requested, completed);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([t] {
      for (int i = 0; i < 25; ++i) {
        const auto kind = t % 2 == 0 ? CUPTI_ACTIVITY_KIND_MEMCPY : CUPTI_ACTIVITY_KIND_DRIVER;
        CUPTI(cuptiActivityEnable)(kind);
        CUPTI(cuptiActivityFlushAll)(0);
        CUPTI(cuptiActivityDisable)(kind);
      }
    });
  for (std::thread& caller : callers) caller.join();
}

// What `purlin capture` would ask, of this very process.
void ask(const std::string& socket_path, const char* request) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  char answer[1024];
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(connection, request, std::strlen(request), MSG_NOSIGNAL) > 0)
    (void)!::recv(connection, answer, sizeof answer, 0);
  ::close(connection);
}

TEST_F(Coexistence, WindowsByTheHundredWhileThreadsLaunch) {
  setenv("PURLIN_FULL", "0", 1);
  setenv("PURLIN_WINDOW", "1@7", 1);
  begin();
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!done) {
        launch("work", 4);
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    });
  const std::string control = spool_ + "/control-" + std::to_string(::getpid());
  const auto enables = [] {
    return resolve<long(const char*)>("fake_calls")("cuptiActivityEnable");
  };
  const long wanted = enables() + 900;  // three kinds a window
  EXPECT_TRUE(wait_until([&] {
    ask(control, "purlin-control/1 stop\n");
    ask(control, "purlin-control/1 window 2\n");
    ask(control, "purlin-control/1 start\n");
    return enables() >= wanted;
  }));
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(wait_until([&] { return sealed("asked_window"); }));
  EXPECT_FALSE(sealed("client_unseen"));
}

// As cudaDeviceReset leaves it, which may take long: CUPTI is then silent without another client.
TEST_F(Coexistence, AProgramWithoutAContextIsNotTakenForAnotherClients) {
  void* const driver = dlopen(PURLIN_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(driver, nullptr);
  const auto exists = reinterpret_cast<void (*)(int)>(dlsym(driver, "fake_primary_context"));
  const auto asked = [] {
    return resolve<long(const char*)>("fake_calls")("cuptiActivityEnableAndDump");
  };
  begin();
  launch("work", 100);
  ASSERT_TRUE(wait_until([&] { return sealed("\"launches_seen\":100"); }));
  ASSERT_TRUE(wait_until([&] { return asked() >= 2; }));
  exists(0);
  resolve<void(int)>("fake_context")(0);
  const long before = asked();
  ASSERT_TRUE(wait_until([&] { return asked() >= before + 6 || !enabled(kKernels); }));
  resolve<void(int)>("fake_context")(1);
  exists(1);
  launch("work", 50);
  EXPECT_TRUE(wait_until([&] { return sealed("\"launches_seen\":150"); }));
  EXPECT_FALSE(sealed("client_unseen"));
}

// The test runs itself as that program, with OUTER_SPOOL.
TEST_F(Coexistence, AProgramThatEndsWhileItsDevicesAreReadKeepsThem) {
  const char* const outer = std::getenv("OUTER_SPOOL");
  if (outer == nullptr) {
    setenv("OUTER_SPOOL", spool_.c_str(), 1);
    EXPECT_EQ(status_alone(), 0);
    EXPECT_TRUE(sealed("Fake GPU"));
    return;
  }
  setenv("PURLIN_SPOOL", outer, 1);
  setenv("FAKE_CUDA_SLOW", "300000", 1);
  void* const driver = dlopen(PURLIN_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(driver, nullptr);
  const auto names_asked = reinterpret_cast<int (*)()>(dlsym(driver, "fake_names_asked"));
  begin();
  launch("work", 10);
  ASSERT_TRUE(wait_until([&] { return names_asked() > 0; }));
}

TEST_F(Coexistence, NothingIsLeftOnForAClientThatIsDone) {
  begin();
  profile(10);
  ASSERT_TRUE(wait_until([] { return enabled(kKernels); }));
  CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_TRUE(wait_until([] { return !enabled(kKernels); })) << "Purlin left its kinds on";
  CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_FALSE(enabled(CUPTI_ACTIVITY_KIND_DRIVER));
}

}  // namespace
