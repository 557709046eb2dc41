// SPDX-License-Identifier: Apache-2.0
// ProfileStream: a profile file of any size. Opening it reads all but the timeline, whose events
// can then be visited without being held, folded into the rows' sketches, or loaded up to a bound.
// Chunks are decoded by several threads; results do not depend on how many.
//
// Owns the open file and, until take(), the profile. visit is const and its callback is called from
// several threads, the rest is for one thread. Files are foreign input: memory is bounded by the
// number of rows, the bounds below and a few chunks per thread. Failure: as read_profile.
#pragma once

#include "model/profile/profile.h"
#include "profile/format/bytes.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

class ProfileStream {
 public:
  static Result<ProfileStream> open(const std::string& path);
  static Result<ProfileStream> over(std::string_view bytes);  // which must outlive it

  // Everything but events; Timeline has names and bounds.
  const Profile& profile() const { return profile_; }
  std::uint64_t activities() const;  // how many the file holds

  // [MT] Called with up to a few thousand activities of one chunk, by `worker` < workers; false
  // ends the visit. Rows are in range, links to calls may not be. The order of chunks is not kept.
  using Visit = std::function<bool(std::size_t worker, std::span<const Activity> batch)>;
  Status visit(std::size_t workers, const Visit& visit) const;

  // Rows without a sketch get one from their launches: files of windows and of other writers may
  // hold only these.
  Status fold_launches(std::size_t workers);

  // Where there are more than `max_events`, those chunks are kept that begin first; what begins
  // later is counted in left_out, and the recording ends there.
  Status load_timeline(std::size_t max_events, std::size_t workers);

  Profile take() { return std::move(profile_); }

 private:
  struct Events {  // of one chunk
    std::uint64_t payload = 0;
    std::int64_t base_ns = 0;
    std::uint32_t length = 0, count = 0;
    wire::ChunkType type = wire::ChunkType::kLaunches;
  };
  struct Place {  // where a chunk's events go in the timeline
    const Events* chunk = nullptr;
    std::size_t first = 0;
  };
  struct Selection {
    std::vector<Place> places;
    std::size_t activities = 0, calls = 0, ops = 0, ranges = 0;
    std::uint64_t left_out = 0;  // activities
    bool cut = false;
    std::int64_t cut_ns = 0;
  };

  explicit ProfileStream(Bytes bytes) : bytes_(std::move(bytes)) {}
  static Result<ProfileStream> start(Bytes bytes);
  Status read_head();
  bool add_events(const Chunk& chunk, std::string_view start);
  template <class Add>
  bool decode_activities(const Events& chunk, std::string_view payload, wire::LaunchMemory& memory,
                         Add add) const;
  Status damaged(const Events& chunk) const;
  std::size_t process_bound() const;
  Selection select(std::size_t max_events) const;
  bool load(const Place& place, std::string_view payload, wire::LaunchMemory& memory);
  void cut_at(std::int64_t end_ns);
  Status mend();

  Bytes bytes_;
  Profile profile_;
  std::vector<Events> events_;  // in the file's order
};

// The default number of threads: the processors, at most 8.
std::size_t default_workers();

}  // namespace purlin::profile
