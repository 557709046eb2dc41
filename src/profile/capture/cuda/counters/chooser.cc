// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/counters/chooser.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cxxabi.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin::profile::capture::cuda {
namespace {

// Below this share of the time seen, one reading is enough.
constexpr double kSmallShare = 0.001;

// Communication between GPUs, and kernels that wait in a loop for others. Parts of names, without
// case and underscores.
constexpr std::string_view kWaiting[] = {
    "nccl",      "nvshmem",   "mscclpp",       "msccl",       "deepep",    "allreduce",
    "allgather", "alltoall",  "reducescatter", "crossdevice", "oneshot",   "twoshot",
    "multimem",  "symmmem",   "sendrecv",      "barrier",     "waitvalue", "waitsignal",
    "waitflag",  "putsignal", "spinwait",      "spinlock",    "busywait",  "rendezvous"};

std::string readable(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return symbol;
  std::string result = text;
  std::free(text);
  return result;
}

}  // namespace

bool waits_for_others(std::string_view symbol) {
  // Template arguments and parameters name a kernel's parts, not its purpose.
  std::string name = readable(std::string(symbol));
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  for (std::size_t at; (at = name.find(kAnonymous)) != std::string::npos;)
    name.erase(at, kAnonymous.size());
  name = name.substr(0, name.find_first_of("<("));
  std::string plain;
  for (const char c : name)
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(std::begin(kWaiting), std::end(kWaiting),
                     [&](std::string_view part) { return plain.find(part) != std::string::npos; });
}

NamePattern::~NamePattern() {
  if (set_) ::regfree(&compiled_);
}

bool NamePattern::set(const std::string& expression) {
  if (set_) ::regfree(&compiled_);
  set_ = !expression.empty() &&
         ::regcomp(&compiled_, expression.c_str(), REG_EXTENDED | REG_NOSUB) == 0;
  return set_ || expression.empty();
}

bool NamePattern::matches(const std::string& symbol) const {
  const auto in = [&](const std::string& text) {
    return ::regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
  };
  return set_ && (in(symbol) || in(readable(symbol)));
}

std::size_t CounterChooser::KeyHash::operator()(const Key& key) const {
  return XXH3_64bits_withSeed(key.shape.data(), sizeof key.shape,
                              reinterpret_cast<std::uintptr_t>(key.function));
}

CounterChooser::Key CounterChooser::key_of(const LaunchSite& site) {
  return {site.function,
          {site.grid[0], site.grid[1], site.grid[2], site.block[0], site.block[1], site.block[2],
           site.cluster[0], site.cluster[1], site.cluster[2], site.dynamic_shared_bytes}};
}

CounterChooser::Shape* CounterChooser::shape_of(const LaunchSite& site) {
  const Key key = key_of(site);
  if (const auto known = shapes_.find(key); known != shapes_.end()) return &known->second;
  if (shapes_.size() >= kMaxShapes) return nullptr;
  const std::string symbol = site.symbol != nullptr ? site.symbol : "";
  Shape& fresh = shapes_[key];
  // Without its name a launch cannot be given to a row.
  fresh.denied = symbol.empty() || site.dependent || waits_for_others(symbol) ||
                 (only_.is_set() && !only_.matches(symbol)) || never_.matches(symbol);
  if (fresh.denied) ++denied_;
  return &fresh;
}

void CounterChooser::saw(const LaunchSite& site) {
  if (seen_++ == 0) stream_ = site.stream;
  several_streams_ |= site.stream != stream_;
}

bool CounterChooser::wants_trial(const LaunchSite& site) {
  const Shape* shape = shape_of(site);
  return shape != nullptr && !shape->denied && needs_trial(*shape);
}

void CounterChooser::tried(const LaunchSite& site, std::int64_t took_ns) {
  const auto position = shapes_.find(key_of(site));
  if (position == shapes_.end()) return;
  ++position->second.trials;
  position->second.trial_ns = std::max(position->second.trial_ns, took_ns);
}

std::int64_t CounterChooser::trial_ns(const LaunchSite& site) const {
  const auto position = shapes_.find(key_of(site));
  return position == shapes_.end() ? 0 : position->second.trial_ns;
}

bool CounterChooser::choose(const LaunchSite& site, std::size_t card, bool tensor_card) {
  Shape* const known = shape_of(site);
  if (known == nullptr) return false;
  Shape& shape = *known;
  ++shape.launches;
  total_time_ += shape.how_long;
  if (shape.denied || (tensor_card && shape.no_tensor)) return false;
  if (needs_trial(shape)) {
    untried_ = true;
    return false;
  }
  if (limit_ > 0) return shape.readings < limit_;
  if (shape.cards.size() <= card) shape.cards.resize(card + 1);
  if (shape.launches < shape.cards[card].next) return false;
  return shape.readings == 0 || shape.time() >= kSmallShare * total_time_;
}

void CounterChooser::took(const LaunchSite& site, std::size_t card) {
  const auto position = shapes_.find(key_of(site));
  if (position == shapes_.end()) return;
  Shape& shape = position->second;
  if (shape.cards.size() <= card) shape.cards.resize(card + 1);
  Card& turn = shape.cards[card];
  ++turn.readings;
  ++shape.readings;
  turn.next = shape.launches + (std::uint64_t{1} << std::min(turn.readings, 12u));
}

void CounterChooser::measured(const LaunchSite& site, double how_long, double tensor_busy) {
  const auto position = shapes_.find(key_of(site));
  if (position == shapes_.end()) return;
  Shape& shape = position->second;
  if (how_long >= 0) {
    total_time_ += (how_long - shape.how_long) * static_cast<double>(shape.launches);
    shape.how_long = how_long;
  }
  if (tensor_busy >= 0) shape.no_tensor = tensor_busy == 0;
}

void CounterChooser::give_up(const LaunchSite& site) {
  const auto position = shapes_.find(key_of(site));
  if (position == shapes_.end() || position->second.denied) return;
  position->second.denied = true;
  ++denied_;
}

bool CounterChooser::tensor_cores_used() const {
  return std::any_of(shapes_.begin(), shapes_.end(), [](const auto& entry) {
    return !entry.second.denied && !entry.second.no_tensor;
  });
}

}  // namespace purlin::profile::capture::cuda
