// SPDX-License-Identifier: Apache-2.0
#include "cache/store/summary_index.h"

#include "base/files.h"
#include "base/hash.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace purlin::cache {
namespace {

static_assert(std::endian::native == std::endian::little,
              "summaries are little-endian in the file");

constexpr char kMagic[9] = "PURLINIX";
constexpr std::uint32_t kVersion = 2;  // 1 had no layout

// As it stands at the start of the image; the summaries follow, then the positions.
struct Header {
  char magic[8];
  std::uint32_t version, header_bytes;
  std::uint64_t position, last_record, fingerprint, damaged;
  std::uint64_t unreadable, newer;
  std::uint64_t entries, statuses;
  std::uint64_t body_hash;
  std::uint64_t header_hash;  // of all before
};
static_assert(sizeof(Header) == 96);

constexpr std::uint64_t kMaxSummaries = std::uint64_t{1} << 31;
// A mapped file that is cut off in place, or replaced on another host of a network file system,
// ends the program with SIGBUS. Up to this size, which is some 100,000 entries, it is read instead.
constexpr off_t kReadBytes = off_t{16} << 20;

std::uint64_t body_bytes(std::uint64_t entries, std::uint64_t statuses) {
  return entries * (sizeof(EntrySummary) + 4) + statuses * (sizeof(StatusSummary) + 4);
}

template <class Summary>
std::vector<std::uint32_t> positions_by_record(const std::vector<Summary>& summaries) {
  std::vector<std::uint32_t> positions(summaries.size());
  std::iota(positions.begin(), positions.end(), 0u);
  std::sort(positions.begin(), positions.end(), [&](std::uint32_t a, std::uint32_t b) {
    return summaries[a].record < summaries[b].record;
  });
  return positions;
}

template <class T>
void append_items(std::string& bytes, const std::vector<T>& items) {
  bytes.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
}

// Positions come from a file, so each is checked before it is followed.
template <class Summary>
const Summary* find_record(std::span<const Summary> summaries,
                           std::span<const std::uint32_t> positions, const Id128& record) {
  std::size_t begin = 0, end = positions.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (positions[middle] >= summaries.size()) return nullptr;
    const Summary& summary = summaries[positions[middle]];
    if (summary.record == record) return &summary;
    (summary.record < record ? begin : end) = summary.record < record ? middle + 1 : middle;
  }
  return nullptr;
}

template <class Summary, class Key, class Get>
std::span<const Summary> equal_range(std::span<const Summary> summaries, const Key& key, Get get) {
  const auto first =
      std::partition_point(summaries.begin(), summaries.end(),
                           [&](const Summary& summary) { return get(summary) < key; });
  const auto last = std::partition_point(
      first, summaries.end(), [&](const Summary& summary) { return get(summary) == key; });
  return {first, last};
}

}  // namespace

std::string SummaryIndex::encode(const IndexHead& head, std::vector<EntrySummary>& entries,
                                 std::vector<StatusSummary>& statuses) {
  std::sort(entries.begin(), entries.end(), [](const EntrySummary& a, const EntrySummary& b) {
    return std::tie(a.group, a.key, a.record) < std::tie(b.group, b.key, b.record);
  });
  std::sort(statuses.begin(), statuses.end(), [](const StatusSummary& a, const StatusSummary& b) {
    return std::tie(a.target, a.at_ns, a.record) < std::tie(b.target, b.at_ns, b.record);
  });
  std::string bytes(sizeof(Header), '\0');
  bytes.reserve(sizeof(Header) + body_bytes(entries.size(), statuses.size()));
  append_items(bytes, entries);
  append_items(bytes, statuses);
  append_items(bytes, positions_by_record(entries));
  append_items(bytes, positions_by_record(statuses));

  Header header{};
  std::memcpy(header.magic, kMagic, 8);
  header.version = kVersion;
  header.header_bytes = sizeof(Header);
  header.position = head.mark.position;
  header.last_record = head.mark.last_record;
  header.fingerprint = head.mark.fingerprint;
  header.damaged = head.mark.damaged;
  header.unreadable = head.unreadable;
  header.newer = head.newer;
  header.entries = entries.size();
  header.statuses = statuses.size();
  header.body_hash = hash64(bytes.data() + sizeof(Header), bytes.size() - sizeof(Header));
  header.header_hash = hash64(&header, offsetof(Header, header_hash));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

Status SummaryIndex::open(std::string_view bytes) {
  const auto damaged = [](const char* what) {
    return error(Code::kCorrupt, "the index of the cache is no whole image: {}", what);
  };
  Header header{};
  if (bytes.size() < sizeof header) return damaged("it is too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, 8) != 0 || header.version != kVersion ||
      header.header_bytes != sizeof header)
    return damaged("it is of another kind or version");
  if (header.header_hash != hash64(&header, offsetof(Header, header_hash)))
    return damaged("its header fails its checksum");
  if (header.entries > kMaxSummaries || header.statuses > kMaxSummaries ||
      bytes.size() - sizeof header != body_bytes(header.entries, header.statuses))
    return damaged("its length is not the one it states");
  const std::string_view body = bytes.substr(sizeof header);
  if (header.body_hash != hash64(body)) return damaged("its summaries fail their checksum");

  head_.mark = {header.position, header.last_record, header.fingerprint, header.damaged};
  head_.unreadable = header.unreadable;
  head_.newer = header.newer;
  const char* at = body.data();
  const auto take = [&]<class T>(std::span<const T>& items, std::uint64_t count) {
    items = {reinterpret_cast<const T*>(at), static_cast<std::size_t>(count)};
    at += count * sizeof(T);
  };
  take(entries_, header.entries);
  take(statuses_, header.statuses);
  take(by_record_, header.entries);
  take(status_by_record_, header.statuses);
  return Status::ok();
}

Result<std::shared_ptr<const SummaryIndex>> SummaryIndex::parse(std::string bytes) {
  std::shared_ptr<SummaryIndex> index(new SummaryIndex);
  index->owned_ = std::move(bytes);
  PURLIN_TRY(index->open(index->owned_));
  return std::shared_ptr<const SummaryIndex>(std::move(index));
}

Result<std::shared_ptr<const SummaryIndex>> SummaryIndex::map(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return error(errno == ENOENT || errno == ENOTDIR ? Code::kNotFound : Code::kIo,
                 "cannot read '{}': {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= kReadBytes) {
    ::close(fd);
    PURLIN_ASSIGN(std::string bytes, read_file(path, static_cast<std::size_t>(kReadBytes)));
    return parse(std::move(bytes));
  }
  std::shared_ptr<SummaryIndex> index(new SummaryIndex);
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_size >= static_cast<off_t>(sizeof(Header))) {
    index->mapped_bytes_ = static_cast<std::size_t>(info.st_size);
    void* at = ::mmap(nullptr, index->mapped_bytes_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at != MAP_FAILED) index->mapped_ = at;
  }
  ::close(fd);
  if (index->mapped_ == nullptr) return error(Code::kCorrupt, "'{}' cannot be mapped", path);
  PURLIN_TRY(index->open({static_cast<const char*>(index->mapped_), index->mapped_bytes_}));
  return std::shared_ptr<const SummaryIndex>(std::move(index));
}

SummaryIndex::~SummaryIndex() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

const EntrySummary* SummaryIndex::entry(const Id128& record) const {
  return find_record(entries_, by_record_, record);
}
const StatusSummary* SummaryIndex::status(const Id128& record) const {
  return find_record(statuses_, status_by_record_, record);
}
std::span<const EntrySummary> SummaryIndex::of_group(std::uint64_t group) const {
  return equal_range(entries_, group, [](const EntrySummary& summary) { return summary.group; });
}
std::span<const EntrySummary> SummaryIndex::of_key(std::uint64_t group, const Id128& key) const {
  return equal_range(entries_, std::tie(group, key), [](const EntrySummary& summary) {
    return std::tie(summary.group, summary.key);
  });
}
std::span<const StatusSummary> SummaryIndex::of_target(const Id128& record) const {
  return equal_range(statuses_, record,
                     [](const StatusSummary& summary) { return summary.target; });
}

}  // namespace purlin::cache
