// SPDX-License-Identifier: Apache-2.0
// What the files of the C interface share: failures as a purlin_status with a text for
// purlin_last_error(), and the wall that no exception passes. Thread-safety: [MT].
#pragma once

#include "base/status.h"
#include "runtime/op.h"

#include <cstddef>
#include <exception>
#include <purlin/purlin.h>
#include <string>

// Whether a struct that may come from an older header, and so be shorter than ours, has the member.
#define PURLIN_HAS(pointer, type, member) \
  ((pointer)->size >= offsetof(type, member) + sizeof((pointer)->member))

// The handles that several of them open.
struct purlin_cache {
  std::shared_ptr<purlin::runtime::CacheSession> session;
};
struct purlin_op {
  mutable purlin::runtime::Op op;  // its lookups count, and are [MT]
};

namespace purlin::runtime {

// Keeps the text for this thread and returns the status.
purlin_status fail(purlin_status status, const char* text) noexcept;
purlin_status fail(const Status& status) noexcept;
const char* last_error() noexcept;

// Runs what may allocate; nothing is thrown into the program.
template <class Body>
purlin_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& problem) {
    return fail(PURLIN_FAILED, problem.what());
  } catch (...) {
    return fail(PURLIN_FAILED, "an unknown exception");
  }
}

// Without a branch or a table: every lookup asks it.
inline purlin_outcome outcome_of(cache::Outcome outcome) noexcept {
  constexpr auto at = [](cache::Outcome which) { return 4 * static_cast<unsigned>(which); };
  constexpr unsigned kOutcomes = PURLIN_EXACT << at(cache::Outcome::kExact) |
                                 PURLIN_BUCKET << at(cache::Outcome::kBucket) |
                                 PURLIN_TRANSFERRED << at(cache::Outcome::kTransferred);
  static_assert(PURLIN_MISS == 0 && at(cache::Outcome::kMiss) < 32);  // what the others are
  return static_cast<purlin_outcome>(kOutcomes >> at(outcome) & 15);
}
// As snprintf does: the text's length, and as much of it as fits `buffer`, which may be NULL.
size_t copy_text(std::string_view text, char* buffer, size_t size) noexcept;
inline std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

}  // namespace purlin::runtime
