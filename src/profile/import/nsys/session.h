// SPDX-License-Identifier: Apache-2.0
// NsysSession: what an Nsight Systems export says around its events: strings, the clock, GPUs,
// processes, messages. Shared by the parts of the nsys importer. Tables and columns of every age of
// the schema since 2019 are understood, and nvprof's SQLite, their common ancestor.
//
// Refers to the open file, which must outlive it. Not thread-safe.
#pragma once

#include "profile/import/assembly.h"
#include "profile/import/nsys/sqlite_file.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace purlin::profile {

// A start and an end as the tables have them, on the profile's clock.
struct Span {
  std::int64_t start_ns = 0, duration_ns = 0;
};

class NsysSession {
 public:
  NsysSession(const SqliteFile& file, Profile& profile, Assembly& assembly)
      : file_(file), profile_(profile), assembly_(assembly) {}

  // Reads the clock, the GPUs and the host; adds coverage notes for what the recorder said.
  Status read();

  // A name in a row: text in place, or the number of a string. "" where neither.
  std::string_view name(const SqliteFile::Rows& rows, int column);
  // nullopt where the times are absent, end before they start or overflow; these are counted.
  std::optional<Span> span(const SqliteFile::Rows& rows, int start, int end);
  double damaged() const { return damaged_; }

  // A serialised global id: virtual machine, process, thread. Absent: the one process there is.
  std::uint32_t process(std::optional<std::int64_t> global_id);
  static std::uint32_t thread(std::int64_t global_id) {
    return static_cast<std::uint32_t>(global_id & 0xFFFFFF);
  }
  // The device a process calls `ordinal`: processes see different ones under the same number.
  std::uint16_t device(std::uint32_t process, std::int64_t ordinal);

  // What is known when all events are: the names of processes, the bounds of the recording.
  void finish();

 private:
  Status read_clock();
  Status read_gpus();
  Status read_cuda_devices();
  Status read_processes();
  Status read_host();
  Status read_messages();
  std::size_t gpu_without_map(std::int64_t ordinal) const;

  struct Gpu {
    DeviceInfo info;
    std::int64_t id = 0;
    std::optional<std::int64_t> ordinal;
    int index = -1;  // into Environment::devices, once used
  };

  const SqliteFile& file_;
  Profile& profile_;
  Assembly& assembly_;
  std::int64_t epoch_ns_ = 0;  // wall clock of the events' zero
  std::int64_t begin_ = 0, end_ = 0;
  double damaged_ = 0;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::optional<SqliteFile::Rows> string_rows_;
  std::vector<Gpu> gpus_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> cuda_devices_;  // pid, ordinal
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint16_t> devices_;     // process, ordinal
  std::map<std::int64_t, std::string> process_names_;  // by global id >> 24
  std::vector<std::int64_t> process_keys_;             // of the profile's
};

// The importer over an open file.
Result<Profile> import_nsys(const SqliteFile& file, const ImportOptions& options);

}  // namespace purlin::profile
