// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/correlation.h"

#include "profile/capture/ranges/gemm_text.h"

#include <algorithm>
#include <utility>

namespace purlin::profile::capture {
namespace {

constexpr std::size_t kMaxOpen = 256;  // ranges of a thread; deeper ones count as one
constexpr std::size_t kMaxWindows = 64;

// "step 12": with its number each step's launches would get separate rows.
bool is_numbered(const std::string& name) {
  return !name.empty() && name.back() >= '0' && name.back() <= '9';
}

}  // namespace

void Correlation::open_window(std::int64_t time_ns) {
  windows_.push_back(time_ns);
  if (windows_.size() > kMaxWindows) windows_.pop_front();
}

void Correlation::close_window(std::int64_t time_ns, const Ended& ended) {
  drain(ended);
  ended_ = ended ? &ended : nullptr;
  for (auto& [self, thread] : threads_) {
    for (const Open& range : thread.open) report(thread, range, time_ns);
    thread.open.clear();
    change(thread, time_ns);
  }
  ended_ = nullptr;
}

void Correlation::drain(const Ended& ended) {
  ended_ = ended ? &ended : nullptr;
  log_->drain(*this);
  ended_ = nullptr;
  current_ = nullptr;
}

void Correlation::forget_before(std::int64_t time_ns) {
  for (auto at = threads_.begin(); at != threads_.end();) {
    std::deque<Change>& changes = at->second.changes;
    while (changes.size() > 1 && changes[1].time_ns < time_ns) changes.pop_front();
    const bool gone = at->second.ended && (changes.empty() || changes.back().time_ns < time_ns);
    if (gone) system_.erase(at->second.system);
    at = gone ? threads_.erase(at) : std::next(at);
  }
}

void Correlation::thread(std::uint32_t self, std::uint32_t system) {
  current_ = &threads_[self];
  if (current_->system != system || current_->ended) {
    *current_ = {};
    current_->self = self;
    current_->system = system;
    system_[system] = self;
  }
}

void Correlation::begin_window(std::int64_t time_ns) {
  current_->open.clear();
  change(*current_, time_ns);
}

void Correlation::enter(std::int64_t time_ns, std::uint32_t name, std::uint8_t domain) {
  std::vector<Open>& open = current_->open;
  const std::uint32_t around = open.empty() ? 0 : open.back().context;
  const bool deep = open.size() >= kMaxOpen;
  open.push_back({name, deep ? around : inner(around, name), time_ns, domain});
  change(*current_, time_ns);
}

void Correlation::leave(std::int64_t time_ns, std::uint8_t domain) {
  std::vector<Open>& open = current_->open;
  for (std::size_t i = open.size(); i-- > 0;) {
    if (open[i].domain != domain) continue;
    report(*current_, open[i], time_ns);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  change(*current_, time_ns);
}

// Its calls may still be on the way; its number becomes another's when that one is first seen.
void Correlation::end() {
  current_->open.clear();
  current_->ended = true;
}

void Correlation::change(Thread& thread, std::int64_t time_ns) {
  const std::uint32_t context = thread.open.empty() ? 0 : thread.open.back().context;
  if (!thread.changes.empty() && thread.changes.back().context == context &&
      (windows_.empty() || thread.changes.back().time_ns >= windows_.back()))
    return;
  thread.changes.push_back({time_ns, context});
  if (thread.changes.size() > kMaxChanges) thread.changes.pop_front();
}

void Correlation::report(const Thread& thread, const Open& range, std::int64_t end_ns) const {
  if (ended_ != nullptr)
    (*ended_)({range.begin_ns, std::max(range.begin_ns, end_ns), thread.system, range.name});
}

const Correlation::Thread* Correlation::thread_of(std::uint32_t number) const {
  auto known = threads_.find(number);
  if (known == threads_.end()) {
    const auto self = system_.find(number);
    if (self == system_.end()) return nullptr;
    known = threads_.find(self->second);
  }
  return known != threads_.end() ? &known->second : nullptr;
}

std::uint32_t Correlation::system_thread(std::uint32_t number) const {
  const Thread* thread = thread_of(number);
  return thread != nullptr ? thread->system : number;
}

std::uint32_t Correlation::context_of(std::uint32_t number, std::int64_t time_ns) const {
  const Thread* thread = thread_of(number);
  if (thread == nullptr) return 0;
  const auto later = std::upper_bound(
      thread->changes.begin(), thread->changes.end(), time_ns,
      [](std::int64_t time, const Change& change) { return time < change.time_ns; });
  if (later == thread->changes.begin()) return 0;
  const Change& last = *std::prev(later);
  // What was open when an earlier window closed has ended since, unseen.
  const auto window = std::upper_bound(windows_.begin(), windows_.end(), time_ns);
  if (window != windows_.begin() && last.time_ns < *std::prev(window)) return 0;
  return last.context;
}

const RangeName& Correlation::name_of(std::uint32_t name) {
  const auto known = names_.find(name);
  return known != names_.end() ? known->second
                               : names_.emplace(name, log_->name(name)).first->second;
}

// A user's range is a launch's op if no framework's range is around it. A product is part of the op
// that requested it.
std::uint32_t Correlation::inner(std::uint32_t around, std::uint32_t name) {
  const NameKind kind = name_of(name).kind;
  const NameKind outer = contexts_[around].kind;
  const bool in_op = around != 0 && outer != NameKind::kRange;
  if (kind == NameKind::kRange)
    return in_op || name == RangeLog::kNoName || is_numbered(name_of(name).text)
               ? around
               : context(0, name, kind);
  if (outer == NameKind::kGemm) return around;
  return context(in_op && contexts_[around].depth < kMaxChain ? around : 0, name, kind);
}

std::uint32_t Correlation::context(std::uint32_t parent, std::uint32_t name, NameKind kind) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | name;
  if (const auto known = ids_.find(key); known != ids_.end()) return known->second;
  if (contexts_.size() >= kMaxContexts) return parent;
  const auto id = static_cast<std::uint32_t>(contexts_.size());
  contexts_.push_back({parent, name, contexts_[parent].depth + 1, kind});
  ids_.emplace(key, id);
  return id;
}

void Correlation::add_call(std::uint32_t correlation, const Place& place) {
  if (correlation == 0) return;
  if (calls_.size() >= kMaxCalls) earlier_calls_ = std::exchange(calls_, {});
  // A call of the runtime that is one of the driver's too keeps its first record.
  calls_.try_emplace(correlation, place);
}

std::optional<Correlation::Place> Correlation::find(std::uint32_t correlation, bool again) {
  for (auto* calls : {&calls_, &earlier_calls_}) {
    const auto known = calls->find(correlation);
    if (known == calls->end()) continue;
    const Place place = known->second;
    if (!again) calls->erase(known);
    return place;
  }
  return std::nullopt;
}

OpFacts Correlation::facts_of(std::uint32_t id) {
  OpFacts facts;
  for (; id != 0 && id < contexts_.size(); id = contexts_[id].parent) {
    const RangeName& name = name_of(contexts_[id].name);
    if (contexts_[id].kind == NameKind::kGemm) {
      facts.shape = gemm_shape(name.text);
      facts.dtype = gemm_dtype(name.text);
      continue;
    }
    if (facts.op.size() + name.text.size() + 1 > kMaxOpsText) break;
    facts.op = facts.op.empty() ? name.text : name.text + kInside + facts.op;
  }
  if (facts.op.empty() && !facts.shape.empty()) facts.op = "gemm";
  return facts;
}

}  // namespace purlin::profile::capture
