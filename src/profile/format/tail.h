// SPDX-License-Identifier: Apache-2.0
// ProfileTail: a capture's file that is still written, read a few periods at a time.
//
// Each read gives what was sealed since the one before, as a separate profile: the kernels with
// launches in these periods, and what coverage grew by. What the file defines once (names, kernels,
// devices) is held in between; after a restart it is read again up to `resume_at`. Events of the
// timeline are left out. One owner, one thread. The file is foreign input: memory is bounded by
// TailLimits. Failure: kCorrupt or kInvalid, for good; kIo, for now. Nothing was then taken.
#pragma once

#include "model/profile/profile.h"
#include "profile/format/bytes.h"
#include "profile/format/head.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::profile {

struct TailLimits {
  std::size_t max_rows = 200'000;
  std::size_t max_chunk_bytes = std::size_t{64} << 20;
  std::uint64_t max_file_bytes = std::uint64_t{16} << 30;
};

// What was sealed within one hour of the wall clock.
struct TailPart {
  Profile profile;            // its coverage is what grew, without notes that were there before
  std::int64_t begin_ns = 0;  // the seal before the first one, or the process's start
  std::int64_t end_ns = 0;    // the last seal
};

class ProfileTail {
 public:
  // `resume_at`: offset() of a reader before; 0: from the beginning.
  explicit ProfileTail(std::uint64_t resume_at = 0, const TailLimits& limits = {});
  ProfileTail(const ProfileTail&) = delete;
  ProfileTail& operator=(const ProfileTail&) = delete;

  Result<std::vector<TailPart>> read(const Bytes& bytes);
  std::uint64_t offset() const { return offset_; }       // the end of the last seal that was read
  std::int64_t sealed_ns() const { return sealed_ns_; }  // wall clock of the last seal; 0: none
  bool is_final() const { return final_; }               // the writer ended in order
  // The process that the file states; none before the first read.
  const ProcessInfo* process() const;
  const Environment& environment() const { return head_.environment; }

 private:
  Status check_header(const Bytes& bytes) const;
  Status resume(const Bytes& bytes);
  Status decode(const Bytes& bytes, std::uint64_t end, std::vector<TailPart>* parts);
  Status take_chunk(Chunks& chunks, const Chunk& chunk);
  void drop_launches();
  TailPart harvest();
  Coverage grown_coverage();

  const TailLimits limits_;
  std::uint64_t resume_at_, offset_ = 0;
  std::int64_t taken_ns_ = 0, sealed_ns_ = 0;  // the seal at the last harvest; the last seal
  bool final_ = false;
  Profile head_;
  HeadReader reader_;
  Coverage before_;
};

}  // namespace purlin::profile
