// SPDX-License-Identifier: Apache-2.0
// Histories of a shared cache: processes push and pull at once, pause at random calls on files, and
// some die at one. Each history must be that of a set that only grows: there is an order of all
// operations that agrees with their times, in which each pull sees exactly the pushes before it.
//
// For such a set, three things are enough. The sets of the pulls form a chain. A pull sees each
// push that ended before it began, and none that began after it ended. Later pulls see no less.
#include "base/file_faults_testing.h"
#include "base/random.h"
#include "base/text.h"
#include "blobs/directory_blobs.h"
#include "cache/share/share.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <map>
#include <sys/wait.h>
#include <unistd.h>

namespace purlin::cache {
namespace {

constexpr int kProcesses = 4, kSteps = 8;

struct Operation {
  std::int64_t begin_ns = 0, end_ns = 0;  // end 0: it died, and may have taken effect at any time
  std::uint64_t push = 0;                 // the bit of the record that was pushed; 0: a pull
  std::uint64_t seen = 0;                 // by a pull
};

// What is wrong with a history; "" where it is that of a set that only grows.
std::string flaw_of_history(const std::vector<Operation>& history) {
  std::vector<Operation> pulls;
  for (const Operation& operation : history)
    if (operation.push == 0 && operation.end_ns != 0) pulls.push_back(operation);
  for (const Operation& pull : pulls) {
    std::uint64_t begun = 0;
    for (const Operation& push : history) {
      if (push.push == 0) continue;
      if (push.begin_ns < pull.end_ns) begun |= push.push;
      if (push.end_ns != 0 && push.end_ns < pull.begin_ns && (pull.seen & push.push) == 0)
        return "a pull misses what was acknowledged before it";
    }
    if ((pull.seen & ~begun) != 0) return "a pull sees what nobody had pushed";
  }
  for (const Operation& a : pulls)
    for (const Operation& b : pulls) {
      if ((a.seen & b.seen) != a.seen && (a.seen & b.seen) != b.seen)
        return "two pulls saw pushes in different orders";
      if (a.end_ns < b.begin_ns && (a.seen & ~b.seen) != 0) return "a later pull sees less";
    }
  return "";
}

[[noreturn]] void take_part(const std::string& directory, int process, std::uint64_t seed,
                            const std::map<std::string, std::uint64_t>& bits, int out) {
  Random random(seed);
  const auto blobs = blobs::make_directory_blobs(directory, 30, system_clock());
  Share share(*blobs, system_clock(), seed);
  FileFaults faults;
  faults.at_each_call = [&] {
    if (random.below(20) == 0) ::usleep(static_cast<useconds_t>(random.below(2000)));
  };
  if (random.below(2) == 0) faults.die_at = static_cast<int>(random.below(600));
  for (int step = 0; step < kSteps; ++step) {
    Operation operation;
    operation.begin_ns = system_clock().monotonic_ns();
    const bool pushes = random.below(2) == 0;
    const Entry entry = sample_entry(1 + process * kSteps + step);
    const CacheRecord record = make_record(entry);
    if (pushes) operation.push = bits.at(record.id);
    // Reported before it begins: it may die in it.
    if (::write(out, &operation, sizeof operation) != sizeof operation) ::_exit(10);
    if (pushes) {
      if (!share.push({record}).is_ok()) ::_exit(11);
    } else {
      const Result<PullReport> pulled = share.pull([](const std::string&) { return false; },
                                                   [&](const std::vector<CacheRecord>& records) {
                                                     for (const CacheRecord& one : records)
                                                       operation.seen |= bits.at(one.id);
                                                     return Status::ok();
                                                   });
      if (!pulled.is_ok() && pulled.status().code() != Code::kNotFound) ::_exit(12);
      if (pulled.is_ok() && !pulled->problems.empty()) ::_exit(13);
    }
    operation.end_ns = system_clock().monotonic_ns();
    if (::write(out, &operation, sizeof operation) != sizeof operation) ::_exit(14);
  }
  ::_exit(0);
}

// The operations of one process: each reported before and, where it did not die, after.
void read_operations(int in, std::vector<Operation>& history) {
  Operation operation;
  std::optional<Operation> begun;
  while (::read(in, &operation, sizeof operation) == sizeof operation) {
    if (operation.end_ns != 0) history.push_back(operation);
    begun = operation.end_ns != 0 ? std::nullopt : std::optional(operation);
  }
  if (begun) history.push_back(*begun);
}

TEST(History, OfAShareIsThatOfASetThatOnlyGrows) {
  std::map<std::string, std::uint64_t> bits;
  for (int i = 0; i < kProcesses * kSteps; ++i)
    bits[make_record(sample_entry(1 + i)).id] = std::uint64_t{1} << i;
  const std::int64_t rounds =
      parse_int(environment_variable("PURLIN_FAULT_ROUNDS", "10")).value_or(10);
  int died = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    TemporaryDirectory folder;
    std::vector<std::pair<pid_t, int>> processes;
    for (int process = 0; process < kProcesses; ++process) {
      int ends[2];
      ASSERT_EQ(::pipe(ends), 0);
      const pid_t pid = ::fork();
      ASSERT_GE(pid, 0);
      if (pid == 0)
        take_part(folder.file("share"), process,
                  static_cast<std::uint64_t>(round * kProcesses + process + 1), bits, ends[1]);
      ::close(ends[1]);
      processes.emplace_back(pid, ends[0]);
    }
    std::vector<Operation> history;
    for (const auto& [pid, in] : processes) {
      read_operations(in, history);
      ::close(in);
      int status = 0;
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      ASSERT_TRUE(WIFEXITED(status));
      const int code = WEXITSTATUS(status);
      ASSERT_TRUE(code == 0 || code == FileFaults::kDied) << code << " in round " << round;
      died += code == FileFaults::kDied ? 1 : 0;
    }
    ASSERT_EQ(flaw_of_history(history), "") << "round " << round;
  }
  RecordProperty("died", died);
}

TEST(History, TheCheckerFindsWhatIsWrong) {
  const Operation push{1, 2, 1, 0}, later{3, 4, 2, 0}, both{5, 6, 0, 3};
  EXPECT_EQ(flaw_of_history({push, later, both}), "");
  EXPECT_NE(flaw_of_history({push, Operation{3, 4, 0, 0}}), "") << "an acknowledged push is lost";
  EXPECT_NE(flaw_of_history({push, Operation{3, 4, 0, 3}, Operation{5, 6, 2, 0}}), "") << "early";
  const Operation a{1, 9, 1, 0}, b{1, 9, 2, 0};
  EXPECT_NE(flaw_of_history({a, b, Operation{2, 8, 0, 1}, Operation{2, 8, 0, 2}}), "") << "orders";
  EXPECT_NE(flaw_of_history({a, Operation{2, 3, 0, 1}, Operation{4, 5, 0, 0}}), "") << "shrinks";
  const Operation dead{1, 0, 1, 0};
  EXPECT_EQ(flaw_of_history({dead, Operation{5, 6, 0, 0}, Operation{7, 8, 0, 1}}), "");
}

}  // namespace
}  // namespace purlin::cache
