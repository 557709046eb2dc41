// SPDX-License-Identifier: Apache-2.0
// LaunchCounter: how many launches a window's records represent, by CUPTI's correlation IDs. CUPTI
// gives one ID to each launch, memcpy and memset, recorded or not, once a kind was enabled with a
// context (bench/results/correlation_ids.md). Time alone would assume that the program launches as
// much while it is recorded as outside.
//
// The weight by time is multiplied by the ratio that earlier windows showed: the number of IDs
// that CUPTI gave, divided by the number that time expected. Each window corrects half of the
// previous error. Half of a period's launches is held back until the end, because an assigned
// weight cannot be reduced later. A window's own count hardly enters its weight, except for few
// launches in few windows.
//
// Windows are compared with IDs only when every record has arrived. Until then no window represents
// more launches than IDs have passed. IDs that stand still, go backwards or exceed any program's
// rate leave the weight to time.
//
// Owned by the ActivityAggregator. Thread-safety: none. Pure arithmetic.
#pragma once

#include "profile/capture/sampling/id_set.h"
#include "profile/capture/sampling/ids_per_launch.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace purlin::profile::capture {

class LaunchCounter {
 public:
  // Of the launches whose weight was not known.
  struct Stretch {
    double by_time = 1;          // their weight, as time has it
    double time_ns = 0;          // that they represent
    std::int64_t closed_ns = 0;  // when the last window was
    std::int64_t now_ns = 0;
    bool complete = true;  // every record of windows so far was seen
    bool last = false;     // none follows
    bool calls = false;    // calls that launch nothing have ids, too
    double alone_ns = 0;   // since the last call: time of records that represent only themselves
    int windows = 1;       // that the launches are of
  };
  struct Weight {
    double value = 1;
    bool counted = false;  // by ids, not by time
    double launches = 0;   // that were weighed, times the weight
  };

  bool running() const { return running_; }
  // Whether there is a record of the launches that settle() weighs.
  bool has_records() const { return launches_ > 0; }
  // From now on ids count, whether anything is recorded or not. `stood_still`: none was given
  // between the last that was seen and now; else the next windows only say where they are.
  void start(std::int64_t now_ns, bool stood_still);
  // Launches from now on are not counted, until the next start.
  void stop() { running_ = false; }
  // A launch that was recorded, and when it began; in any order, and as often as it has records.
  // `weight`: the launches that it represents; 0: settle() decides.
  void see(std::uint32_t id, double weight, std::int64_t start_ns);
  // An id given at that time: no launch before has a later one.
  void see_now(std::uint32_t id, std::int64_t now_ns);
  // Of the launches since the last call whose weight was not known.
  Weight settle(const Stretch& stretch);
  // At the end: known launches that no window represents. see_now() makes them known; without it
  // they are the launches that were held back.
  double left_out() const { return left_out_; }
  // At the end: the part of the represented launches that IDs deny; 0 where see_now() was not
  // called.
  double beyond() const { return beyond_; }
  // How far weights by IDs may be off, as a part of them (IdsPerLaunch::doubt).
  double ids_doubt() const { return ids_per_launch_.doubt(); }

 private:
  static constexpr std::size_t kMaxListed = 65'536;

  std::int64_t unwrap(std::uint32_t id) const;
  void learn_ids_per_launch(const Stretch& stretch);
  bool believed(const Stretch& stretch);
  bool moved_between(const Stretch& stretch);
  double passed() const;
  Weight by_time(const Stretch& stretch);
  Weight by_ids(const Stretch& stretch);
  Weight for_now(const Stretch& stretch);
  double usual() const;  // ids given, divided by ids that time expected
  double owed(const Stretch& stretch) const;
  void begin_lesson(std::int64_t closed_ns);

  bool running_ = false, any_ = false;
  bool finding_ = false;     // where ids are is not known
  bool moves_ = false;       // ids were seen to count what was not recorded
  std::int64_t last_ = 0;    // the latest id seen, counted on beyond 32 bits
  std::int64_t now_ns_ = 0;  // when it was the latest given, where known

  // Since every record was seen.
  IdSet seen_;
  std::int64_t settled_ = 0;  // the latest id then
  // Launches to be weighed with an id from before it, and no later id since: their number, and the
  // last id. Few of them are delayed records; many mean that ids have started again.
  double backwards_ = 0;
  std::int64_t back_at_ = 0;

  // Since the last call: launches to be weighed, and launches that records of known weight
  // represent.
  double launches_ = 0, known_ = 0;
  std::int64_t first_ = 0, latest_ = 0;
  std::int64_t known_latest_ = -1;                             // of the latter
  std::vector<std::pair<std::int64_t, std::int64_t>> listed_;  // ids and starts, of the first

  double given_ = 0, due_from_ = 0;  // ids accounted for, since that one

  // Since the end of the last window that was weighed by ids: launches and time of windows, and of
  // records that represent only themselves.
  std::int64_t before_ = 0, before_ns_ = 0;
  double weighed_ = 0, open_ns_ = 0, alone_ = 0, alone_ns_ = 0;
  // The last two windows with missing records: the latest ID then, and the time since the last
  // window that was weighed by ids, divided by that of windows.
  struct Incomplete {
    std::int64_t last = 0;
    double times_open = 0;
  } incomplete_[2];

  IdsPerLaunch ids_per_launch_;
  double before_value_ = 0;  // the last weight, of launches there were
  double held_back_ = 0;     // ids, with it
  double left_out_ = 0, beyond_ = 0;
  bool calls_ = false;
  // What windows have taught: ids that were, ids by time, and the time. The old fades.
  double ids_ = 0, timed_ = 0, span_ns_ = 0;
  int windows_learnt_ = 0;
};

}  // namespace purlin::profile::capture
