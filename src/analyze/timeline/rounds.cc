// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/rounds.h"

#include "analyze/timeline/host.h"
#include "analyze/timeline/median.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::size_t kMinRounds = 3;
// Of a stretch that has the smaller part of the time.
constexpr std::size_t kMinLateRounds = 10;
constexpr double kMinScore = 0.5;        // of the device's kernel time
constexpr double kDistanceSlack = 0.2;   // of the median distance between two anchors
constexpr int kIrregular = 3;            // regular distances that one irregular one outweighs
constexpr double kEqualScores = 0.002;   // a difference that does not decide
constexpr std::size_t kMaxAnchors = 64;  // numbers of rounds that are tried

// One launch as the host made it: a kernel, a memcpy, or a whole CUDA graph.
struct Launch {
  std::uint32_t token = 0;
  Interval interval;           // on the device
  std::int64_t kernel_ns = 0;  // of its kernels, each in full
  std::int64_t idle_ns = 0;    // of the device before it
  std::uint32_t call = kNone;
  std::int64_t pause_ns = 0;  // of the host before its op or call; 0: not known
  std::uint32_t nodes = 1;    // of a graph
};

// The launches of a device in order of their start.
class LaunchList {
 public:
  LaunchList(const Profile& profile, const std::vector<std::uint32_t>& name_numbers,
             const DeviceWork& work)
      : timeline_(profile.timeline), name_numbers_(name_numbers) {
    for (std::size_t i = work.first; i < work.last; ++i)
      if (!is_migration(profile, timeline_.activities[i])) add(timeline_.activities[i]);
    name_graphs();
    std::int64_t until = launches.empty() ? 0 : launches.front().interval.begin;
    for (Launch& launch : launches) {
      launch.idle_ns = std::max<std::int64_t>(0, launch.interval.begin - until);
      until = std::max(until, launch.interval.end);
    }
    find_pauses();
  }

  std::vector<Launch> launches;
  std::uint32_t tokens = 0;  // numbered from 0

 private:
  enum class Kind : std::uint8_t { kKernel, kCopy, kGraph };
  using Key = std::pair<Kind, std::uint64_t>;

  // The outermost op around the call; without ops the call itself.
  Interval outermost(const Call& call) const {
    Interval out = interval_of(call);
    constexpr int kDeepest = 64;
    std::uint32_t op = call.op;
    for (int i = 0; op < timeline_.ops.size() && i < kDeepest; ++i, op = timeline_.ops[op].parent)
      out = interval_of(timeline_.ops[op]);
    return out;
  }
  // In the order of the calls of a process: what lies between one launching op and the next. A
  // separate thread for the backward pass goes on where the forward pass ends.
  void find_pauses() {
    std::vector<Launch*> by_call;
    for (Launch& launch : launches)
      if (launch.call < timeline_.calls.size()) by_call.push_back(&launch);
    std::stable_sort(by_call.begin(), by_call.end(),
                     [](const Launch* a, const Launch* b) { return a->call < b->call; });
    std::map<std::uint32_t, std::int64_t> until;  // by process
    for (Launch* launch : by_call) {
      const Call& call = timeline_.calls[launch->call];
      const Interval around = outermost(call);
      const auto [at, first] = until.try_emplace(call.process, around.begin);
      launch->pause_ns = std::max<std::int64_t>(0, around.begin - at->second);
      at->second = std::max(at->second, around.end);
    }
  }

  std::uint32_t token_of(Key key) {
    const auto [known, added] = numbers_.try_emplace(key, tokens);
    if (added) ++tokens;
    return known->second;
  }

  Key key_of(const Activity& activity) const {
    if (activity.kind != ActivityKind::kKernel) return {Kind::kCopy, activity.row};
    return {Kind::kKernel,
            activity.row < name_numbers_.size() ? name_numbers_[activity.row] : kNone};
  }

  void add(const Activity& activity) {
    const Interval interval = interval_of(activity);
    const std::int64_t kernel_ns = activity.kind == ActivityKind::kKernel ? interval.length() : 0;
    // Nodes without a known call count as kernels: which launch they belong to is not known.
    if (is_graph_node(timeline_, activity) && activity.call < timeline_.calls.size()) {
      const auto [known, added] = graphs_.try_emplace(activity.call, launches.size());
      if (!added) {
        Launch& launch = launches[known->second];
        launch.interval.end = std::max(launch.interval.end, interval.end);
        launch.kernel_ns += kernel_ns;
        ++nodes_[known->second];
        return;
      }
      nodes_[launches.size()] = 1;
    }
    launches.push_back({token_of(key_of(activity)), interval, kernel_ns, 0, activity.call});
  }

  // The first node and the number of nodes identify a graph.
  void name_graphs() {
    for (const auto& [index, nodes] : nodes_) {
      launches[index].nodes = nodes;
      launches[index].token = token_of(
          {Kind::kGraph, std::uint64_t{launches[index].token} << 32 | std::uint64_t{nodes}});
    }
  }

  const Timeline& timeline_;
  const std::vector<std::uint32_t>& name_numbers_;
  std::map<Key, std::uint32_t> numbers_;
  std::unordered_map<std::uint32_t, std::size_t> graphs_;  // call that launched it -> index
  std::map<std::size_t, std::uint32_t> nodes_;             // index -> nodes
};

// Occurrences of one token at regular distances.
struct Anchor {
  std::vector<std::size_t> at;  // indices of launches
  std::size_t distance = 0;     // the median
  double irregularity = 0;      // mean deviation of a distance, relative to the median
  std::int64_t idle_ns = 0;     // before all of them
  std::int64_t pause_ns = 0;    // of the host before one of them, the median
  std::size_t rounds() const { return at.size() - 1; }
};

// The run of occurrences whose distances are mostly near their median. Too short: no rounds.
Anchor regular_run(const std::vector<std::size_t>& places) {
  Anchor anchor;
  if (places.size() < kMinRounds + 1) return anchor;
  std::vector<std::size_t> distances;
  for (std::size_t i = 0; i + 1 < places.size(); ++i)
    distances.push_back(places[i + 1] - places[i]);
  const std::size_t usual = median_of(distances);
  const auto median = static_cast<double>(usual);
  const auto deviation = [&](std::size_t i) {
    return std::abs(static_cast<double>(distances[i]) - median) / median;
  };
  // The stretch with the greatest sum: 1 for a regular distance, -kIrregular for another one. A
  // step with an evaluation or a checkpoint in it does not end the run.
  std::size_t begin = 0, best_begin = 0, best_end = 0;
  int sum = 0, best = 0;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    sum += deviation(i) <= kDistanceSlack ? 1 : -kIrregular;
    if (sum > best) best = sum, best_begin = begin, best_end = i + 1;
    if (sum < 0) sum = 0, begin = i + 1;
  }
  if (best_end - best_begin < kMinRounds) return anchor;
  anchor.at.assign(places.begin() + static_cast<std::ptrdiff_t>(best_begin),
                   places.begin() + static_cast<std::ptrdiff_t>(best_end + 1));
  anchor.distance = usual;
  for (std::size_t i = best_begin; i < best_end; ++i) anchor.irregularity += deviation(i);
  anchor.irregularity /= static_cast<double>(anchor.rounds());
  return anchor;
}

class RoundFinder {
 public:
  RoundFinder(std::span<const Launch> launches, std::uint32_t tokens)
      : launches_(launches), tokens_(tokens) {
    sums_.push_back(0);
    for (const Launch& launch : launches_) sums_.push_back(sums_.back() + launch.kernel_ns);
  }

  std::int64_t kernel_ns() const { return sums_.back(); }

  Rounds find() const {
    Rounds out;
    if (sums_.back() <= 0) return out;
    const std::map<std::size_t, std::vector<Anchor>> by_rounds = anchors();
    double best = 0;
    std::map<std::size_t, double> scores;
    for (const auto& [rounds, group] : by_rounds)
      best = std::max(best, scores[rounds] = score(most_regular(group)));
    if (best < kMinScore) return out;
    for (auto group = by_rounds.rbegin(); group != by_rounds.rend(); ++group) {
      if (scores[group->first] < best - kEqualScores) continue;
      const Anchor& anchor = best_begin(by_rounds, group->first);
      if (anchor.distance < 2) return out;  // one kernel again and again is no round
      out.windows = windows_of(anchor);
      out.launches = anchor.distance;
      out.score = scores[group->first];
      return out;
    }
    return out;
  }

 private:
  std::span<const Launch> launches() const { return launches_; }
  std::int64_t kernel_ns(std::size_t begin, std::size_t end) const {
    return sums_[end] - sums_[begin];
  }

  // The anchors that cover enough kernel time, by their number of rounds. Tokens that occur once in
  // each step have the same number.
  std::map<std::size_t, std::vector<Anchor>> anchors() const {
    std::vector<std::vector<std::size_t>> places(tokens_);
    for (std::size_t i = 0; i < launches().size(); ++i) places[launches()[i].token].push_back(i);
    std::map<std::size_t, std::vector<Anchor>> out;
    for (const std::vector<std::size_t>& of_token : places) {
      Anchor anchor = regular_run(of_token);
      if (anchor.at.empty()) continue;
      const auto covered = static_cast<double>(kernel_ns(anchor.at.front(), anchor.at.back()));
      const auto rounds = static_cast<double>(anchor.rounds());
      // The last round ends after the last anchor.
      if (covered * (rounds + 1) / rounds < kMinScore * static_cast<double>(sums_.back())) continue;
      for (const std::size_t i : anchor.at) anchor.idle_ns += launches()[i].idle_ns;
      anchor.pause_ns = usual_pause(anchor);
      out[anchor.rounds()].push_back(std::move(anchor));
    }
    // Of very many numbers of rounds, the ones with most anchors.
    while (out.size() > kMaxAnchors) {
      const auto fewest = std::min_element(
          out.begin(), out.end(),
          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      out.erase(fewest);
    }
    return out;
  }

  static const Anchor& most_regular(const std::vector<Anchor>& group) {
    return *std::min_element(group.begin(), group.end(), [](const Anchor& a, const Anchor& b) {
      return a.irregularity < b.irregularity;
    });
  }

  std::int64_t usual_pause(const Anchor& anchor) const {
    std::vector<std::int64_t> pauses;
    for (const std::size_t i : anchor.at) pauses.push_back(launches()[i].pause_ns);
    return median_of(std::move(pauses));
  }

  // Rounds begin where the host does most before it launches. A device that is never idle hides it;
  // where the host's calls are not known, the device's idle time shows it.
  static const Anchor& after_longest_pause(const std::vector<Anchor>& group) {
    return *std::max_element(group.begin(), group.end(), [](const Anchor& a, const Anchor& b) {
      return std::pair(a.pause_ns, a.idle_ns) < std::pair(b.pause_ns, b.idle_ns);
    });
  }

  // A recording that begins within a round has one more of the tokens after that place.
  static const Anchor& best_begin(const std::map<std::size_t, std::vector<Anchor>>& by_rounds,
                                  std::size_t rounds) {
    const Anchor& most = after_longest_pause(by_rounds.at(rounds));
    const auto fewer = by_rounds.find(rounds - 1);
    if (fewer == by_rounds.end()) return most;
    const Anchor& other = after_longest_pause(fewer->second);
    return other.distance == most.distance && other.pause_ns > most.pause_ns ? other : most;
  }

  // How often a token occurs in a round: rounds with that number, and their time of the token.
  struct Occurrences {
    std::uint32_t count = 0;
    std::size_t rounds = 0;
    std::int64_t kernel_ns = 0;
  };

  static void add_round(std::vector<Occurrences>& of_token, const Occurrences& in_round) {
    const auto same = std::find_if(of_token.begin(), of_token.end(), [&](const Occurrences& known) {
      return known.count == in_round.count;
    });
    if (same == of_token.end()) {
      of_token.push_back(in_round);
      return;
    }
    ++same->rounds;
    same->kernel_ns += in_round.kernel_ns;
  }

  // The share of the device's kernel time whose tokens occur equally often in each round.
  double score(const Anchor& anchor) const {
    std::vector<std::vector<Occurrences>> of_token(tokens_);
    std::vector<Occurrences> in_round(tokens_);
    std::vector<std::uint32_t> touched;
    std::int64_t all = 0, alike = 0;
    for (std::size_t round = 0; round < anchor.rounds(); ++round) {
      for (std::size_t i = anchor.at[round]; i < anchor.at[round + 1]; ++i) {
        Occurrences& occurrences = in_round[launches()[i].token];
        if (occurrences.count++ == 0) touched.push_back(launches()[i].token);
        occurrences.kernel_ns += launches()[i].kernel_ns;
      }
      for (const std::uint32_t token : touched) {
        all += in_round[token].kernel_ns;
        in_round[token].rounds = 1;
        add_round(of_token[token], in_round[token]);
        in_round[token] = {};
      }
      touched.clear();
    }
    for (const std::vector<Occurrences>& token : of_token) {
      // Rounds without the token are the usual ones where they are the most.
      std::size_t absent = anchor.rounds();
      const Occurrences* usual = nullptr;
      for (const Occurrences& occurrences : token) {
        absent -= occurrences.rounds;
        if (usual == nullptr || occurrences.rounds > usual->rounds) usual = &occurrences;
      }
      if (usual != nullptr && usual->rounds >= absent) alike += usual->kernel_ns;
    }
    if (all == 0) return 0;
    const auto covered = static_cast<double>(kernel_ns(anchor.at.front(), end_of_rounds(anchor)));
    return static_cast<double>(alike) / static_cast<double>(all) * covered /
           static_cast<double>(sums_.back());
  }

  // The round after the last anchor counts where it is as the one before.
  bool last_is_whole(const Anchor& anchor) const {
    const std::size_t last = anchor.at.back(), before = anchor.at[anchor.at.size() - 2];
    const std::size_t length = last - before;
    if (last + length > launches().size()) return false;
    std::size_t same = 0;
    for (std::size_t i = 0; i < length; ++i)
      if (launches()[before + i].token == launches()[last + i].token) ++same;
    return 10 * same >= 9 * length;
  }

  std::size_t end_of_rounds(const Anchor& anchor) const {
    const std::size_t last = anchor.at.back();
    return last_is_whole(anchor) ? 2 * last - anchor.at[anchor.at.size() - 2] : last;
  }

  std::vector<Interval> windows_of(const Anchor& anchor) const {
    std::vector<Interval> windows;
    for (std::size_t i = 0; i + 1 < anchor.at.size(); ++i)
      windows.push_back(
          {launches()[anchor.at[i]].interval.begin, launches()[anchor.at[i + 1]].interval.begin});
    const std::size_t end = end_of_rounds(anchor);
    if (end == anchor.at.back()) return windows;
    Interval last = launches()[anchor.at.back()].interval;
    for (std::size_t i = anchor.at.back(); i < end; ++i)
      last.end = std::max(last.end, launches()[i].interval.end);
    // The work of the next round may have begun on another stream.
    if (end < launches().size()) last.end = std::min(last.end, launches()[end].interval.begin);
    windows.push_back({last.begin, std::max(last.begin, last.end)});
    return windows;
  }

  const std::span<const Launch> launches_;
  const std::uint32_t tokens_;
  std::vector<std::int64_t> sums_;  // kernel time of the launches before an index
};

// The longest stretch without a launch of a new kind, counted in kernels. Compilers try kernels out
// before the first step, and may take most of a short recording.
std::span<const Launch> longest_without_news(const LaunchList& list) {
  std::vector<bool> seen(list.tokens);
  std::size_t begin = 0, best_begin = 0, best_end = 0;
  std::uint64_t nodes = 0, best = 0;
  for (std::size_t i = 0; i < list.launches.size(); ++i) {
    const Launch& launch = list.launches[i];
    if (!seen[launch.token]) {
      seen[launch.token] = true;
      begin = i + 1;
      nodes = 0;
      continue;
    }
    nodes += launch.nodes;
    if (nodes > best) best = nodes, best_begin = begin, best_end = i + 1;
  }
  return std::span(list.launches).subspan(best_begin, best_end - best_begin);
}

}  // namespace

Rounds find_rounds(const Profile& profile, const std::vector<std::uint32_t>& name_numbers,
                   const DeviceWork& work) {
  const LaunchList list(profile, name_numbers, work);
  const RoundFinder all(list.launches, list.tokens);
  Rounds out = all.find();
  if (!out.windows.empty()) return out;
  const RoundFinder stretch(longest_without_news(list), list.tokens);
  out = stretch.find();
  if (out.windows.size() < kMinLateRounds) return {};
  out.score *= static_cast<double>(stretch.kernel_ns()) / static_cast<double>(all.kernel_ns());
  return out;
}

}  // namespace purlin::analyze
