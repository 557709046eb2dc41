// SPDX-License-Identifier: Apache-2.0
#include "cache/store/lookup.h"

#include "base/text.h"
#include "cache/entry/bucket_regret.h"
#include "cache/entry/shape_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace purlin::cache {
namespace {

// A summary against the key that is wanted, by hashes alone.
struct Candidate {
  const EntrySummary* summary = nullptr;
  Match match = Match::kForeign;
  int distance = 0;
  bool validated = false;  // under the wanted toolkit and driver
};

class Chooser {
 public:
  Chooser(const LookupSource& source, const CacheKey& key, const ProblemShape& problem,
          const LookupOptions& options)
      : source_(source),
        key_(key),
        problem_(problem),
        options_(options),
        hashes_(field_hashes(key)),
        problem_hash_(problem_hash(problem)) {}

  Lookup choose() {
    Lookup lookup;
    collect();
    // A summary whose record is damaged, or is about another key, is skipped.
    while (const std::optional<Candidate> best = find_best(true)) {
      Result<Entry> entry = source_.entry(*best->summary);
      if (!entry.is_ok() || !agrees(*best, *entry)) {
        passed_over_.insert(best->summary->record);
        continue;
      }
      serve(*best, *entry, lookup);
      if (lookup.outcome == Outcome::kMiss && options_.nearest > 0 && serve_nearest(lookup))
        return lookup;
      return lookup;
    }
    lookup.decided_by = "nothing";
    explain_withdrawn(lookup);
    return lookup;
  }

 private:
  Candidate weigh(const EntrySummary& summary) const {
    Candidate candidate{&summary, Match::kSame, 0, false};
    const auto& rules = key_field_rules();
    bool environment_only = true;
    for (std::size_t i = 0; i < kKeyFields; ++i) {
      if (hashes_[i] == summary.fields[i] || (hashes_[i] == 0 && !rules[i].always)) continue;
      if (rules[i].newer && summary.fields[i] == 0) {
        candidate.distance += kNotRecorded;
        continue;
      }
      candidate.match = std::max(candidate.match, rules[i].on_other);
      candidate.distance += rules[i].weight;
      environment_only = environment_only && rules[i].environment;
    }
    if (candidate.distance == 0 || !environment_only) return candidate;
    const std::uint32_t toolkit = hashes_[kToolkitField], driver = hashes_[kDriverField];
    candidate.validated = options_.validated
                              ? options_.validated(summary.record, toolkit, driver)
                              : source_.record_set.validated(summary.record, toolkit, driver);
    if (candidate.validated) candidate.match = Match::kSame;
    return candidate;
  }

  bool served(const Id128& record) const {
    return options_.served ? options_.served(record) : source_.record_set.served(record);
  }

  void take(const EntrySummary& summary) { candidates_.push_back(weigh(summary)); }

  void collect() {
    const auto visit = [this](const EntrySummary& summary) { take(summary); };
    const auto& rules = key_field_rules();
    bool stated = true;
    for (std::size_t i = 0; i < kKeyFields; ++i)
      stated = stated && (rules[i].always || hashes_[i] != 0);
    if (stated) source_.record_set.each_of_key(group_of(key_), Id128::parse(key_.id()), visit);
    const auto is_served = [this](const Candidate& candidate) {
      return served(candidate.summary->record);
    };
    if (std::any_of(candidates_.begin(), candidates_.end(), is_served)) return;
    candidates_.clear();
    source_.record_set.each_of_group(group_of(key_), visit);
    if (candidates_.empty()) source_.record_set.each_entry(visit);
  }

  // The nearest key, and of its entries the one measured at this very shape, else the best.
  std::optional<Candidate> find_best(bool served) const {
    std::optional<std::pair<Match, int>> nearest;
    const auto usable = [&](const Candidate& candidate) {
      return passed_over_.count(candidate.summary->record) == 0 &&
             this->served(candidate.summary->record) == served;
    };
    const auto rank = [](const Candidate& c) { return std::pair(c.match, c.distance); };
    for (const Candidate& candidate : candidates_)
      if ((!nearest || rank(candidate) < *nearest) && usable(candidate)) nearest = rank(candidate);
    if (!nearest) return std::nullopt;
    std::unordered_map<Id128, const Candidate*, Id128Hash> of_key;
    const auto beats = [this](const Candidate& a, const Candidate& b) {
      const bool a_measured = a.summary->problem == problem_hash_,
                 b_measured = b.summary->problem == problem_hash_;
      return a_measured != b_measured ? a_measured : better(*a.summary, *b.summary);
    };
    for (const Candidate& candidate : candidates_) {
      if (rank(candidate) != *nearest || !usable(candidate)) continue;
      const Candidate*& held = of_key[candidate.summary->key];
      if (held == nullptr || beats(candidate, *held)) held = &candidate;
    }
    // Keys that differ only in what the caller does not state: the latest.
    const Candidate* best = nullptr;
    const auto later = [](const Candidate* a, const Candidate* b) {
      return std::tie(a->summary->recorded_ns, a->summary->record) >
             std::tie(b->summary->recorded_ns, b->summary->record);
    };
    for (const auto& [key, candidate] : of_key)
      if (best == nullptr || later(candidate, best)) best = candidate;
    return *best;
  }

  // Whether the record says what its summary said.
  bool agrees(const Candidate& candidate, const Entry& entry) const {
    const Comparison comparison = compare(key_, entry.key);
    const Match match = candidate.validated ? Match::kSame : comparison.match;
    return match == candidate.match && comparison.distance == candidate.distance;
  }

  void serve(const Candidate& best, const Entry& entry, Lookup& lookup) const {
    if (best.match == Match::kSame)
      lookup.outcome = entry.problem == problem_ ? Outcome::kExact : Outcome::kBucket;
    else if (best.match == Match::kTransferable && options_.allow_transferred)
      lookup.outcome = Outcome::kTransferred;
    const Comparison comparison = compare(key_, entry.key);
    if (lookup.outcome == Outcome::kMiss) {
      for (const FieldComparison& field : comparison.fields)
        if (field.match == best.match && lookup.decided_by.empty()) lookup.decided_by = field.field;
      lookup.explain.push_back(best.match == Match::kTransferable
                                   ? "no entry for this environment; one of the same arch is "
                                     "below, served only on request"
                                   : "no entry; the nearest one differs as below");
    } else if (!(entry.problem == problem_)) {
      if (const Status valid = check_shape(entry, problem_); !valid.is_ok()) {
        lookup.outcome = Outcome::kMiss;
        lookup.decided_by = "problem";
        lookup.explain.push_back("no entry; the bucket's config is not valid at this shape: " +
                                 valid.message());
      }
    }
    if (lookup.outcome != Outcome::kMiss) {
      lookup.entry = entry;
      lookup.record = best.summary->record.hex();
    } else if (best.match != Match::kSame) {
      explain_withdrawn(lookup);
    }
    for (std::string& line : explain(comparison)) lookup.explain.push_back(std::move(line));
    if (best.match != Match::kForeign)
      lookup.explain.push_back(
          entry.problem == problem_
              ? fmt::format("problem: {}, as measured", or_none(problem_.text()))
              : fmt::format("problem: {} wanted, {} measured: same bucket",
                            or_none(problem_.text()), or_none(entry.problem.text())));
    explain_bucket(entry, lookup);
    explain_standing(*best.summary, lookup);
  }

  // What the bucket costs and where the entry came from, as far as that is known.
  static void explain_bucket(const Entry& entry, Lookup& lookup) {
    if (const auto worst = worst_regret(entry))
      lookup.explain.push_back(
          fmt::format("bucket: of {} other shapes measured, the worst is {} at {:.2f} "
                      "times its own best",
                      entry.bucket_regret.size(), worst->first.text(), worst->second));
    if (starts_with(entry.strategy, "import "))
      lookup.explain.push_back(fmt::format("origin: {}; not verified here", entry.strategy));
  }

  void explain_standing(const EntrySummary& summary, Lookup& lookup) const {
    source_.record_set.each_status_of(summary.record, [&](const StatusSummary& standing) {
      const Result<EntryStatus> status = source_.status(standing);
      if (!status.is_ok()) return;
      std::string line = fmt::format("status: {}", entry_state_name(status->state));
      if (const std::string who = author_text(status->by, status->host); !who.empty())
        line += " by " + who;
      line += " at " + status->at;
      if (!status->driver.empty() || !status->toolkit.empty())
        line += fmt::format(", under driver {} and {}", status->driver, status->toolkit);
      if (!status->reason.empty()) line += ": " + status->reason;
      lookup.explain.push_back(std::move(line));
    });
  }

  // An entry that would have been served were it not for its status.
  void explain_withdrawn(Lookup& lookup) const {
    const std::optional<Candidate> withdrawn = find_best(false);
    if (!withdrawn || withdrawn->match != Match::kSame) return;
    lookup.decided_by = "status";
    lookup.withdrawn = withdrawn->summary->record.hex();
    lookup.explain.push_back("the entry of this key was withdrawn:");
    explain_standing(*withdrawn->summary, lookup);
  }

  bool serve_nearest(Lookup& lookup) const {
    const auto& rules = key_field_rules();
    std::vector<std::pair<double, const Candidate*>> near;
    std::unordered_map<const Candidate*, Entry> entries;
    for (const Candidate& candidate : candidates_) {
      if (candidate.distance != rules[kBucketField].weight || candidate.validated ||
          passed_over_.count(candidate.summary->record) > 0 || !served(candidate.summary->record))
        continue;
      Result<Entry> entry = source_.entry(*candidate.summary);
      if (!entry.is_ok() || !agrees(candidate, *entry)) continue;
      const double distance = shape_distance(problem_, entry->problem);
      if (!(distance <= options_.nearest)) continue;
      near.emplace_back(distance, &candidate);
      entries.emplace(&candidate, std::move(entry).value());
    }
    std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first
                                : better(*a.second->summary, *b.second->summary);
    });
    for (const auto& [distance, candidate] : near) {
      const Entry& entry = entries.at(candidate);
      if (!check_shape(entry, problem_).is_ok()) continue;
      lookup = {};
      lookup.outcome = Outcome::kNearest;
      lookup.entry = entry;
      lookup.record = candidate->summary->record.hex();
      for (std::string& line : explain(compare(key_, entry.key)))
        lookup.explain.push_back(std::move(line));
      lookup.explain.push_back(fmt::format(
          "problem: {} wanted, {} measured: nearest, {:.2f} away (at most {:.2f})",
          or_none(problem_.text()), or_none(entry.problem.text()), distance, options_.nearest));
      explain_standing(*candidate->summary, lookup);
      return true;
    }
    return false;
  }

  const LookupSource& source_;
  const CacheKey& key_;
  const ProblemShape& problem_;
  const LookupOptions& options_;
  const FieldHashes hashes_;
  const std::uint64_t problem_hash_;
  std::vector<Candidate> candidates_;
  std::unordered_set<Id128, Id128Hash> passed_over_;
};

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kExact:
      return "exact";
    case Outcome::kBucket:
      return "bucket";
    case Outcome::kNearest:
      return "nearest";
    case Outcome::kTransferred:
      return "transferred";
    case Outcome::kMiss:
      return "miss";
  }
  return "";
}

double shape_distance(const ProblemShape& a, const ProblemShape& b) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (a.items().size() != b.items().size()) return kNever;
  double distance = 0;
  for (const auto& [name, extent] : a.items()) {
    const std::int64_t* other = b.find(name);
    if (other == nullptr || extent < 1 || *other < 1) return kNever;
    distance += std::abs(std::log2(static_cast<double>(extent) / static_cast<double>(*other)));
  }
  return distance;
}

Lookup look_up(const LookupSource& source, const CacheKey& key, const ProblemShape& problem,
               const LookupOptions& options) {
  return Chooser(source, key, problem, options).choose();
}

}  // namespace purlin::cache
