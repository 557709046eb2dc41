// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/cupti/interpose.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <thread>

namespace purlin::profile::capture::cuda {
namespace {

int replaced_answer() { return 2; }

struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool loading = false, interposed = false;
};
Shared shared;

// Called by the loader, inside dlopen(). It cannot wait for the other thread's end: interpose() may
// wait for this load.
void while_loading() {
  std::unique_lock<std::mutex> lock(shared.mutex);
  shared.loading = true;
  shared.changed.notify_all();
  shared.changed.wait_for(lock, std::chrono::milliseconds(300), [] { return shared.interposed; });
}

TEST(InterposeTest, AnObjectThatAnotherThreadIsLoadingIsNotWrittenToBeforeItIsRelocated) {
  void* library = ::dlopen(PURLIN_INTERPOSED, RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  *static_cast<void (**)()>(::dlsym(library, "while_loading")) = &while_loading;
  void* original = ::dlsym(library, "answer");

  bool done = false;
  std::string reason;
  std::thread interposer([&] {
    {
      std::unique_lock<std::mutex> lock(shared.mutex);
      if (!shared.changed.wait_for(lock, std::chrono::seconds(20), [] { return shared.loading; }))
        return;
    }
    const Replacement replacement = {"answer", original, reinterpret_cast<void*>(&replaced_answer)};
    done = interpose(&replacement, 1, reason);
    const std::lock_guard<std::mutex> lock(shared.mutex);
    shared.interposed = true;
    shared.changed.notify_all();
  });
  void* late = ::dlopen(PURLIN_INTERPOSED_LATE, RTLD_NOW);
  interposer.join();
  ASSERT_NE(late, nullptr) << ::dlerror();
  ASSERT_TRUE(shared.loading) << "the loader did not call the test";
  EXPECT_TRUE(done) << reason;

  using Function = int (*)();
  const auto call = [](void* handle, const char* name) {
    return reinterpret_cast<Function (*)()>(::dlsym(handle, name))()();
  };
  EXPECT_EQ(call(late, "bound_answer"), 2);
  EXPECT_EQ(call(late, "bound_picked"), 3);
  EXPECT_EQ(reinterpret_cast<Function>(::dlsym(library, "answer"))(), 2);
  EXPECT_EQ(reinterpret_cast<Function>(original)(), 1);
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
