// SPDX-License-Identifier: Apache-2.0
// DeviceBusy: computes the part of the estimated overhead of recording that did not slow the
// program, because the program waited for a device during it.
//
// A stream runs its work one piece at a time, so the program takes at least as long as the work of
// its busiest stream. Take a span T in which that stream was busy for B. Recording and CUPTI's
// presence then cost at most T - B, even when the estimate is higher. Time that is not known to be
// busy counts as idle: missing or delayed records, the gap that CUPTI adds between two kernels,
// and kernels that may wait for another process. The bound does not hold for all streams of a
// device together: their work could overlap more in a program that is not slowed. Nodes of graphs
// take longer on the device itself, so that none of their overhead is hidden.
//
// Time is divided into blocks. Their records may come in any order and some seconds late. The
// hidden part of a block is computed again until the block is settled. The delay of a launch may
// show long after it, when the work queued before it is done. Therefore the hidden overhead of a
// block, for up to as many launches as a queue holds, is carried over and may be charged to the
// next block.
//
// Owned by the ActivityAggregator. Thread-safety: none; a Batch belongs to one thread. Memory is
// bounded: streams beyond kMaxStreams and work later than the blocks reach count as idle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::profile::capture {

class DeviceBusy {
 public:
  static constexpr std::int64_t kBlockNs = 250'000'000;
  static constexpr std::size_t kBlocks = 64, kMaxStreams = 64;
  static constexpr double kQueued = 1024;  // launches that a stream's queue holds
  // The gap between two kernels of a stream without recording: 680 to 720 ns on an H200
  // (bench/results/queued_gaps_h200.json; recording adds 350 to 410). Half of it counts as busy, so
  // that in doubt the device counts as idle.
  static constexpr std::int64_t kStreamGapNs = 300;

  struct Stream {
    std::uint32_t device = 0, context = 0, id = 0;
    bool operator==(const Stream& other) const {
      return device == other.device && context == other.context && id == other.id;
    }
  };
  struct Work {
    Stream stream;
    std::int64_t start_ns = 0, end_ns = 0;  // wall clock
    bool kernel = true, node = false;       // a graph's
    bool may_wait = false;                  // for another process
  };

  // The records of one buffer, of each stream in order.
  class Batch {
   public:
    explicit Batch(std::int64_t now_ns) : now_ns_(now_ns) {}
    void add(const Work& work);
    std::int64_t first_ns() const { return first_ns_; }  // 0: there is nothing

   private:
    friend class DeviceBusy;
    struct Part {
      std::int64_t block = 0, busy_ns = 0;
      std::uint32_t launches = 0, nodes = 0;
    };
    struct OfStream {
      Stream stream;
      std::int64_t until_ns = 0;
      bool after_kernel = false;
      std::vector<Part> parts = {};
    };
    OfStream* find(const Stream& stream);
    static Part& part(OfStream& of, std::int64_t block);
    std::int64_t now_ns_, last_ns_ = 0, first_ns_ = 0;
    std::size_t last_found_ = 0;
    std::vector<OfStream> streams_;
  };

  // Between these, on the wall clock, every launch is recorded.
  void open(std::int64_t now_ns);
  void close(std::int64_t now_ns);
  void add(const Batch& batch);

  struct Prices {
    double launch_ns = 0, node_ns = 0;
    double share = 0;  // of the time, in addition
  };
  struct Hidden {
    double estimate_ns = 0;
    double hidden_ns = 0;   // of that; may become less as more is known
    double bounded_ns = 0;  // of what is not: charged as the bound says, not as estimated
    double share = 0;       // hidden, of the estimate of the last blocks
  };
  // Since the beginning.
  Hidden judge(const Prices& prices);

 private:
  static constexpr std::size_t kNoStream = kMaxStreams;
  struct OfStream {
    Stream stream;
    std::array<std::uint32_t, kBlocks> busy_ns = {};
  };
  struct Block {
    std::uint32_t launches = 0, nodes = 0;
  };
  struct State {
    Hidden sum;
    double carried_ns = 0;
    std::size_t stream = kNoStream;  // the one that is looked at
  };

  std::size_t find(const Stream& stream);
  void reach(std::int64_t block);
  void settle_all();
  void judge_block(std::int64_t block, State& state) const;
  std::int64_t limit_ns() const { return closed_ns_ > 0 ? closed_ns_ : frontier_ns_; }
  static std::size_t slot(std::int64_t block) { return static_cast<std::size_t>(block) % kBlocks; }

  std::int64_t open_ns_ = 0, closed_ns_ = 0;  // 0: not
  std::int64_t frontier_ns_ = 0;              // the end of the last work that is known
  std::int64_t base_ = 0;                     // the first block that is not settled
  std::array<Block, kBlocks> blocks_ = {};
  std::vector<OfStream> streams_;
  State settled_;
  Prices prices_;
};

}  // namespace purlin::profile::capture
