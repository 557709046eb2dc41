// SPDX-License-Identifier: Apache-2.0
// Eight processes write, eight read and one of the writers is killed at a random moment: nothing
// acknowledged is lost, nothing is torn. Each writer reports a put through a pipe once it was
// acknowledged. PURLIN_FAULT_ROUNDS sets how often; bench/results/cache_faults.md has 1,000.
#include "base/random.h"
#include "base/text.h"
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace purlin::cache {
namespace {

constexpr int kWriters = 7, kPuts = 6, kReaders = 8;  // and a writer that is killed

// Writer w's put number i: half of them to its own keys, half to keys that all writers share.
Entry entry_of(int writer, int i) {
  Entry entry = sample_entry(1 + i % 2 * (1000 + writer), 0);
  entry.config.set("BM", writer * 100'000 + i);
  // Records of very different sizes, so that writes meet page boundaries everywhere.
  entry.strategy = std::string(static_cast<std::size_t>(i * 331 % 9000), 'x');
  return entry;
}

[[noreturn]] void write_entries(const std::string& directory, int writer, int puts, int acks) {
  Result<Store> store = Store::open(directory);
  if (!store.is_ok()) ::_exit(10);
  for (int i = 0; i < puts; ++i) {
    if (!store->put(entry_of(writer, i)).is_ok()) ::_exit(11);
    const std::int64_t put = writer * 100'000 + i;
    if (::write(acks, &put, sizeof put) != sizeof put) ::_exit(12);
    if (i % 3 == 2 && !store->write_index().is_ok()) ::_exit(13);
  }
  ::_exit(0);
}

// Reads repeatedly until `stop` says so. Every entry it saw must stay, and no entry may be torn.
[[noreturn]] void read_entries(const std::string& directory, int stop) {
  Result<Store> store = Store::open(directory);
  if (!store.is_ok()) ::_exit(20);
  std::size_t seen = 0, entries = 0;
  char byte = 0;
  while (::read(stop, &byte, 1) < 0) {  // not blocking; 0 once the parent closed its end
    if (!store->refresh().is_ok()) ::_exit(21);
    if (store->damaged() != 0 || store->generation() != 0) ::_exit(22);
    if (store->record_set().entries() < entries) ::_exit(23);
    entries = store->record_set().entries();
    for (; seen < store->changes().size(); ++seen) {
      const Store::Change change = store->changes()[seen];
      const std::vector<StoredEntry> all = store->served(change.group, change.key);
      if (all.empty()) ::_exit(25);
      for (const StoredEntry& stored : all) {
        const std::int64_t put = std::get<std::int64_t>(*stored.entry.config.find("BM"));
        const Entry wanted =
            entry_of(static_cast<int>(put / 100'000), static_cast<int>(put % 100'000));
        if (!(to_json(wanted) == to_json(stored.entry))) ::_exit(24);
      }
    }
    ::usleep(500);  // leaves the processor to the writers
  }
  ::_exit(0);
}

TEST(Concurrency, WritersReadersAndAKilledWriter) {
  Random random(7);
  const std::int64_t rounds =
      parse_int(environment_variable("PURLIN_FAULT_ROUNDS", "20")).value_or(20);
  for (std::int64_t round = 0; round < rounds; ++round) {
    TemporaryDirectory folder;
    int acks[2], stop[2];
    ASSERT_EQ(::pipe(acks), 0);
    ASSERT_EQ(::pipe2(stop, O_NONBLOCK), 0);
    const auto start = [&](auto body) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::close(acks[0]);
        ::close(stop[1]);
        body();
      }
      return pid;
    };
    std::vector<pid_t> writers, readers;
    for (int i = 0; i < kReaders; ++i)
      readers.push_back(start([&] {
        ::close(acks[1]);  // its end means that no writer is left
        read_entries(folder.path(), stop[0]);
      }));
    for (int w = 0; w < kWriters; ++w)
      writers.push_back(start([&] { write_entries(folder.path(), w, kPuts, acks[1]); }));
    const pid_t victim = start([&] { write_entries(folder.path(), kWriters, 99'999, acks[1]); });
    ::close(acks[1]);

    // The victim dies after a random number of acknowledgements, at any point of its work.
    const std::uint64_t last_words = 1 + random.below(kPuts);
    const auto grace_us = static_cast<useconds_t>(random.below(3000));
    std::set<std::int64_t> acknowledged;
    std::uint64_t of_victim = 0;
    std::int64_t put = 0;
    while (::read(acks[0], &put, sizeof put) == sizeof put) {
      acknowledged.insert(put);
      if (put / 100'000 == kWriters && ++of_victim == last_words) {
        ::usleep(grace_us);  // so that it dies in any part of a put
        ::kill(victim, SIGKILL);
      }
    }
    int status = 0;
    for (const pid_t pid : writers) {
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      EXPECT_EQ(status, 0) << "a writer failed with " << WEXITSTATUS(status);
    }
    ASSERT_EQ(::waitpid(victim, &status, 0), victim);
    EXPECT_TRUE(WIFSIGNALED(status));
    ::close(stop[1]);
    for (const pid_t pid : readers) {
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      EXPECT_EQ(status, 0) << "a reader failed with " << WEXITSTATUS(status);
    }
    ::close(acks[0]);
    ::close(stop[0]);

    Store store = *Store::open(folder.path());
    EXPECT_EQ(store.damaged(), 0u);
    std::set<std::int64_t> found;
    for (const Entry& entry : store.list()) {
      const Result<std::vector<StoredEntry>> history = store.history(entry.key);
      ASSERT_TRUE(history.is_ok()) << history.status().message();
      for (const StoredEntry& old : *history)
        found.insert(std::get<std::int64_t>(*old.entry.config.find("BM")));
    }
    EXPECT_GE(acknowledged.size(), static_cast<std::size_t>(kWriters * kPuts) + last_words);
    for (const std::int64_t wanted : acknowledged)
      EXPECT_TRUE(found.count(wanted)) << "lost " << wanted << " in round " << round;
    // At most the put that was under way when the victim died is there without an acknowledgement.
    EXPECT_LE(found.size(), acknowledged.size() + 1);
    if (HasFailure()) break;
    EXPECT_TRUE(store.put(sample_entry()).is_ok());  // also after an incomplete put
  }
}

}  // namespace
}  // namespace purlin::cache
