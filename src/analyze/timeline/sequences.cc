// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/sequences.h"

#include "analyze/kernel_name/kernel_name.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr std::size_t kNamesKept = 64;
constexpr double kMostOfStretch = 0.8;
constexpr std::int64_t kLongGap = 10'000'000'000;  // longer ones are no better a place to begin at
constexpr std::uint32_t kCopyToken = 0x80000000u;

// A token represents a kernel by name, with any launch shape, or a kind of copy.
class LaunchTokens {
 public:
  LaunchTokens(const Profile& profile, const std::vector<std::uint32_t>& of_row)
      : profile_(profile), of_row_(of_row) {}
  std::uint32_t operator()(const Activity& activity) const {
    if (activity.kind != ActivityKind::kKernel) return kCopyToken | (activity.row & ~kCopyToken);
    return activity.row < of_row_.size() ? of_row_[activity.row] : kCopyToken - 1;
  }
  std::string name(const Activity& activity) const {
    if (activity.kind == ActivityKind::kKernel)
      return activity.row < profile_.kernels.size()
                 ? describe_kernel(profile_.kernels[activity.row].name).brief
                 : "";
    return activity.row < profile_.copies.size() ? profile_.copies[activity.row].kind : "copy";
  }

 private:
  const Profile& profile_;
  const std::vector<std::uint32_t>& of_row_;
};

// Why a stretch cannot be captured as a graph unchanged.
class Hindrances {
 public:
  Hindrances(const Profile& profile, const StreamWork& stream, const LaunchTokens& tokens)
      : profile_(profile), stream_(stream), tokens_(tokens) {}

  std::string of(const Repetition& found) const {
    std::vector<std::string> reasons;
    add_shapes(found, reasons);
    add_copies(found, reasons);
    add_calls(found, reasons);
    return join(reasons, "; ");
  }
  bool shapes_vary(const Repetition& found) const {
    std::vector<std::string> reasons;
    add_shapes(found, reasons);
    return !reasons.empty();
  }
  // 0 without copies, or where more than them is in the way.
  int between_copies(const Repetition& found) const {
    const std::size_t copies = copies_in_a_round(found);
    std::vector<std::string> others;
    add_shapes(found, others);
    return copies > 0 && others.empty() ? static_cast<int>(found.period / copies) - 1 : 0;
  }

 private:
  const Activity& at(std::size_t position) const {
    return profile_.timeline.activities[stream_.activities[position]];
  }

  void add_shapes(const Repetition& found, std::vector<std::string>& reasons) const {
    std::set<std::size_t> differ;  // places in a round
    for (std::size_t i = found.begin + found.period; i < found.end(); ++i)
      if (differ_in_shape(at(i), at(i - found.period)))
        differ.insert((i - found.begin) % found.period);
    if (differ.empty()) return;
    const std::string name = tokens_.name(at(found.begin + *differ.begin()));
    reasons.push_back(fmt::format(
        "launch shapes or problem shapes vary between rounds: {}{}", name,
        differ.size() > 1 ? fmt::format(" and {} more", differ.size() - 1) : std::string()));
  }

  bool differ_in_shape(const Activity& a, const Activity& b) const {
    const auto& rows = profile_.kernels;
    if (a.kind != ActivityKind::kKernel || a.row == b.row || std::max(a.row, b.row) >= rows.size())
      return false;
    return !(rows[a.row].launch == rows[b.row].launch) || rows[a.row].shape != rows[b.row].shape;
  }

  std::size_t copies_in_a_round(const Repetition& found) const {
    std::size_t count = 0;
    for (std::size_t i = found.begin; i < found.begin + found.period; ++i) {
      const Activity& activity = at(i);
      if (activity.kind == ActivityKind::kCopy && activity.row < profile_.copies.size() &&
          copy_direction(profile_.copies[activity.row].kind) == "d2h")
        ++count;
    }
    return count;
  }
  void add_copies(const Repetition& found, std::vector<std::string>& reasons) const {
    const std::size_t count = copies_in_a_round(found);
    if (count > 0)
      reasons.push_back(fmt::format("{} to the host in a round", counted(count, "memcpy")));
  }

  // Calls between the first and the last launch of a round, by the threads that launch it.
  void add_calls(const Repetition& found, std::vector<std::string>& reasons) const {
    const Timeline& timeline = profile_.timeline;
    std::vector<Interval> rounds;  // on the host
    std::set<std::pair<std::uint32_t, std::uint32_t>> threads;
    for (std::size_t round = 0; round < found.rounds; ++round) {
      Interval host = {std::numeric_limits<std::int64_t>::max(),
                       std::numeric_limits<std::int64_t>::min()};
      for (std::size_t i = 0; i < found.period; ++i) {
        const std::uint32_t index = at(found.begin + round * found.period + i).call;
        if (index >= timeline.calls.size()) continue;
        const Call& call = timeline.calls[index];
        host.begin = std::min(host.begin, begin_of(call));
        host.end = std::max(host.end, begin_of(call));
        threads.emplace(call.process, call.thread);
      }
      if (host.begin < host.end) rounds.push_back(host);
    }
    if (rounds.empty()) return;
    std::map<std::uint32_t, std::size_t> waits, allocations;  // by name
    auto call =
        std::partition_point(timeline.calls.begin(), timeline.calls.end(),
                             [&](const Call& c) { return begin_of(c) < rounds.front().begin; });
    std::size_t round = 0;
    for (; call != timeline.calls.end(); ++call) {
      const std::int64_t begin = begin_of(*call);
      while (round < rounds.size() && rounds[round].end < begin) ++round;
      if (round == rounds.size()) break;
      if (begin < rounds[round].begin || !threads.contains({call->process, call->thread})) continue;
      if (allocates_outside_of_streams(timeline, *call)) ++allocations[call->name];
      if (call->kind == CallKind::kSync || call->kind == CallKind::kCopy)
        if (waits_for_device(timeline, *call)) ++waits[call->name];
    }
    add_most(waits, "the host waits inside", reasons);
    add_most(allocations, "memory is allocated or freed inside", reasons);
  }

  void add_most(const std::map<std::uint32_t, std::size_t>& counts, std::string_view what,
                std::vector<std::string>& reasons) const {
    if (counts.empty()) return;
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    const auto& names = profile_.timeline.names;
    reasons.push_back(fmt::format("{}: {} ({})", what,
                                  most->first < names.size() ? names[most->first] : "",
                                  counted(most->second, "time")));
  }

  const Profile& profile_;
  const StreamWork& stream_;
  const LaunchTokens& tokens_;
};

// Layers of a step have the same kernels and other shapes, and each step has the same layers: the
// rounds that have equal shapes. Nothing where these do not cover most of the stretch.
std::vector<Repetition> with_equal_shapes(const Profile& profile, const StreamWork& stream,
                                          const Repetition& found,
                                          const std::vector<std::uint32_t>& tokens,
                                          const std::vector<std::int64_t>& gaps) {
  using Shape = std::tuple<std::uint32_t, Dim3, Dim3, std::string_view>;
  std::map<Shape, std::uint32_t> numbers;
  std::vector<std::uint32_t> by_shape;
  for (std::size_t i = found.begin; i < found.end(); ++i) {
    const Activity& activity = profile.timeline.activities[stream.activities[i]];
    Shape shape = {tokens[i], {}, {}, {}};
    if (activity.kind == ActivityKind::kKernel && activity.row < profile.kernels.size()) {
      const KernelRow& row = profile.kernels[activity.row];
      shape = {tokens[i], row.launch.grid, row.launch.block, row.shape};
    }
    const auto next = static_cast<std::uint32_t>(numbers.size());
    by_shape.push_back(numbers.try_emplace(shape, next).first->second);
  }
  std::vector<Repetition> out =
      find_repetitions(by_shape, {gaps.begin() + static_cast<std::ptrdiff_t>(found.begin),
                                  gaps.begin() + static_cast<std::ptrdiff_t>(found.end())});
  // Other rounds than the first have other shapes, so one graph does not hold both.
  const std::vector<Repetition> every = std::exchange(out, {});
  std::size_t covered = 0;
  for (const Repetition& one : every) {
    const auto begin = by_shape.begin() + static_cast<std::ptrdiff_t>(one.begin);
    const auto first = by_shape.begin() + static_cast<std::ptrdiff_t>(every.front().begin);
    const auto length = static_cast<std::ptrdiff_t>(every.front().period);
    if (one.period != every.front().period || !std::equal(first, first + length, begin)) continue;
    covered += one.period * one.rounds;
    out.push_back({one.begin + found.begin, one.period, one.rounds});
  }
  const auto all = static_cast<double>(found.period * found.rounds);
  return static_cast<double>(covered) >= kMostOfStretch * all ? out : std::vector<Repetition>();
}

}  // namespace

std::string round_of(const RepeatedSequence& sequence) {
  const std::string kernels = counted(sequence.length - sequence.copies, "kernel");
  if (sequence.copies == 0) return kernels;
  return fmt::format("{} and {}", kernels,
                     sequence.copies == 1 ? std::string("1 memcpy or memset")
                                          : fmt::format("{} memcpys or memsets", sequence.copies));
}

std::vector<std::uint32_t> number_names(const Profile& profile) {
  std::unordered_map<std::string_view, std::uint32_t> names;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(profile.kernels.size());
  for (const KernelRow& row : profile.kernels)
    numbers.push_back(
        names.try_emplace(row.name, static_cast<std::uint32_t>(names.size())).first->second);
  return numbers;
}

std::vector<FoundSequence> find_sequences(const Profile& profile,
                                          const std::vector<std::uint32_t>& name_numbers,
                                          const StreamWork& stream) {
  const Timeline& timeline = profile.timeline;
  const LaunchTokens token_of(profile, name_numbers);
  std::vector<std::uint32_t> tokens;
  std::vector<std::int64_t> gaps;
  tokens.reserve(stream.activities.size());
  gaps.reserve(stream.activities.size());
  std::int64_t until = 0;
  for (const std::uint32_t index : stream.activities) {
    const Activity& activity = timeline.activities[index];
    gaps.push_back(
        tokens.empty() ? 0 : std::clamp(begin_of(activity) - until, std::int64_t{0}, kLongGap));
    tokens.push_back(token_of(activity));
    until = std::max(until, end_of(activity));
  }

  // Stretches with the same kernels, begun at the same place, are one sequence.
  const Hindrances hindrances(profile, stream, token_of);
  std::map<std::vector<std::uint32_t>, FoundSequence> sequences;
  std::vector<Repetition> repetitions;
  for (const Repetition& found : find_repetitions(tokens, gaps)) {
    std::vector<Repetition> equal;
    if (hindrances.shapes_vary(found))
      equal = with_equal_shapes(profile, stream, found, tokens, gaps);
    const bool hindered = std::any_of(equal.begin(), equal.end(), [&](const Repetition& one) {
      return !hindrances.of(one).empty();
    });
    if (equal.empty() || hindered) equal = {found};
    repetitions.insert(repetitions.end(), equal.begin(), equal.end());
  }
  for (const Repetition& found : repetitions) {
    const auto at = [&](std::size_t i) -> const Activity& {
      return timeline.activities[stream.activities[i]];
    };
    std::vector<std::uint32_t> round(
        tokens.begin() + static_cast<std::ptrdiff_t>(found.begin),
        tokens.begin() + static_cast<std::ptrdiff_t>(found.begin + found.period));
    const auto copies = static_cast<std::size_t>(std::count_if(
        round.begin(), round.end(), [](std::uint32_t token) { return (token & kCopyToken) != 0; }));
    const bool only_copies = copies == found.period;
    const auto [place, added] = sequences.try_emplace(std::move(round));
    place->second.only_copies = only_copies;
    RepeatedSequence& sequence = place->second.sequence;
    if (added) {
      sequence.length = static_cast<int>(found.period);
      sequence.copies = static_cast<int>(copies);
      sequence.device = stream.device;
      sequence.process = stream.process;
      sequence.stream = stream.stream;
      for (std::size_t i = 0; i < std::min(found.period, kNamesKept); ++i)
        sequence.kernels.push_back(token_of.name(at(found.begin + i)));
    }
    if (sequence.hindrance.empty()) {
      sequence.hindrance = hindrances.of(found);
      sequence.between_copies = hindrances.between_copies(found);
    }
    std::size_t nodes = 0;
    std::int64_t end = begin_of(at(found.begin));
    for (std::size_t i = found.begin; i < found.end(); ++i) {
      const Activity& activity = at(i);
      if (is_graph_node(timeline, activity)) ++nodes;
      sequence.busy_ns +=
          std::max<std::int64_t>(0, end_of(activity) - std::max(end, begin_of(activity)));
      end = std::max(end, end_of(activity));
    }
    place->second.graphs = place->second.graphs || nodes * 2 > found.end() - found.begin;
    sequence.repeats += static_cast<int>(found.rounds);
    sequence.stretches.emplace_back(begin_of(at(found.begin)), begin_of(at(found.end() - 1)));
    sequence.total_ns += end - begin_of(at(found.begin));
  }
  std::vector<FoundSequence> out;
  for (auto& [round, sequence] : sequences) out.push_back(std::move(sequence));
  std::stable_sort(out.begin(), out.end(), [](const FoundSequence& a, const FoundSequence& b) {
    return a.sequence.total_ns > b.sequence.total_ns;
  });
  return out;
}

}  // namespace purlin::analyze
