// SPDX-License-Identifier: Apache-2.0
#include "profile/torch/request.h"

#include "base/files.h"
#include "base/time.h"
#include "profile/control_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <unistd.h>

namespace purlin::profile {
namespace {

constexpr double kHookAnswers_s = 5;  // it looks every half second
constexpr unsigned kLook_us = 50'000;

std::vector<TorchNote> notes_of(std::int64_t pid, const std::string& spool) {
  std::vector<TorchNote> notes = read_torch_notes(spool);
  std::erase_if(notes, [&](const TorchNote& note) { return note.pid != pid; });
  return notes;
}

int newest(const std::vector<TorchNote>& notes) {
  int number = 0;
  for (const TorchNote& note : notes) number = std::max(number, note.number);
  return number;
}

}  // namespace

Result<TorchNote> request_torch_trace(std::int64_t pid, double timeout_s) {
  PURLIN_ASSIGN(const std::string spool, spool_of(pid));
  const int before = newest(notes_of(pid, spool));
  const std::string request = join_path(spool, fmt::format("torch-request-{}", pid));
  PURLIN_TRY(write_atomic(request, ""));
  const std::int64_t began = system_clock().monotonic_ns();
  const auto waited_s = [&] {
    return static_cast<double>(system_clock().monotonic_ns() - began) * 1e-9;
  };
  while (file_exists(request)) {
    if (waited_s() > kHookAnswers_s) {
      (void)remove_file(request);
      return error(Code::kNotFound,
                   "process {} has no hook that answers: it must be a PyTorch program that has "
                   "used CUDA, started under `purlin profile` without --torch off",
                   pid);
    }
    ::usleep(kLook_us);
  }
  for (; waited_s() < timeout_s; ::usleep(kLook_us)) {
    const std::vector<TorchNote> notes = notes_of(pid, spool);
    const auto made = std::find_if(notes.begin(), notes.end(), [&](const TorchNote& note) {
      return note.number > before && note.reason != "unfinished";
    });
    if (made == notes.end()) continue;
    if (made->reason.empty()) return *made;
    return error(Code::kInvalid, "process {} has no trace: {} {}", pid, made->reason, made->detail);
  }
  return error(Code::kInvalid, "process {} wrote no trace within {:g} s", pid, timeout_s);
}

}  // namespace purlin::profile
