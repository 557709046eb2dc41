// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/device_busy.h"

#include <algorithm>
#include <cmath>

namespace purlin::profile::capture {
namespace {

constexpr std::int64_t block_of(std::int64_t ns) { return ns / DeviceBusy::kBlockNs; }

constexpr auto kReachNs = static_cast<std::int64_t>(DeviceBusy::kBlocks) * DeviceBusy::kBlockNs;
constexpr std::int64_t kSlackNs = 1'000'000;  // of the device's clock
// Another stream is looked at where that saves more than this part of the estimate: to change costs
// a block's.
constexpr double kWorthAChange = 0.1;

}  // namespace

// ---- a buffer's ----

DeviceBusy::Batch::OfStream* DeviceBusy::Batch::find(const Stream& stream) {
  if (last_found_ < streams_.size() && streams_[last_found_].stream == stream)
    return &streams_[last_found_];
  for (last_found_ = 0; last_found_ < streams_.size(); ++last_found_)
    if (streams_[last_found_].stream == stream) return &streams_[last_found_];
  if (streams_.size() >= kMaxStreams) return nullptr;
  streams_.push_back({stream});
  return &streams_.back();
}

DeviceBusy::Batch::Part& DeviceBusy::Batch::part(OfStream& of, std::int64_t block) {
  for (auto part = of.parts.rbegin(); part != of.parts.rend(); ++part)
    if (part->block == block) return *part;
  of.parts.push_back({block});
  return of.parts.back();
}

void DeviceBusy::Batch::add(const Work& work) {
  // What claims to have ended later than now, or has no times, is not to be believed.
  if (work.start_ns <= 0 || work.end_ns < work.start_ns || work.end_ns > now_ns_ + kSlackNs ||
      work.start_ns < now_ns_ - kReachNs)
    return;
  OfStream* of = find(work.stream);
  if (of == nullptr) return;
  first_ns_ = first_ns_ == 0 ? work.start_ns : std::min(first_ns_, work.start_ns);
  last_ns_ = std::max(last_ns_, work.end_ns);
  Part& begun = part(*of, block_of(work.start_ns));
  ++(work.node ? begun.nodes : begun.launches);
  const bool plain = work.kernel && !work.node;
  std::int64_t from = work.start_ns;
  if (plain && of->after_kernel && from > of->until_ns)
    from = std::max(of->until_ns, from - kStreamGapNs);
  of->after_kernel = plain;
  from = std::max(from, of->until_ns);
  of->until_ns = std::max(of->until_ns, work.end_ns);
  if (work.may_wait) return;
  while (from < work.end_ns) {
    const std::int64_t block = block_of(from);
    const std::int64_t until = std::min(work.end_ns, (block + 1) * kBlockNs);
    part(*of, block).busy_ns += until - from;
    from = until;
  }
}

// ---- all ----

void DeviceBusy::open(std::int64_t now_ns) {
  settle_all();
  open_ns_ = frontier_ns_ = now_ns;
  closed_ns_ = 0;
  base_ = block_of(now_ns);
  settled_.carried_ns = 0;
  settled_.stream = kNoStream;
  streams_.clear();
  blocks_.fill({});
}

void DeviceBusy::close(std::int64_t now_ns) {
  if (open_ns_ > 0 && closed_ns_ == 0) closed_ns_ = std::max(open_ns_, now_ns);
}

std::size_t DeviceBusy::find(const Stream& stream) {
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [&](const OfStream& of) { return of.stream == stream; });
  if (found != streams_.end()) return static_cast<std::size_t>(found - streams_.begin());
  if (streams_.size() >= kMaxStreams) return kNoStream;
  streams_.push_back({stream});
  return streams_.size() - 1;
}

// Leaves behind what is too old for there to be room for this block.
void DeviceBusy::reach(std::int64_t block) {
  constexpr auto kAll = static_cast<std::int64_t>(kBlocks);
  for (std::int64_t left = kAll; left > 0 && block - base_ >= kAll; --left, ++base_) {
    judge_block(base_, settled_);
    blocks_[slot(base_)] = {};
    for (OfStream& of : streams_) of.busy_ns[slot(base_)] = 0;
  }
  base_ = std::max(base_, block - kAll + 1);  // in between nothing was launched
}

void DeviceBusy::settle_all() {
  if (open_ns_ > 0) reach(block_of(limit_ns()) + static_cast<std::int64_t>(kBlocks));
}

void DeviceBusy::add(const Batch& batch) {
  if (open_ns_ == 0 || batch.last_ns_ <= open_ns_) return;
  const std::int64_t most = closed_ns_ > 0 ? closed_ns_ : batch.last_ns_;
  frontier_ns_ = std::max(frontier_ns_, std::min(batch.last_ns_, most));
  reach(block_of(frontier_ns_));
  const bool spans_opening = batch.first_ns_ < open_ns_;
  for (const Batch::OfStream& of : batch.streams_) {
    const std::size_t index = find(of.stream);
    for (const Batch::Part& part : of.parts) {
      // In the block in which recording was opened, work before and after it cannot be separated.
      const bool before = spans_opening && part.block <= block_of(open_ns_);
      if (part.block < base_ || part.block > block_of(frontier_ns_) || before) continue;
      Block& block = blocks_[slot(part.block)];
      block.launches += part.launches;
      block.nodes += part.nodes;
      if (index == kNoStream) continue;
      std::uint32_t& busy = streams_[index].busy_ns[slot(part.block)];
      busy = static_cast<std::uint32_t>(std::min(kBlockNs, busy + part.busy_ns));
    }
  }
}

void DeviceBusy::judge_block(std::int64_t block, State& state) const {
  const std::int64_t from = std::max(open_ns_, block * kBlockNs);
  const std::int64_t until = std::min(limit_ns(), (block + 1) * kBlockNs);
  if (until <= from) return;
  const std::size_t at = slot(block);
  const auto length = static_cast<double>(until - from);
  const double estimate = blocks_[at].launches * prices_.launch_ns +
                          blocks_[at].nodes * prices_.node_ns + prices_.share * length;
  // What recording takes of a graph's nodes it takes on the device: they may have been shorter.
  const double lengthened = blocks_[at].nodes * prices_.node_ns;
  const auto charge_of = [&](std::size_t stream) {
    const double idle = std::max(0.0, length - streams_[stream].busy_ns[at]) + lengthened;
    return std::min(idle, state.carried_ns + estimate);
  };
  state.sum.estimate_ns += estimate;
  // What ran on after recording was closed is no part of the block.
  const bool cut = closed_ns_ > 0 && until == closed_ns_;
  double charge = estimate;
  if (!streams_.empty() && !cut) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < streams_.size(); ++i)
      if (streams_[i].busy_ns[at] > streams_[best].busy_ns[at]) best = i;
    const bool first = state.stream == kNoStream;
    if (!first && charge_of(state.stream) <= charge_of(best) + kWorthAChange * estimate)
      best = state.stream;
    // The work of two streams may not have waited for one another, so where another is the busiest
    // nothing is hidden for once.
    if (first || best == state.stream) {
      charge = charge_of(best);
      if (charge < state.carried_ns + estimate) state.sum.bounded_ns += charge;
    }
    state.stream = best;
  }
  state.sum.hidden_ns += estimate - charge;
  state.carried_ns =
      std::clamp(state.carried_ns + estimate - charge, 0.0, kQueued * prices_.launch_ns);
}

DeviceBusy::Hidden DeviceBusy::judge(const Prices& prices) {
  prices_ = prices;
  State state = settled_;
  if (open_ns_ > 0)
    for (std::int64_t block = base_; block <= block_of(limit_ns()); ++block)
      judge_block(block, state);
  Hidden result = state.sum;
  const double recent = result.estimate_ns - settled_.sum.estimate_ns;
  const double hidden = result.hidden_ns - settled_.sum.hidden_ns;
  result.share = recent > 0 ? std::clamp(hidden / recent, 0.0, 1.0) : 0;
  return result;
}

}  // namespace purlin::profile::capture
