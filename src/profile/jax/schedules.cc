// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/schedules.h"

#include "base/hash.h"

#include <fmt/core.h>

#include <algorithm>

namespace purlin::profile {
namespace {

using hlo::Launch;
using hlo::Program;

constexpr std::size_t kReach = 6;  // in the schedule, between launches that count as neighbours

std::uint64_t pair_key(std::uint64_t program, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t parts[] = {program, a, b};
  return hash64(parts, sizeof parts);
}

}  // namespace

Schedules::Schedules(const std::vector<Program>& programs) : programs_(programs) {
  for (std::uint32_t p = 0; p < programs.size(); ++p) add(p);
}

const std::vector<LaunchRef>* Schedules::named(const std::string& kernel) const {
  const auto at = by_kernel_.find(kernel);
  return at == by_kernel_.end() ? nullptr : &at->second;
}

bool Schedules::follows(LaunchRef first, LaunchRef second) const {
  return first.program == second.program &&
         near_.contains(pair_key(first.program, launch(first).signature, launch(second).signature));
}

LaunchRef Schedules::call(std::string_view module, std::string_view instruction) const {
  const auto at = calls_.find(fmt::format("{}/{}", module, instruction));
  return at == calls_.end() ? LaunchRef() : at->second;
}

const std::vector<std::uint32_t>* Schedules::between(LaunchRef before, LaunchRef after) const {
  const std::uint32_t program = before.known() ? before.program : after.program;
  const auto at = gaps_.find(pair_key(program, before.known() ? launch(before).signature : 0,
                                      after.known() ? launch(after).signature : 0));
  return at == gaps_.end() || at->second.differs ? nullptr : &at->second.calls;
}

void Schedules::add(std::uint32_t p) {
  index_names(p);
  std::vector<std::uint64_t> named;  // signatures in order
  std::vector<std::uint32_t> calls;
  for (const std::uint32_t at : programs_[p].order) {
    const Launch& launch = programs_[p].launches[at];
    if (launch.library()) {
      calls.push_back(at);
      continue;
    }
    keep(p, named.empty() ? 0 : named.back(), launch.signature, calls);
    named.push_back(launch.signature);
    calls.clear();
  }
  if (named.empty()) return;
  keep(p, named.back(), 0, calls);
  // A program that runs again begins after its end.
  for (std::size_t i = 0; i < named.size(); ++i)
    for (std::size_t step = 1; step <= std::min(kReach, named.size()); ++step)
      near_.insert(pair_key(p, named[i], named[(i + step) % named.size()]));
}

void Schedules::index_names(std::uint32_t p) {
  const Program& program = programs_[p];
  std::size_t named = 0;
  for (std::uint32_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (!launch.library()) {
      by_kernel_[launch.kernel].push_back({p, i});
      ++named;
      continue;
    }
    const auto [at, added] =
        calls_.try_emplace(fmt::format("{}/{}", program.name, launch.instruction), LaunchRef{p, i});
    const LaunchRef other = at->second;
    if (!added && other.known() && this->launch(other).shape != launch.shape)
      at->second = LaunchRef();
  }
  named_counts_.push_back(named);
}

void Schedules::keep(std::uint32_t p, std::uint64_t before, std::uint64_t after,
                     const std::vector<std::uint32_t>& calls) {
  keep_gap(pair_key(p, before, after), p, calls);
  if (before != 0 && after != 0) {
    keep_gap(pair_key(p, 0, after), p, calls);
    keep_gap(pair_key(p, before, 0), p, calls);
  }
}

void Schedules::keep_gap(std::uint64_t key, std::uint32_t p,
                         const std::vector<std::uint32_t>& calls) {
  const auto [at, added] = gaps_.try_emplace(key);
  Gap& gap = at->second;
  if (added) gap.calls = calls;
  if (added || gap.differs) return;
  const std::vector<Launch>& launches = programs_[p].launches;
  gap.differs = !std::equal(calls.begin(), calls.end(), gap.calls.begin(), gap.calls.end(),
                            [&](std::uint32_t a, std::uint32_t b) {
                              return launches[a].signature == launches[b].signature &&
                                     launches[a].chained == launches[b].chained &&
                                     launches[a].shape == launches[b].shape;
                            });
}

}  // namespace purlin::profile
