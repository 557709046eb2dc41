// SPDX-License-Identifier: Apache-2.0
// BatchSpool: the batches that a collector has made and not yet sent, and how far it has read each
// capture, as one folder. The two are always of one moment: after a kill, no launch is in two
// batches, and none that was read is in none.
//
// A batch is `NUMBER-SHA256.pbatch`. commit() writes the batches, then `state.json`, which names
// the next number: a batch of that number or above was never committed and is removed by open().
// Only committed batches are sent. Where the folder is over its bound, the oldest batches go first,
// and their totals stay (BatchShed). [MT] except open() and commit(), which are the owner's.
// Failure: kIo; commit() then has changed nothing, and is tried again.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "store/batch.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace purlin::fleet {

struct BatchSpoolOptions {
  std::string directory;
  std::uint64_t max_bytes = std::uint64_t{256} << 20;  // of batches that wait
  std::uint64_t max_dead_bytes = std::uint64_t{16} << 20;
};

// How far a capture was read. What identifies it is its folder's and its own name and inode.
struct ReadMark {
  std::uint64_t offset = 0;
  bool operator==(const ReadMark&) const = default;
};
using ReadMarks = std::map<std::string, ReadMark>;

struct WaitingBatch {
  std::uint64_t number = 0;
  std::string hash, path;
  std::uint64_t bytes = 0;
};

class BatchSpool {
 public:
  // `machine_boot`: the id of the machine's start; sequence numbers begin again with another one.
  static Result<std::unique_ptr<BatchSpool>> open(BatchSpoolOptions options,
                                                  const std::string& machine_boot);
  BatchSpool(const BatchSpool&) = delete;
  BatchSpool& operator=(const BatchSpool&) = delete;

  // Of the last commit. Where the state was damaged, none, and was_lost() is true: captures are
  // then read from where they end, since what was sent of them is not known.
  const ReadMarks& marks() const { return marks_; }
  bool was_lost() const { return was_lost_; }

  // Numbers the batches and writes them with the marks. Sequence, boot and shed are filled in.
  Status commit(std::vector<store::Batch> batches, ReadMarks marks);

  // The oldest one. It is not shed until sent(), bury() or the next call.
  std::optional<WaitingBatch> next_to_send();
  Result<std::string> read(const WaitingBatch& batch) const;
  Status sent(const WaitingBatch& batch);
  // The server will never take it: into `dead/`, for a person.
  Status bury(const WaitingBatch& batch);

  // What is given up elsewhere on this node; the next batch states it.
  void add_shed(const std::string& cause, std::uint64_t raw_bytes);
  std::uint64_t max_bytes() const { return options_.max_bytes; }

  struct Totals {
    std::uint64_t waiting = 0, waiting_bytes = 0;
    std::uint64_t committed = 0, sent = 0, dead = 0;  // batches since the start
    std::vector<store::BatchShed> shed;               // since the boot
  };
  Totals totals() const;

 private:
  BatchSpool(BatchSpoolOptions options, std::string machine_boot)
      : options_(std::move(options)),
        machine_boot_(std::move(machine_boot)),
        boot_(machine_boot_) {}
  Status load_state();
  Status load_batches();
  Status write_state(const ReadMarks& marks, std::uint64_t next, std::uint64_t sequence,
                     const std::vector<store::BatchShed>& shed) const;
  Result<WaitingBatch> write(store::Batch& batch, std::uint64_t number) const;
  Status make_room(std::uint64_t bytes);
  void count_shed(const std::string& cause, std::uint64_t batches, std::uint64_t rows,
                  std::uint64_t bytes);
  std::string state_path() const;

  const BatchSpoolOptions options_;
  const std::string machine_boot_;
  std::string boot_;  // of batches: another one where the state was lost, and with it the numbers
  ReadMarks marks_;
  bool was_lost_ = false;
  std::uint64_t next_ = 1, sequence_ = 1;  // of the next batch
  mutable std::mutex mutex_;
  std::deque<WaitingBatch> waiting_;  // by number; under the mutex, as all below
  std::uint64_t waiting_bytes_ = 0, committed_ = 0, sent_ = 0, dead_ = 0;
  std::vector<store::BatchShed> shed_;
  std::uint64_t in_transit_ = 0;  // number of the batch that is being sent
};

}  // namespace purlin::fleet
