// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/sequences.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::size_t kLongPeriod = 16;  // for which two rounds are enough
constexpr std::array<std::size_t, 6> kRunLengths = {2, 8, 32, 128, 512, 2048};
constexpr std::size_t kPeriodsPerLength = 4;
constexpr std::size_t kMaxPicks = 4;
constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15u;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 29);
}

bool enough(std::size_t length, std::size_t period) {
  return length >= (period >= kLongPeriod ? 2 : 3) * period;
}

// Distances at which runs of `length` tokens recur, the most frequent ones. The table forgets: what
// it yields are guesses.
void guess_periods(const std::vector<std::uint32_t>& tokens, std::size_t length,
                   std::vector<std::size_t>& periods) {
  if (tokens.size() < 2 * length) return;
  struct Seen {
    std::uint64_t hash = 0;
    std::size_t at = 0;
  };
  std::size_t slots = 1024;
  while (slots < tokens.size() && slots < (std::size_t{1} << 20)) slots *= 2;
  std::vector<Seen> table(slots);
  std::unordered_map<std::size_t, std::size_t> counts;
  std::uint64_t hash = 0, out_factor = 1;
  for (std::size_t i = 0; i < length; ++i) out_factor *= kBase;
  std::size_t distance = 0, run = 0;
  const auto flush = [&] {
    if (run > 0 && (counts.size() < 100'000 || counts.contains(distance))) counts[distance] += run;
    run = 0;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    hash = hash * kBase + mix(tokens[i] + 1);
    if (i >= length) hash -= out_factor * mix(tokens[i - length] + 1);
    if (i + 1 < length) continue;
    const std::uint64_t mixed = mix(hash);
    Seen& seen = table[mixed & (slots - 1)];
    if (seen.hash == mixed && seen.at < i) {
      const std::size_t d = i - seen.at;
      if (d != distance) flush();
      distance = d;
      ++run;
    }
    seen = {mixed, i};
  }
  flush();
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  for (const auto& [d, count] : counts) ranked.emplace_back(count, d);
  const std::size_t keep = std::min(kPeriodsPerLength, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(keep),
                    ranked.end(), [](const auto& a, const auto& b) {
                      return a.first != b.first ? a.first > b.first : a.second < b.second;
                    });
  for (std::size_t i = 0; i < keep; ++i) periods.push_back(ranked[i].second);
}

// Maximal stretches of period d in tokens[begin, end): calls found(begin, end) for those that are
// long enough.
template <class Found>
void scan(const std::vector<std::uint32_t>& tokens, std::size_t begin, std::size_t end,
          std::size_t period, Found found) {
  std::size_t run = 0;
  for (std::size_t i = begin + period; i <= end; ++i) {
    if (i < end && tokens[i] == tokens[i - period]) {
      ++run;
      continue;
    }
    if (run > 0 && enough(run + period, period)) found(i - run - period, i);
    run = 0;
  }
}

struct Stretch {
  std::size_t begin, end;
};

// Where in a stretch rounds begin: where most idle time is before them, on the whole.
Repetition place_rounds(Stretch stretch, std::size_t period,
                        const std::vector<std::int64_t>& weight) {
  const std::size_t length = stretch.end - stretch.begin, rounds = length / period;
  // A round may be given up for a better place where there are many.
  const std::size_t shifts = rounds >= 4 ? period : std::min(period, length % period + 1);
  std::size_t best = 0;
  if (!weight.empty()) {
    std::vector<std::int64_t> sums(shifts);
    for (std::size_t i = stretch.begin; i < stretch.end; ++i)
      if (const std::size_t shift = (i - stretch.begin) % period; shift < shifts)
        sums[shift] += i == stretch.begin ? 0 : weight[i];
    // The stretch's own begin is a good place, and has no gap before it that could be counted.
    if (rounds > 1) sums[0] += sums[0] / static_cast<std::int64_t>(rounds - 1);
    best = static_cast<std::size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
  }
  return {stretch.begin + best, period, (length - best) / period};
}

}  // namespace

std::vector<Repetition> find_repetitions(const std::vector<std::uint32_t>& tokens,
                                         const std::vector<std::int64_t>& weight) {
  std::vector<std::size_t> periods;
  for (const std::size_t length : kRunLengths) guess_periods(tokens, length, periods);
  std::sort(periods.begin(), periods.end());
  periods.erase(std::unique(periods.begin(), periods.end()), periods.end());

  std::vector<Repetition> out;
  std::vector<Stretch> free = {{0, tokens.size()}};
  for (std::size_t pick = 0; pick < kMaxPicks && !periods.empty(); ++pick) {
    std::size_t best = 0, best_covered = 0;
    for (const std::size_t period : periods) {
      std::size_t covered = 0;
      for (const Stretch& part : free)
        scan(tokens, part.begin, part.end, period,
             [&](std::size_t begin, std::size_t end) { covered += end - begin; });
      // Multiples of a period cover what it covers; they are greater and come later.
      if (covered > best_covered + best_covered / 1000) {
        best = period;
        best_covered = covered;
      }
    }
    if (best == 0) break;
    std::vector<Stretch> left;
    for (const Stretch& part : free) {
      std::size_t at = part.begin;
      scan(tokens, part.begin, part.end, best, [&](std::size_t begin, std::size_t end) {
        // Two stretches of one period may share tokens: the later one gives way.
        begin = std::max(begin, at);
        if (!enough(end - begin, best)) return;
        out.push_back(place_rounds({begin, end}, best, weight));
        if (at < begin) left.push_back({at, begin});
        at = end;
      });
      if (at < part.end) left.push_back({at, part.end});
    }
    free = std::move(left);
    periods.erase(std::find(periods.begin(), periods.end(), best));
  }
  return out;
}

}  // namespace purlin::analyze
