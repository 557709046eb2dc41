// SPDX-License-Identifier: Apache-2.0
// Chains of kernels over equally many elements, each of which reads what the one before wrote: of
// pointwise kernels alone, and with the reductions of a softmax or a norm. Fused, the values in
// between never leave the registers.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/device/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace purlin::analyze {
namespace {

constexpr Remedy kFusion[] = {
    {"fuse_pointwise", "Fuse the chain of pointwise kernels into one", Pillar::kArithmeticIntensity,
     Level::kMemory, "memory", "hours", "low", "api-independent", "framework",
     "PyTorch: torch.compile fuses pointwise chains (TorchInductor, Triton); F.gelu, F.silu, "
     "torch.addcmul where one op says it|"
     "write one kernel that keeps intermediate values in registers",
     "rounding may differ where intermediate results were stored in 16 bits"},
    {"fuse_norm", "Compute the softmax or norm in one kernel", Pillar::kArithmeticIntensity,
     Level::kMemory, "memory", "hours", "low", "api-independent", "framework",
     "PyTorch: F.softmax, F.layer_norm, F.rms_norm, or torch.compile over the chain|"
     "write one kernel: one block a row, the row stays in registers or shared memory",
     "sums are taken in another order: compare within a tolerance"}};

constexpr std::size_t kLongest = 32;     // kernels of one chain: more do not fit in registers
constexpr double kFewElements = 32'768;  // below, launches are what matters: other rules'
constexpr double kMinEfficiency = 0.35, kFullEfficiency = 1.0;
constexpr double kMemoryBound =
    0.5;  // of the bandwidth: below, the traffic does not explain the time
constexpr double kLaunchFloor = 2'000;  // ns that even an empty kernel takes

// Of a library's norm, which gives each row a block: rows below that length, blocks of an SM at a
// time, and ns of each. 131,072 rows of 64 took 98 us on an H200.
constexpr double kShortRow = 256, kRowsOfUnit = 16, kRowTime = 1'600;

// A sum over so few elements is of one thread's vector: its row stays in registers. The rows of a
// softmax or a norm are longer.
constexpr double kVector = 16;

// What a chain has made and no kernel of it has read yet: an expression makes both sides first.
class Open {
 public:
  explicit Open(const Touch& head) : n_(head.n) {}
  double n() const { return n_; }
  bool all_read() const { return apart_ <= 0; }
  // Makes its elements from fewer.
  static bool expands(const Touch& touch) {
    return touch.kind == TouchKind::kPointwise && touch.inputs < 1;
  }
  // Reads all that the chain has made, in equal parts: the halves of a gate, or two columns.
  bool takes_parts(const Touch& touch) const {
    return touch.kind == TouchKind::kPointwise && touch.inputs >= 2 && all_read() &&
           touch.n * touch.inputs == n_;
  }
  // The chain goes on with a kernel: how many arrays of the chain's length it reads of it.
  double pass(const Touch& touch) {
    if (takes_parts(touch)) {
      n_ = touch.n;
      return touch.inputs;
    }
    if (touch.n != n_) return 0;
    if (expands(touch)) {
      apart_ += 1;
      return 0;
    }
    const double joined = std::min(apart_, std::max(0.0, touch.inputs - 1));
    apart_ -= joined;
    return 1 + joined;
  }

 private:
  double n_, apart_ = 0;
};

class Fusion {
 public:
  Fusion(Walk& walk, Advice& advice)
      : walk_(walk), advice_(advice), facts_(walk.facts()), pointwise_(walk), norms_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs()) {
      std::size_t begin = 0;
      while (begin < run.size()) {
        const std::size_t end = end_of_chain(run, begin);
        if (end - begin >= 2) rounds({run.data() + begin, end - begin});
        begin = std::max(end, begin + 1);
      }
    }
    for (const Chain* chain : norms_.all()) estimate(*chain, true);
    for (const Chain* chain : pointwise_.all()) estimate(*chain, false);
  }

 private:
  // How far a chain goes on from `begin`: what the last one wrote may be what the next one reads,
  // as many elements of the same size, or a reduction's results.
  std::size_t end_of_chain(const Launches& run, std::size_t begin) const {
    const double n = walk_.touch(run[begin]).n;
    if (walk_.taken(run[begin]) || !walk_.touch(run[begin]).light() || n < kFewElements)
      return begin;
    Open open(walk_.touch(run[begin]));
    double size = walk_.touch(run[begin]).out_size();
    std::set<double> results;  // of reductions
    if (walk_.touch(run[begin]).out < n) results.insert(walk_.touch(run[begin]).out);
    std::size_t end = begin + 1, last = end;
    for (; end < run.size() && !walk_.taken(run[end]); ++end) {
      const Touch& touch = walk_.touch(run[end]);
      if (!touch.light()) break;
      if (touch.n == open.n() || open.takes_parts(touch)) {
        // A fill reads nothing at all.
        if (Open::expands(touch) && touch.read <= 0) break;
        if (touch.in_size != size && results.empty()) break;
        open.pass(touch);
        if (touch.out < open.n()) {
          results.insert(touch.out);
        } else {
          size = touch.out_size();
        }
        if (open.all_read()) last = end + 1;
      } else if (touch.n > open.n() || !results.contains(touch.n)) {
        break;
      }
    }
    // Statistics that no kernel of the chain reads belong to what follows.
    return last;
  }

  // A loop runs one chain again and again: one round of it is what can be fused.
  void rounds(std::span<const std::uint32_t> chain) {
    const std::size_t period = period_of(chain);
    for (std::size_t at = 0; at < chain.size(); at += period)
      keep(chain.subspan(at, std::min({period, chain.size() - at, kLongest})));
  }
  std::size_t period_of(std::span<const std::uint32_t> chain) const {
    const auto row = [&](std::size_t i) { return facts_.row_of[walk_.at(chain[i]).row]; };
    for (std::size_t period = 1; 2 * period <= chain.size(); ++period) {
      std::size_t i = period;
      while (i < chain.size() && row(i) == row(i - period)) ++i;
      if (i == chain.size()) return period;
    }
    return std::min(chain.size(), kLongest);
  }

  void keep(std::span<const std::uint32_t> group) {
    std::set<std::size_t> distinct;
    bool reduces = false, joins = false;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Touch& touch = walk_.touch(group[i]);
      distinct.insert(facts_.row_of[walk_.at(group[i]).row]);
      // A mean of all elements is a loss, whose gradient reads them again.
      reduces = reduces || (touch.kind == TouchKind::kReduction && touch.out > 1 &&
                            !sums_vectors(touch) && read_again(group, i));
      joins = joins || touch.kind == TouchKind::kNorm;
      joins =
          joins || (i > 0 && (touch.inputs >= 2 || touch.in_size != walk_.touch(group[0]).in_size));
    }
    // One kernel again and again is as likely to work on one tensor after another, and two that
    // take turns too, unless one reads two tensors or another type.
    const bool sums = std::any_of(group.begin(), group.end(), [&](std::uint32_t one) {
      return walk_.touch(one).kind == TouchKind::kReduction;
    });
    if (distinct.size() < 2 || (!sums && !joins && distinct.size() < 3)) return;
    walk_.take(group);
    (reduces ? norms_ : pointwise_).add(group);
  }

  static bool sums_vectors(const Touch& touch) {
    return touch.out < touch.n && touch.n <= kVector * touch.out;
  }
  // A norm reads its elements again after a reduction of them. A sum at the end is none.
  bool read_again(std::span<const std::uint32_t> group, std::size_t reduction) const {
    const double n = walk_.touch(group[0]).n;
    return std::any_of(group.begin() + static_cast<std::ptrdiff_t>(reduction) + 1, group.end(),
                       [&](std::uint32_t later) {
                         const Touch& touch = walk_.touch(later);
                         return touch.n == n && touch.kind != TouchKind::kReduction;
                       });
  }

  struct Traffic {
    double now = 0, least = 0, most = 0;  // bytes of a round: now, and fused
    double floor_ns = 0;                  // of the kernels at their bandwidth
    double unexplained_ns = 0;            // of kernels that the traffic does not hold up
    double arithmetic_ns = 0;             // of that: what likely stays
    double between = 0;                   // bytes of an intermediate result
  };
  // Whether it begins in the forward pass and ends in the backward pass.
  bool has_gradient(const Chain& chain) const {
    const Launches& group = chain.groups.front();
    const Timeline& timeline = facts_.profile->timeline;
    return !in_backward(timeline, walk_.at(group.front())) &&
           in_backward(timeline, walk_.at(group.back()));
  }
  Traffic traffic_of(const Chain& chain, const Peaks& peaks, bool reduces) const {
    Traffic out;
    const Touch &head = walk_.row_touch(chain.rows.front()),
                &tail = walk_.row_touch(chain.rows.back());
    Open open(head);
    out.most = head.read;
    for (std::size_t i = 0; i < chain.rows.size(); ++i) {
      const Touch& touch = walk_.row_touch(chain.rows[i]);
      const double floor = touch.bytes() / peaks.bandwidth * 1e9;
      const double mean = facts_.profile->kernels[chain.rows[i]].duration.mean_ns();
      out.now += touch.bytes();
      out.floor_ns += floor;
      // The general variant's strides cost time too, and go with the kernel.
      const std::string& brief = facts_.rows.kernels[facts_.row_of[chain.rows[i]]].name.brief;
      if (mean > kShortLaunch && floor < kMemoryBound * mean &&
          !starts_with(brief, "elementwise ")) {
        out.unexplained_ns += mean - floor;
        out.arithmetic_ns += 0.5 * (mean - floor / kMemoryBound);
      }
      // Every input but those that the chain has made; the least: all of them are the first's.
      if (i == 0 || (touch.n != open.n() && !open.takes_parts(touch))) continue;
      out.most += std::max(0.0, touch.read - open.pass(touch) * touch.n * touch.in_size);
    }
    out.between = head.n * walk_.row_touch(chain.rows[1]).in_size;
    out.least = std::min(head.read, head.n * head.in_size) + tail.written;
    out.most += tail.written + (reduces ? out.between : 0);
    if (has_gradient(chain)) {  // two kernels: the second one reads its inputs or what was kept
      out.least += out.between;
      out.most += head.read + out.between;
    }
    out.most = std::max(out.least, std::min(out.most, out.now));
    return out;
  }

  void estimate(const Chain& chain, bool reduces) {
    const KernelStat& first = facts_.rows.kernels[facts_.row_of[chain.rows.front()]];
    const Peaks peaks = peaks_of(facts_, first, first.dtype);
    if (peaks.bandwidth <= 0 || chain.ns <= 0) return;
    const Traffic bytes = traffic_of(chain, peaks, reduces);
    const double each = chain.each_ns();
    const double efficiency =
        std::clamp(bytes.floor_ns / each, kMinEfficiency, facts_.targets.memory);
    const auto fused = [&](double moved, double share, double stays) {
      return stays + std::max(kLaunchFloor, moved / peaks.bandwidth * 1e9 / share);
    };
    Interval3 after = {
        fused(bytes.most, efficiency, bytes.unexplained_ns),
        fused(0.5 * (bytes.least + bytes.most), facts_.targets.memory, bytes.arithmetic_ns),
        fused(bytes.least, kFullEfficiency, 0)};
    const auto fewer = static_cast<double>(chain.rows.size() - 1);
    const bool cached = peaks.l2_bytes > 0 && bytes.between < 0.5 * peaks.l2_bytes;
    if (const double rows = short_rows(chain); reduces && rows > 0) {
      const double by_row = rows / (kRowsOfUnit * units()) * kRowTime;
      after.low = std::max(after.low, by_row);
      after.mid = 0.5 * (after.mid + after.low);
      short_rows_ns_ = by_row;
    } else {
      short_rows_ns_ = 0;
    }
    if (cached) after.low = std::max(after.low, each - std::min(fewer * kLaunchFloor, 0.5 * each));
    Intervention out = from_remedy(kFusion[reduces ? 1 : 0]);
    name_kernels(facts_, chain.rows, out);
    put_evidence(chain, bytes, cached, out);
    if (short_rows_ns_ > 0)
      out.assumptions.push_back(
          fmt::format("a library's norm has a block for each of these short rows, which takes {}: "
                      "the low estimate; a compiler joins rows",
                      short_ns(short_rows_ns_)));
    after = {std::min(after.low, each), std::min(after.mid, each), std::min(after.high, each)};
    become(facts_, chain, after, 1, out);
    out.together = true;
    out.confidence = bytes.unexplained_ns > 0 ? "D" : cached ? "C" : "B";
    advice_.interventions.push_back(std::move(out));
  }

  // Rows of a norm that are far shorter than a block of threads; 0 of other chains.
  double short_rows(const Chain& chain) const {
    double rows = 0;
    bool root = false;
    for (const std::uint32_t row : chain.rows) {
      const Touch& touch = walk_.row_touch(row);
      const std::string& op = facts_.rows.kernels[facts_.row_of[row]].op;
      root = root || op == "aten::rsqrt" || op == "aten::sqrt";
      if (touch.kind == TouchKind::kReduction && touch.n <= kShortRow * touch.out) rows = touch.out;
    }
    return root ? rows : 0;
  }
  double units() const {
    for (const DeviceInfo& device : facts_.profile->environment.devices)
      if (units_of(device) > 0) return units_of(device);
    return 1;
  }

  void put_evidence(const Chain& chain, const Traffic& bytes, bool cached,
                    Intervention& out) const {
    const Touch& head = walk_.row_touch(chain.rows.front());
    const double each = chain.each_ns(), one = head.n * head.in_size;
    out.evidence.push_back(
        {"consecutive kernels on one stream over equally many elements",
         fmt::format("{} of {}, {}, {} each", counted(chain.rows.size(), "kernel"),
                     counted(head.n, "element"), counted(chain.count(), "time"), short_ns(each)),
         "timeline and shapes"});
    out.evidence.push_back(
        {"bytes moved",
         fmt::format("{} now; fused {} to {}: from {:.1f} to {:.1f} times the elements",
                     format_bytes(bytes.now), format_bytes(bytes.least), format_bytes(bytes.most),
                     bytes.now / one, bytes.least / one),
         "shape model"});
    out.evidence.push_back({"share of the bandwidth reached",
                            fmt::format("{:.0f}%", 100 * std::min(1.0, bytes.floor_ns / each)),
                            "shape model"});
    out.assumptions.emplace_back(
        "each kernel reads the previous kernel's output, and no other kernel needs it: shapes and "
        "order suggest this, tensor addresses were not recorded");
    if (bytes.unexplained_ns > 0)
      out.assumptions.push_back(fmt::format(
          "the traffic does not explain {} of the {}: that part may be arithmetic, which fusion "
          "keeps; the low estimate keeps all of it",
          short_ns(bytes.unexplained_ns), short_ns(each)));
    if (cached)
      out.assumptions.push_back(
          fmt::format("the intermediate values ({}) may stay in the L2 cache: the low estimate "
                      "counts the launches alone",
                      format_bytes(bytes.between)));
  }

  Walk& walk_;
  Advice& advice_;
  const Facts& facts_;
  Chains pointwise_, norms_;
  double short_rows_ns_ = 0;  // ns of the chain that is estimated
};

}  // namespace

const Rule kFusionRule = {kFusion, [](Walk& walk, Advice& advice) { Fusion(walk, advice).run(); }};

}  // namespace purlin::analyze
