// SPDX-License-Identifier: Apache-2.0
#include "profile/format/tail.h"

#include "profile/ops/op_names.h"

#include <algorithm>

namespace purlin::profile {
namespace {

constexpr std::int64_t kHourNs = 3'600'000'000'000;
constexpr std::size_t kMaxTailBuckets = std::size_t{4} << 20;

bool holds_timeline(const Chunk& chunk) {
  using wire::ChunkType;
  return chunk.is(ChunkType::kLaunches) || chunk.is(ChunkType::kActivities) ||
         chunk.is(ChunkType::kCalls) || chunk.is(ChunkType::kOps) || chunk.is(ChunkType::kRanges) ||
         chunk.is(ChunkType::kNames) || chunk.is(ChunkType::kStallSites);
}

Status senseless(const Chunk& chunk) {
  return error(Code::kCorrupt, "damaged: chunk of type {} at offset {} makes no sense", chunk.type,
               chunk.offset);
}

double grown(double now, double before) { return std::max(0.0, now - before); }

}  // namespace

ProfileTail::ProfileTail(std::uint64_t resume_at, const TailLimits& limits)
    : limits_(limits), resume_at_(resume_at), reader_(head_, kMaxTailBuckets) {}

const ProcessInfo* ProfileTail::process() const {
  return head_.processes.empty() ? nullptr : &head_.processes.front();
}

Status ProfileTail::check_header(const Bytes& bytes) const {
  if (bytes.size() > limits_.max_file_bytes)
    return error(Code::kInvalid, "the file is over {} bytes", limits_.max_file_bytes);
  std::string buffer;
  PURLIN_ASSIGN(const std::string_view header, bytes.read(0, wire::kHeaderBytes, buffer));
  if (header.substr(0, wire::kMagic.size()) != wire::kMagic)
    return error(Code::kInvalid, "not a Purlin profile (it does not start with 'PURLINPF')");
  const int version = wire::Decoder(header.substr(wire::kMagic.size())).fixed16();
  if (version == wire::kFormatVersion) return Status::ok();
  return error(Code::kInvalid, "profile format version {} is not known to this Purlin", version);
}

Result<std::vector<TailPart>> ProfileTail::read(const Bytes& bytes) {
  std::vector<TailPart> parts;
  if (bytes.size() < wire::kHeaderBytes) return parts;  // just made
  if (offset_ == 0) {
    PURLIN_TRY(check_header(bytes));
    offset_ = wire::kHeaderBytes;
    PURLIN_TRY(resume(bytes));
  }
  if (bytes.size() < offset_)
    return error(Code::kCorrupt, "the file became shorter: it had {} bytes", offset_);
  PURLIN_ASSIGN(const Sealed sealed, scan(bytes, offset_));
  if (sealed.seals == 0) return parts;
  PURLIN_TRY(decode(bytes, sealed.end, &parts));
  final_ = sealed.last.final;
  return parts;
}

// What was shipped before the restart is decoded for its definitions, and dropped.
Status ProfileTail::resume(const Bytes& bytes) {
  if (resume_at_ <= wire::kHeaderBytes) return Status::ok();
  if (bytes.size() < resume_at_)
    return error(Code::kCorrupt, "the file became shorter: it had {} bytes", resume_at_);
  PURLIN_TRY(decode(bytes, resume_at_, nullptr));
  if (offset_ != resume_at_)
    return error(Code::kCorrupt, "no period ends at offset {}, where reading ended", resume_at_);
  (void)harvest();
  return Status::ok();
}

// Up to `end`, where a seal ends. Without `parts`, what was launched is not wanted. A period is of
// the hour of its seal, so its chunks are decoded when the seal is known.
Status ProfileTail::decode(const Bytes& bytes, std::uint64_t end, std::vector<TailPart>* parts) {
  Chunks chunks(bytes, end, offset_);
  std::vector<Chunk> period;
  Chunk chunk;
  while (chunks.next(chunk)) {
    if (!chunk.is(wire::ChunkType::kSeal)) {
      if (!holds_timeline(chunk)) period.push_back(chunk);
      continue;
    }
    wire::Seal seal;
    if (!wire::decode(chunks.payload(chunk), seal)) return senseless(chunk);
    const bool new_hour = taken_ns_ != sealed_ns_ && seal.wall_ns / kHourNs != sealed_ns_ / kHourNs;
    if (parts != nullptr && new_hour) parts->push_back(harvest());
    for (const Chunk& each : period) PURLIN_TRY(take_chunk(chunks, each));
    period.clear();
    sealed_ns_ = seal.wall_ns;
    offset_ = chunk.end();
    if (parts == nullptr) drop_launches();
  }
  PURLIN_TRY(chunks.status());
  if (offset_ != end) return error(Code::kCorrupt, "no period ends at offset {}", end);
  if (parts != nullptr && taken_ns_ != sealed_ns_) parts->push_back(harvest());
  return Status::ok();
}

// The rows stay: the file's later chunks count on their places.
void ProfileTail::drop_launches() {
  for (KernelRow& row : head_.kernels) {
    row.duration = Sketch();
    row.counters.clear();
  }
  for (CopyRow& row : head_.copies) row.duration = Sketch();
  for (WaitRow& row : head_.waits) row.duration = Sketch();
  reader_.renew_buckets();
}

Status ProfileTail::take_chunk(Chunks& chunks, const Chunk& chunk) {
  if (chunk.length > limits_.max_chunk_bytes) return senseless(chunk);
  const std::string_view payload = chunks.payload(chunk);
  PURLIN_TRY(chunks.status());
  if (!reader_.decode(chunk.type, chunk.version, payload)) return senseless(chunk);
  if (head_.kernels.size() > limits_.max_rows)
    return error(Code::kInvalid, "the file has over {} kernels and launch shapes",
                 limits_.max_rows);
  return Status::ok();
}

Coverage ProfileTail::grown_coverage() {
  const Coverage& now = head_.coverage;
  Coverage part;
  part.launches_seen = grown(now.launches_seen, before_.launches_seen);
  part.launches_counted = grown(now.launches_counted, before_.launches_counted);
  part.launches_lost = grown(now.launches_lost, before_.launches_lost);
  part.launches_sampled_out = grown(now.launches_sampled_out, before_.launches_sampled_out);
  part.overhead_ns = grown(now.overhead_ns, before_.overhead_ns);
  part.sampling = now.sampling;
  part.sampling.governed_ns = grown(now.sampling.governed_ns, before_.sampling.governed_ns);
  part.sampling.recorded_ns = grown(now.sampling.recorded_ns, before_.sampling.recorded_ns);
  for (const CoverageNote& note : now.notes) {
    const auto known =
        std::find_if(before_.notes.begin(), before_.notes.end(), [&](const CoverageNote& earlier) {
          return earlier.cause == note.cause && earlier.count >= note.count &&
                 earlier.seconds >= note.seconds;
        });
    if (known == before_.notes.end()) part.notes.push_back(note);
  }
  before_ = now;
  return part;
}

TailPart ProfileTail::harvest() {
  TailPart part;
  const ProcessInfo* of = process();
  part.begin_ns = taken_ns_ != 0 ? taken_ns_ : of != nullptr ? of->start_ns : sealed_ns_;
  part.end_ns = taken_ns_ = sealed_ns_;
  part.profile.environment = head_.environment;
  part.profile.processes = head_.processes;
  part.profile.labels = head_.labels;
  part.profile.source = head_.source;
  for (const KernelRow& row : head_.kernels)
    if (!row.duration.empty()) part.profile.kernels.push_back(row);
  drop_launches();
  part.profile.coverage = grown_coverage();
  name_ops(part.profile);
  return part;
}

}  // namespace purlin::profile
