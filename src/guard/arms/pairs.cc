// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/pairs.h"

#include "base/text.h"

#include <algorithm>
#include <map>
#include <utility>

namespace purlin::guard {
namespace {

using Numbers = std::vector<std::size_t>;  // of items, as the gate counts them

class PairRun {
 public:
  PairRun(SuiteGate& gate, const Contest& contest, Random& random, Clock& clock,
          const PairsOptions& options, PairsRecord& record)
      : gate_(gate),
        contest_(contest),
        random_(random),
        clock_(clock),
        options_(options),
        record_(record),
        rejected_in_a_row_(contest.items.size(), 0),
        begin_ns_(clock.monotonic_ns()) {}

  Status run() {
    if (options_.watch != nullptr && options_.watch->neighbours())
      record_.neighbours = static_cast<int>(options_.watch->neighbours()->size());
    record_.locked_mhz = options_.locked_mhz;
    replay();
    report("verifying");
    for (const Numbers& batch : batches(gate_.wanted())) PURLIN_TRY(rehearse(batch));
    pairs_begin_ns_ = clock_.monotonic_ns();
    for (Numbers wanted = gate_.wanted(); !wanted.empty(); wanted = gate_.wanted()) {
      random_.shuffle(wanted);
      for (const Numbers& batch : batches(wanted)) {
        if (options_.time_limit_s > 0 && seconds_since(begin_ns_) > options_.time_limit_s) {
          gate_.finish();
          return Status::ok();
        }
        report(gate_.flagged() > 0 ? fmt::format("confirming {} flagged", gate_.flagged())
                                   : fmt::format("screening {}", wanted.size()));
        PURLIN_TRY(run_pair(batch));
      }
    }
    return Status::ok();
  }

 private:
  void replay() {
    if (options_.journal == nullptr) return;
    for (const PairJournal::Event& event : options_.journal->events()) {
      if (event.gave_up) {
        gate_.give_up(event.item, event.verdict, event.reason);
      } else {
        gate_.add(event.item, event.pair);
        ++record_.replayed;
      }
    }
  }

  // On disk first, then into the gate.
  Status commit() {
    std::vector<PairJournal::Event> events = std::exchange(events_, {});
    if (events.empty()) return Status::ok();
    if (options_.journal != nullptr) PURLIN_TRY(options_.journal->append(events));
    for (PairJournal::Event& event : events) {
      if (event.gave_up)
        gate_.give_up(event.item, event.verdict, std::move(event.reason));
      else
        gate_.add(event.item, event.pair);
    }
    return Status::ok();
  }

  void give_up(std::size_t number, Verdict verdict, std::string reason) {
    events_.push_back({number, {}, true, verdict, std::move(reason)});
  }

  // The results of one arm for a batch, in the batch's order. An unreported item has failed.
  struct Said {
    std::vector<Status> status;
    std::vector<ProcessReading> process;
  };

  std::vector<Numbers> batches(const Numbers& numbers) const {
    const std::size_t most = std::max<std::size_t>(
        std::min(contest_.baseline.most_per_launch(), contest_.current.most_per_launch()), 1);
    std::vector<Numbers> batches;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i % most == 0) batches.emplace_back();
      batches.back().push_back(numbers[i]);
    }
    return batches;
  }

  Result<Said> ask(Arm& arm, const Numbers& batch, bool rehearsal) {
    std::vector<Item> wanted;
    for (const std::size_t number : batch) wanted.push_back(contest_.items[number]);
    const bool watched = options_.watch != nullptr && !rehearsal;
    if (watched) options_.watch->begin();
    Result<Readings> readings = rehearsal ? arm.rehearse(wanted) : arm.launch(wanted);
    Conditions conditions;
    if (watched) conditions = options_.watch->end();
    record_.conditions.merge(conditions);
    Said said;
    said.process.resize(batch.size());
    if (!readings.is_ok()) {
      if (readings.status().code() != Code::kFailed)
        return readings.status().with_context(arm.label());
      said.status.assign(batch.size(), readings.status());
      return said;
    }
    std::map<Item, ItemReading*> by_item;
    for (ItemReading& reading : *readings) by_item[reading.item] = &reading;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto found = by_item.find(wanted[i]);
      if (found == by_item.end()) {
        said.status.push_back(error(Code::kFailed,
                                    "its process ended with success but did not report {}",
                                    wanted[i].text()));
        continue;
      }
      said.status.push_back(found->second->status);
      said.process[i] = std::move(found->second->process);
      if (said.process[i].unfit.empty()) said.process[i].unfit = conditions.unfit;
    }
    return said;
  }

  // Both arms in coin order: {baseline, current}.
  Result<std::pair<Said, Said>> ask_both(const Numbers& batch, bool rehearsal) {
    const bool current_first = random_.next() >> 63;
    std::pair<Said, Said> said;
    for (const bool current : {current_first, !current_first}) {
      PURLIN_ASSIGN((current ? said.second : said.first),
                    ask(current ? contest_.current : contest_.baseline, batch, rehearsal));
    }
    return said;
  }

  // True if the item failed in an arm, which is its verdict.
  bool failed(std::size_t number, const Status& baseline, const Status& current) {
    if (!current.is_ok() && !baseline.is_ok()) {
      const bool same = current.message() == baseline.message();
      give_up(number, Verdict::kInvalid,
              fmt::format("it fails on both sides: {}{}", baseline.message(),
                          same ? "" : "; now: " + current.message()));
    } else if (!current.is_ok()) {
      give_up(number, Verdict::kInvalid, "it fails now: " + current.message());
    } else if (!baseline.is_ok()) {
      give_up(number, Verdict::kInconclusive,
              "the baseline's does not run here, so there is nothing to compare with: " +
                  baseline.message());
    }
    return !current.is_ok() || !baseline.is_ok();
  }

  Status rehearse(const Numbers& batch) {
    PURLIN_ASSIGN(const auto said, ask_both(batch, true));
    for (std::size_t i = 0; i < batch.size(); ++i)
      (void)failed(batch[i], said.first.status[i], said.second.status[i]);
    return commit();
  }

  Status run_pair(const Numbers& batch) {
    PURLIN_ASSIGN(const auto said, ask_both(batch, false));
    record_.launches += 2;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (failed(batch[i], said.first.status[i], said.second.status[i])) continue;
      const ProcessReading &baseline = said.first.process[i], &current = said.second.process[i];
      const std::string unfit = baseline.unfit.empty() ? current.unfit : baseline.unfit;
      if (!unfit.empty()) {
        reject(batch[i], unfit);
        continue;
      }
      rejected_in_a_row_[batch[i]] = 0;
      record_.rejected_samples += baseline.rejected + current.rejected;
      events_.push_back({batch[i], {baseline.reading, current.reading}, false, {}, {}});
    }
    return commit();
  }

  void reject(std::size_t number, const std::string& why) {
    record_.reject(why);
    if (++rejected_in_a_row_[number] >= options_.most_rejected)
      give_up(number, Verdict::kInvalid,
              fmt::format("{} in a row were rejected, the last because {}",
                          counted(options_.most_rejected, "pair"), why));
  }

  void report(std::string doing) {
    if (!options_.progress) return;
    PairProgress progress;
    progress.doing = std::move(doing);
    progress.done = gate_.pairs_done();
    progress.at_most = gate_.pairs_at_most();
    progress.seconds = seconds_since(begin_ns_);
    if (progress.done > 0)
      progress.left_s =
          seconds_since(pairs_begin_ns_) / progress.done * (progress.at_most - progress.done);
    options_.progress(progress);
  }

  double seconds_since(std::int64_t begin_ns) const {
    return static_cast<double>(clock_.monotonic_ns() - begin_ns) / 1e9;
  }

  SuiteGate& gate_;
  const Contest& contest_;
  Random& random_;
  Clock& clock_;
  const PairsOptions& options_;
  PairsRecord& record_;
  std::vector<int> rejected_in_a_row_;
  std::vector<PairJournal::Event> events_;  // of the pair under way
  std::int64_t begin_ns_, pairs_begin_ns_ = 0;
};

}  // namespace

void PairsRecord::reject(const std::string& why) {
  ++rejected_pairs;
  if (std::find(reasons.begin(), reasons.end(), why) == reasons.end()) reasons.push_back(why);
}

void PairsRecord::merge(const PairsRecord& other) {
  replayed += other.replayed;
  launches += other.launches;
  rejected_samples += other.rejected_samples;
  rejected_pairs += other.rejected_pairs;
  for (const std::string& why : other.reasons)
    if (std::find(reasons.begin(), reasons.end(), why) == reasons.end()) reasons.push_back(why);
  conditions.merge(other.conditions);
  if (other.neighbours) neighbours = other.neighbours;
  if (other.locked_mhz) locked_mhz = other.locked_mhz;
}

Json to_json(const PairsRecord& record) {
  Json json = Json::object(
      {{"launches", record.launches},
       {"replayed_pairs", record.replayed},
       {"rejected_pairs", record.rejected_pairs},
       {"rejected_samples", record.rejected_samples},
       {"rejected_because", Json::array_of(record.reasons)},
       {"locked_clock_mhz", record.locked_mhz ? Json(std::int64_t{*record.locked_mhz}) : Json()}});
  if (record.conditions.readings > 0) json.set("device", to_json(record.conditions));
  if (record.neighbours) json.set("other_processes", *record.neighbours);
  return json;
}

Status run_pairs(SuiteGate& gate, const Contest& contest, Random& random, Clock& clock,
                 const PairsOptions& options, PairsRecord* record) {
  PairsRecord unused;
  return PairRun(gate, contest, random, clock, options, record == nullptr ? unused : *record).run();
}

}  // namespace purlin::guard
