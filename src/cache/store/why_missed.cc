// SPDX-License-Identifier: Apache-2.0
#include "cache/store/why_missed.h"

#include "base/text.h"
#include "cache/entry/shape_check.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace purlin::cache {
namespace {

constexpr std::size_t kOpField = 0, kKernelField = 1;
constexpr std::size_t kNamed = 4;      // of what there is instead
constexpr std::size_t kMaxRead = 512;  // keys that are read: enough to say what differs

// "a, b, c and 3 more"
std::string listed(const std::vector<std::string>& texts) {
  const std::size_t shown = std::min(texts.size(), kNamed);
  std::string text =
      join({texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(shown)}, ", ");
  if (shown < texts.size()) text += fmt::format(" and {} more", texts.size() - shown);
  return text;
}

void add_once(std::vector<std::string>& texts, const std::string& text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
}

// The names in the problem's own order.
std::vector<std::string> dimensions_of(const ProblemShape& problem) {
  std::vector<std::string> names;
  for (const auto& item : problem.items()) names.push_back(item.first);
  return names;
}

// Calls `visit` for the summaries of an op and a kernel, given as hashes; 0 = any.
template <class Visit>
void each_summary(const Store& store, std::uint32_t op, std::uint32_t kernel, Visit visit) {
  store.record_set().each_entry([&](const EntrySummary& summary) {
    if ((op == 0 || summary.fields[kOpField] == op) &&
        (kernel == 0 || summary.fields[kKernelField] == kernel))
      visit(summary);
  });
}

// The entries served of their keys.
std::vector<Entry> entries_of(std::span<const Store> stores, std::uint32_t op,
                              std::uint32_t kernel) {
  std::vector<Entry> entries;
  std::unordered_set<Id128, Id128Hash> keys;
  for (const Store& store : stores) {
    std::vector<EntrySummary> found;
    each_summary(store, op, kernel, [&](const EntrySummary& summary) {
      if (keys.size() < kMaxRead && keys.insert(summary.key).second) found.push_back(summary);
    });
    for (const EntrySummary& summary : found)
      if (std::vector<StoredEntry> served = store.served(summary.group, summary.key);
          !served.empty())
        entries.push_back(std::move(served.front().entry));
  }
  return entries;
}

class Inquiry {
 public:
  Inquiry(std::span<const Store> stores, const CacheKey& wanted, const ProblemShape& problem)
      : stores_(stores), wanted_(wanted), problem_(problem) {
    wanted_.bucket.clear();
  }

  MissReason answer() {
    entries_ = entries_of(stores_, field_hash(wanted_.op), field_hash(wanted_.kernel));
    if (entries_.empty()) return of_another_kernel();
    if (MissReason reason = of_other_dimensions(); !reason.field.empty()) return reason;
    if (MissReason reason = of_another_key(); !reason.field.empty()) return reason;
    return of_another_bucket();
  }

 private:
  MissReason of_another_kernel() const {
    const std::uint32_t op = field_hash(wanted_.op);
    bool withdrawn = false;
    for (const Store& store : stores_)
      each_summary(store, op, field_hash(wanted_.kernel),
                   [&](const EntrySummary&) { withdrawn = true; });
    if (withdrawn) return {"status", "its entries were withdrawn: `purlin cache ls` has why", true};
    std::vector<std::string> kernels, ops;
    for (const Entry& entry : entries_of(stores_, op, 0)) add_once(kernels, entry.key.kernel);
    if (!kernels.empty())
      return {"kernel", fmt::format("op '{}' has entries of {} {}, and none of '{}'", wanted_.op,
                                    kernels.size() == 1 ? "the kernel" : "the kernels",
                                    listed(kernels), wanted_.kernel)};
    std::string hint;
    for (const Entry& entry : entries_of(stores_, 0, 0)) {
      add_once(ops, entry.key.op);
      if (entry.key.kernel == wanted_.op)
        hint = fmt::format("; '{}' is a kernel of op '{}'", wanted_.op, entry.key.op);
    }
    return {"op", ops.empty() ? std::string("the cache is empty")
                              : fmt::format("there is no entry of op '{}'; there are {}{}",
                                            wanted_.op, listed(ops), hint)};
  }

  // Leaves the entries with these dimensions.
  MissReason of_other_dimensions() {
    const std::vector<std::string> wanted = dimensions_of(problem_);
    std::vector<std::string> others;
    std::erase_if(entries_, [&](const Entry& entry) {
      const std::vector<std::string> names = dimensions_of(entry.problem);
      if (std::is_permutation(names.begin(), names.end(), wanted.begin(), wanted.end()))
        return false;
      add_once(others, join(names, ","));
      return true;
    });
    if (!entries_.empty()) return {};
    const std::string asked = wanted.empty() ? "none" : join(wanted, ",");
    if (others == std::vector<std::string>{""})
      return {"dimensions",
              fmt::format("the entries of '{}' have no dimensions, the problem has {}",
                          wanted_.kernel, asked)};
    return {"dimensions", fmt::format("the entries of '{}' have the dimensions {}, not {}",
                                      wanted_.kernel, listed(others), asked)};
  }

  // Leaves the entries with the nearest key, where that is the same.
  MissReason of_another_key() {
    const auto distance = [this](const Entry& entry) {
      const Comparison comparison = compare(wanted_, entry.key);
      return std::pair(comparison.match, comparison.distance);
    };
    const auto nearest =
        std::min_element(entries_.begin(), entries_.end(),
                         [&](const Entry& a, const Entry& b) { return distance(a) < distance(b); });
    const Comparison comparison = compare(wanted_, nearest->key);
    if (comparison.match == Match::kSame) {
      std::erase_if(entries_,
                    [&](const Entry& entry) { return distance(entry).first != Match::kSame; });
      return {};
    }
    MissReason reason{"", "", true};
    const std::vector<std::string> lines = explain(comparison);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (comparison.fields[i].match == Match::kSame) continue;
      if (reason.field.empty()) reason.field = comparison.fields[i].field;
      reason.text += (reason.text.empty() ? "" : "; ") + lines[i];
    }
    return reason;
  }

  MissReason of_another_bucket() const {
    std::vector<std::string> buckets;
    for (const Entry& entry : entries_) {
      const Result<std::string> bucket = bucket_of(entry.bucket_rules, problem_);
      if (!bucket.is_ok() || *bucket != entry.key.bucket) {
        add_once(buckets, entry.key.bucket);
        continue;
      }
      const Status valid = check_shape(entry, problem_);
      return {"problem",
              valid.is_ok() ? std::string("an entry was stored since; reload the cache")
                            : "the bucket's config is not valid at this shape: " + valid.message(),
              true};
    }
    return {"bucket",
            fmt::format("{} is in no bucket that was tuned; tuned are {}", problem_.text(),
                        listed(buckets)),
            true};
  }

  const std::span<const Store> stores_;
  CacheKey wanted_;
  const ProblemShape& problem_;
  std::vector<Entry> entries_;
};

}  // namespace

MissReason why_missed(std::span<const Store> stores, const CacheKey& wanted,
                      const ProblemShape& problem) {
  return Inquiry(stores, wanted, problem).answer();
}

}  // namespace purlin::cache
