// SPDX-License-Identifier: Apache-2.0
// PlanTable: what to launch for each problem shape that a program has asked for.
//
// find() is wait-free and allocation-free: one probe by the extents themselves, because buckets and
// constraints were weighed when the plan was made. One writer at a time adds plans and exchanges a
// plan's choice. Plans, choices and outgrown tables live as long as the table: a reader may hold
// any of them.
#pragma once

#include "cache/hot/op_index.h"
#include "gpu/app_context.h"
#include "model/device/launch.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace purlin::runtime {

class Duel;

// A config of the kernel, loaded into the program's context, or why it is not.
struct Variant {
  Config config;
  std::string options;  // "-DBM=64 -DBN=32"
  std::unique_ptr<gpu::AppKernel> kernel;
  Status problem;
};

// What is launched for a shape, and why.
struct Choice {
  const Variant* variant = nullptr;  // nullptr: nothing can be, and `problem` says why
  Status problem;
  LaunchShape shape;
  cache::Outcome outcome = cache::Outcome::kMiss;
  const cache::IndexedEntry* entry =
      nullptr;           // that the lookup found; its config may not be served
  bool demoted = false;  // the entry's winner lost to what is served
  std::string reason;    // why the default is served where there was an entry; "" else
  // Scalar arguments whose value is the config's: index and bytes. The program cannot know them.
  std::vector<std::pair<std::size_t, std::uint64_t>> scalars;
  // Whom the variant is compared with, and how those are launched; empty: not at all.
  struct Rival {
    const Variant* variant = nullptr;
    LaunchShape shape;
    Duel* duel = nullptr;
  };
  std::vector<Rival> rivals;
  struct BufferUse {
    std::size_t bytes = 0;  // 0: a scalar
    bool written = false;
  };
  std::vector<BufferUse> buffers;  // of each argument, where there are rivals

  bool same_as(const Choice& other) const;
};

struct Plan {
  cache::Extents extents{};
  std::atomic<const Choice*> choice{nullptr};
  std::atomic<std::uint64_t> generation{0};  // of the dispatcher, when the choice was made
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> next_shadow{0};
  std::uint64_t reported = 0;  // launches in the work list; the writer's
};

class PlanTable {
 public:
  static constexpr std::size_t kMaxPlans = 65'536;

  explicit PlanTable(std::size_t dimensions);
  ~PlanTable();
  // [MT] nullptr if the shape has no plan.
  Plan* find(const std::int64_t* extents) const noexcept;

  // The writer's. Adds an empty plan; nullptr when full.
  Plan* add(const std::int64_t* extents);
  // Makes the choice the plan's, unless it has the same already.
  void choose(Plan& plan, std::unique_ptr<const Choice> choice);
  const std::vector<std::unique_ptr<Plan>>& plans() const { return plans_; }

 private:
  struct Table;
  std::uint64_t hash(const std::int64_t* extents) const noexcept;

  const std::size_t dimensions_;
  std::atomic<const Table*> table_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is current
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::unique_ptr<const Choice>> choices_;
};

}  // namespace purlin::runtime
