// SPDX-License-Identifier: Apache-2.0
// ActivityAggregator: owns the buffers of activity records and turns the records into rows of the
// session's recorder. CUPTI asks for a buffer on each thread that launches work. It returns the
// buffer on its own thread or on the one that flushes, often after the window that filled it.
//
// The weight of a record is that of the period in which its work was enqueued: the last one whose
// window opened before the work began. While that weight is not known the buffers are held back, at
// most kMaxHeld of them; for more, the planned weight is used. On request CUPTI returns a buffer
// whose work is done, so a period is best settled while CUPTI has none. The weight from time is
// corrected by the number of launches (launch_counter.h).
//
// Owned by Capture. [MT] every method; takes no lock that is held while CUPTI is called. Records
// that CUPTI dropped count as lost. A record without an end gets the time of another launch of its
// kernel.
#pragma once

#include "profile/capture/cuda/activity/attribution.h"
#include "profile/capture/cuda/activity/kernel_names.h"
#include "profile/capture/cuda/activity/node_times.h"
#include "profile/capture/cuda/cupti/buffers.h"
#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/sampling/device_busy.h"
#include "profile/capture/sampling/launch_counter.h"
#include "profile/capture/sampling/stream_time.h"
#include "profile/capture/sampling/work_rates.h"
#include "profile/capture/session/session.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace purlin::profile::capture::cuda {

class ActivityAggregator {
 public:
  static constexpr std::size_t kMaxHeld = 128;

  ActivityAggregator(const Cupti& cupti, CaptureSession& session, Attribution& attribution)
      : cupti_(cupti), session_(session), recorder_(session.recorder()), attribution_(attribution) {
    periods_.front().requested = session.options().every_launch;
  }

  bool owns(const std::uint8_t* buffer) { return buffers_.owns(buffer); }
  void lend(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
  // REQUIRES: owns(buffer).
  void take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid);

  // The buffers that CUPTI asked for until now were not for work.
  void await_work() { work_began_ = false; }

  // Records of work that begins from now on are of a new period; `final`: their weight is known;
  // `requested`: by the user.
  void begin_period(double weight, bool final, bool requested);
  // Around the time that the kinds are enabled: graph nodes that run when a window ends have a
  // wrong end (node_times.h).
  void begin_window();
  void end_window();
  void window_closed(std::int64_t now_ns);  // monotonic; no later work is recorded
  void drop_window();                       // it was not opened after all
  // The weight, by time, of the records of earlier periods without one, and the time that they
  // represent; `last`: no period follows. `alone_ns`: time recorded since then with weight 1.
  // What speaks against such a weight, as a part of it:
  struct Doubt {
    double switched = 0;  // where in the switching calls recording began and ended is not known
    double waited = 0;    // the program had so much more of its processor than in windows
  };
  // Where CUPTI has all records of the windows still, their weight is left to a later call.
  void settle(double weight, double time_ns, bool last, double alone_ns, const Doubt& doubt);
  void settle(double weight, double time_ns, bool last) { settle(weight, time_ns, last, 0, {}); }
  // Launches are numbered from here on (LaunchCounter::start), until stop_counter(). False: they
  // were already.
  bool start_counter(bool stood_still);
  void stop_counter();
  // Whether a launch id of this moment would settle a weight; then the id of the next call counts.
  bool wants_last_id();
  void await_last_id();

  // Memcpy and memset are also recorded between windows: whether to keep those records.
  void want_copies(bool wanted) { copies_wanted_ = wanted; }
  std::int64_t last_copy_ns() const { return last_copy_ns_; }  // its end, wall clock; 0: none yet

  // Records of work that begins later than that (wall clock) are ignored until a period begins.
  void leave_out_from(std::int64_t from_ns);

  // Of all kernels' time: the recorded time, weighted, and its variance, from the differences
  // between periods (a ratio estimate's variance).
  struct Estimate {
    double total_ns = 0, variance = 0;
    double counted = 0, timed = 0;  // windows weighed by their launches, by time
    double unsure_ns = 0;           // of the total: what the weights by time may be off in addition
  };
  Estimate estimate();

  // Reports losses since the last call to the recorder, and returns unused buffers to the system.
  void account();
  // Records since the last call of kinds that Purlin never enables.
  std::uint64_t take_unasked() { return unasked_.exchange(0); }
  bool seen_records() const { return seen_records_; }
  // Whether as many records have come in all as those of 60,000 kernels. The session collects then.
  bool recorded_many() const { return recorded_bytes_ >= kManyBytes; }
  // Launches into streams and nodes of graphs that CUPTI recorded since the last call.
  struct Counts {
    double launches = 0, nodes = 0;
    std::int64_t age_ns = 0;     // of the first of them
    WorkRates::Amounts at_work;  // how many a ns, recently, not only of these
  };
  Counts take_counts();
  // The hidden part of their overhead, and all overhead that is counted in this way.
  DeviceBusy::Hidden hidden(const DeviceBusy::Prices& prices);
  // Purlin's own time in CUPTI's callbacks since the last call.
  std::int64_t take_cost_ns() { return cost_ns_.exchange(0); }
  std::size_t memory_bytes() { return buffers_.bytes(); }
  // Buffers that CUPTI has now, or that wait to be aggregated.
  std::size_t lent_buffers() { return buffers_.lent(); }
  // Whether CUPTI may still return records of windows: it has a buffer that was lent before the
  // last window closed, or, while a window is open, any buffer. (Buffers of memcpy records never
  // end.)
  bool awaits_records();

 private:
  struct Period {
    std::int64_t from_ns = 0;  // wall clock
    double weight = 1;
    bool final = true, requested = false;
    // Its launches are all recorded, so they can be part of a timeline.
    bool timed() const { return requested || (final && weight == 1); }
    double kernel_ns = 0;  // recorded in it so far; records may come after it was settled
    // Its weight was found when it was settled. If it represents more than itself: by its launches
    // or by time, and how many launches or how much time.
    bool weighed = false, represents = false, counted = false;
    double size = 0;
    Doubt doubt = {};
  };
  struct Buffer {
    std::uint8_t* bytes = nullptr;
    std::size_t valid = 0;
    KernelNames names = {};  // of one that is held
  };

  // For records that were aggregated before: each record of periods that were weighed between these
  // represents `weight` more launches.
  struct Again {
    std::int64_t from_ns = 0, last_from_ns = 0;
    double weight = 0;
    bool holds(const Period& period) const {
      return period.weighed && period.from_ns >= from_ns && period.from_ns <= last_from_ns;
    }
  };

  // Aggregated buffers of periods that were settled together. They may have to represent launches
  // that are known at the end only.
  struct Kept {
    std::vector<Buffer> buffers;
    std::int64_t from_ns = 0, last_from_ns = 0;
    double weight = 1, launches = 0;  // represented by each record, and by all
  };

  class Tally;

  struct Span {
    std::int64_t from_ns = 0, to_ns = 0;  // wall clock; to: 0 while it is open
  };

  void begin_period_at(const Period& period);
  bool awaits_records_now();
  bool defer(double weight, double time_ns, double alone_ns, const Doubt& doubt);
  bool weights_known();
  bool all_final() const;
  bool has_room();
  bool hold(Buffer& buffer);
  void aggregate(const Buffer& buffer, bool uncounted, const Again* again = nullptr);
  void keep(Kept&& last);
  void drop_kept(std::size_t most);
  bool give_to_kept(double launches);
  template <class Record>
  std::int64_t duration_of(const Record& record, const std::vector<Span>& windows);
  void take_calls(const Buffer& buffer, Attribution::Batch& ops);
  void add_up(const std::vector<Period>& periods, bool again);
  void count(const Buffer& buffer, bool as_planned);
  const Period& period_of(std::int64_t start_ns) const;
  // If calls are recorded, too, other calls than launches also have ids, and the counter fails.
  bool keeps_ids() const { return !session_.options().every_launch && !attribution_.active(); }

  const Cupti& cupti_;
  CaptureSession& session_;
  Recorder& recorder_;
  Attribution& attribution_;
  Buffers buffers_;
  std::mutex mutex_;                          // of the following members
  std::vector<Period> periods_ = {Period{}};  // the last few, in order of time
  std::vector<Span> windows_;                 // the last few, likewise
  std::vector<Buffer> held_;
  std::vector<Kept> kept_;  // of the last periods that had launches, in order of time
  LaunchCounter counter_;
  // Of windows whose weight was left to a later call.
  struct Deferred {
    int windows = 0;
    double time_ns = 0, open_ns = 0, alone_ns = 0;
    Doubt doubt = {};  // times open_ns
  } deferred_;
  std::int64_t closed_ns_ = 0;   // when the last window was; monotonic
  std::int64_t awaited_ns_ = 0;  // when a call was made for its id; 0: none
  DeviceBusy busy_;
  std::int64_t first_ns_ = 0;  // of what is counted; 0: nothing
  WorkRates work_rates_;
  NodeTimes node_times_;  // guarded by the recorder's lock
  StreamTime streams_;
  double total_ns_ = 0;
  // Of settled periods: z is their weighted kernel time, t the launches or time that they
  // represent.
  struct Sums {
    double n = 0, z = 0, t = 0, zz = 0, zt = 0, tt = 0;
    void add(double z_ns, double size);
    double variance() const;
  };
  // Of periods that are no longer remembered.
  struct Settled {
    Sums counted, timed;
    double switched_ns = 0, waited_ns = 0;  // the doubts about weights by time
    void add(const Period& period);
  } settled_;

  std::mutex out_mutex_;  // of out_; taken last
  struct Out {
    std::uint8_t* bytes;
    std::int64_t lent_ns;
  };
  std::vector<Out> out_;  // buffers with CUPTI, and since when; not those that may never come back
  std::atomic<std::int64_t> released_ns_ = 0;
  std::atomic<bool> copies_wanted_ = true;
  std::atomic<std::int64_t> last_copy_ns_ = 0;
  std::atomic<bool> seen_records_ = false, work_began_ = false;
  std::atomic<std::int64_t> cost_ns_ = 0;
  static constexpr std::uint64_t kManyBytes = 60'000 * sizeof(CUpti_ActivityKernel10);
  std::atomic<std::uint64_t> recorded_bytes_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0, unfinished_copies_ = 0, launches_ = 0, nodes_ = 0,
                             unasked_ = 0;
};

}  // namespace purlin::profile::capture::cuda
