// SPDX-License-Identifier: Apache-2.0
// PerProcess<T>: the one T of this process, made on first use. A forked child starts without one
// and makes another when it first needs it: the threads, locks and file belong to its parent.
// Instances are never destroyed. [MT] get() and peek().
#pragma once

#include <atomic>
#include <new>
#include <pthread.h>

namespace purlin::profile::capture {

template <class T>
class PerProcess {
 public:
  // Registers the fork handler: once, when the library is loaded.
  static void prepare() { pthread_atfork(nullptr, nullptr, &PerProcess::forget); }

  // nullptr when there is none yet.
  static T* peek() { return instance_.load(std::memory_order_acquire); }

  // Makes it with `create` on the first call; nullptr if that returns nullptr.
  template <class Create>
  static T* get(Create create) {
    if (T* instance = peek()) return instance;
    pthread_mutex_lock(&mutex_);
    T* instance = peek();
    if (instance == nullptr) {
      instance = create();
      instance_.store(instance, std::memory_order_release);
    }
    pthread_mutex_unlock(&mutex_);
    return instance;
  }

 private:
  // In the child, where only this thread exists: another may have held the lock in the parent.
  static void forget() {
    instance_.store(nullptr, std::memory_order_release);
    mutex_ = PTHREAD_MUTEX_INITIALIZER;
  }
  static inline std::atomic<T*> instance_ = nullptr;
  static inline pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace purlin::profile::capture
