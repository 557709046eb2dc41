// SPDX-License-Identifier: Apache-2.0
#include "store/batch.h"

#include "profile/format/wire.h"
#include "store/sketch_bytes.h"
#include "store/zstd_frame.h"

#include <limits>
#include <tuple>
#include <unordered_map>

namespace purlin::store {
namespace {

using profile::wire::Decoder;
using profile::wire::Encoder;

constexpr std::string_view kBatchMagic{"PURLINBT", 8};
constexpr std::uint16_t kBatchVersion = 1;
constexpr std::int64_t kBatchHourNs = 3'600'000'000'000;
constexpr std::int64_t kMaxSpanNs = 40 * 24 * kBatchHourNs;
// From 2001 to 2200, so that sums and differences of times cannot overflow.
constexpr std::int64_t kFirstTimeNs = 1'000'000'000'000'000'000;
constexpr std::int64_t kLastTimeNs = 7'258'118'400'000'000'000;
constexpr std::size_t kMaxNodeBytes = 200;

// Sections: tag, length, contents. A reader skips tags that it does not know.
enum Section : std::uint64_t {
  kHead = 1,
  kTexts = 2,
  kDevices = 3,
  kRuns = 4,
  kRows = 5,
  kCoverage = 6,
  kShed = 7,
  kRaws = 8,
  kSpool = 9,
};

// Texts of a batch, each once; 0 is "".
class TextTable {
 public:
  std::uint64_t id(const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, is_new] = ids_.emplace(text, texts_.size() + 1);
    if (is_new) texts_.push_back(&at->first);
    return at->second;
  }
  std::string section() const {
    Encoder out;
    out.varint(texts_.size());
    for (const std::string* text : texts_) out.text(*text);
    return out.bytes();
  }

 private:
  std::unordered_map<std::string, std::uint64_t> ids_;
  std::vector<const std::string*> texts_;
};

// A count of something that a double holds: whole numbers take few bytes.
void write_amount(Encoder& out, double value) {
  const bool whole = value >= 0 && value < 0x1p53 &&
                     value == static_cast<double>(static_cast<std::uint64_t>(value));
  if (whole) {
    out.varint(static_cast<std::uint64_t>(value) << 1);
  } else {
    out.varint(1);
    out.real(value);
  }
}

// Not negative and finite, else the read fails.
double read_amount(Decoder& in) {
  const std::uint64_t head = in.varint();
  const double value = (head & 1) == 0 ? static_cast<double>(head >> 1) : in.real();
  if (!(value >= 0 && value <= std::numeric_limits<double>::max())) in.fail();
  return value;
}

std::int64_t first_hour(const Batch& batch) {
  return batch.begin_ns - batch.begin_ns % kBatchHourNs;
}

class BatchWriter {
 public:
  explicit BatchWriter(const Batch& batch) : batch_(batch) {}

  std::string body() {
    const std::string devices = list(batch_.devices, &BatchWriter::device);
    const std::string runs = list(batch_.runs, &BatchWriter::run);
    const std::string rows = list(batch_.rows, &BatchWriter::row);
    const std::string coverage = list(batch_.coverage, &BatchWriter::covered);
    const std::string shed = list(batch_.shed, &BatchWriter::shed_cause);
    const std::string raws = list(batch_.raws, &BatchWriter::raw);
    const std::string head = this->head();
    Encoder out;
    out.raw(kBatchMagic);
    out.fixed16(kBatchVersion);
    const auto section = [&](Section tag, const std::string& bytes) {
      out.varint(tag);
      out.text(bytes);
    };
    section(kTexts, texts_.section());
    section(kHead, head);
    section(kDevices, devices);
    section(kRuns, runs);
    section(kRows, rows);
    section(kCoverage, coverage);
    section(kShed, shed);
    section(kRaws, raws);
    if (batch_.spool.limit_bytes > 0) section(kSpool, spool());
    return out.bytes();
  }

 private:
  template <class Item>
  std::string list(const std::vector<Item>& items,
                   void (BatchWriter::*write)(Encoder&, const Item&)) {
    Encoder out;
    out.varint(items.size());
    for (const Item& item : items) (this->*write)(out, item);
    return out.bytes();
  }
  void text(Encoder& out, const std::string& value) { out.varint(texts_.id(value)); }
  void hour(Encoder& out, std::int64_t hour_ns) {
    out.varint(static_cast<std::uint64_t>((hour_ns - first_hour(batch_)) / kBatchHourNs));
  }

  std::string head() {
    Encoder out;
    text(out, batch_.node);
    text(out, batch_.boot);
    text(out, batch_.tool_version);
    out.varint(batch_.sequence);
    out.fixed64(static_cast<std::uint64_t>(batch_.begin_ns));
    out.varint(static_cast<std::uint64_t>(batch_.end_ns - batch_.begin_ns));
    out.signed_varint(batch_.sent_ns - batch_.end_ns);
    write_amount(out, batch_.collector_cpu_ns);
    out.varint(batch_.collector_rss_bytes);
    return out.bytes();
  }
  std::string spool() const {
    Encoder out;
    out.varint(batch_.spool.bytes);
    out.varint(batch_.spool.limit_bytes);
    return out.bytes();
  }
  void device(Encoder& out, const BatchDevice& device) {
    for (const std::string* field :
         {&device.uuid, &device.model, &device.mig, &device.driver, &device.runtime})
      text(out, *field);
    out.signed_varint(device.ordinal);
  }
  void run(Encoder& out, const BatchRun& run) {
    const RunLabels& labels = run.labels;
    for (const std::string* field :
         {&run.build, &run.command, &labels.host, &labels.user, &labels.scheduler, &labels.job,
          &labels.container, &labels.pod})
      text(out, *field);
    out.signed_varint(run.rank);
    out.signed_varint(run.world);
  }
  void row(Encoder& out, const BatchRow& row) {
    hour(out, row.hour_ns);
    for (const std::string* field :
         {&row.kernel, &row.raw_kernel, &row.role, &row.op, &row.shape, &row.dtype})
      text(out, *field);
    out.varint(row.device);
    out.varint(row.run);
    write_amount(out, row.recorded);
    write_sketch(out, row.duration);
  }
  void covered(Encoder& out, const BatchCoverage& coverage) {
    hour(out, coverage.hour_ns);
    out.varint(coverage.device);
    for (const double value :
         {coverage.busy_ns, coverage.seen_ns, coverage.launches_seen, coverage.launches_lost,
          coverage.launches_sampled_out, coverage.overhead_ns, coverage.bad_timestamps})
      write_amount(out, value);
    text(out, coverage.why);
  }
  void shed_cause(Encoder& out, const BatchShed& shed) {
    text(out, shed.cause);
    out.varint(shed.batches);
    out.varint(shed.rows);
    out.varint(shed.raw_bytes);
  }
  void raw(Encoder& out, const RawPointer& raw) {
    text(out, raw.sha256);
    out.varint(raw.bytes);
    out.fixed64(static_cast<std::uint64_t>(raw.begin_ns));
    out.fixed64(static_cast<std::uint64_t>(raw.end_ns));
    text(out, raw.kind);
    text(out, raw.kernel);
    out.varint(raw.run);
  }

  const Batch& batch_;
  TextTable texts_;
};

class BatchReader {
 public:
  BatchReader(std::string_view body, const Limits& limits)
      : in_(body),
        limits_(limits),
        budget_(limits.max_buckets),
        named_left_(limits.max_named_bytes) {}

  Result<Batch> read() {
    PURLIN_TRY(read_sections());
    static const char* const kMust[] = {"head", "texts"};
    for (const Section tag : {kHead, kTexts})
      if (sections_[tag].data() == nullptr)
        return error(Code::kInvalid, "the batch has no {}", kMust[tag - kHead]);
    PURLIN_TRY(section(kTexts, "texts", [&](Decoder& in) {
      texts_.emplace_back();
      for (std::size_t left = in.count(); left > 0 && !in.failed(); --left) {
        texts_.push_back(in.text());
        if (texts_.back().size() > limits_.max_text_bytes) in.fail();
      }
    }));
    PURLIN_TRY(section(kHead, "head", [&](Decoder& in) { head(in); }));
    PURLIN_TRY(list(kDevices, "devices", batch_.devices, &BatchReader::device));
    PURLIN_TRY(list(kRuns, "runs", batch_.runs, &BatchReader::run));
    PURLIN_TRY(list(kRows, "rows", batch_.rows, &BatchReader::row));
    PURLIN_TRY(list(kCoverage, "coverage", batch_.coverage, &BatchReader::covered));
    PURLIN_TRY(list(kShed, "shed", batch_.shed, &BatchReader::shed_cause));
    PURLIN_TRY(list(kRaws, "raws", batch_.raws, &BatchReader::raw));
    if (sections_[kSpool].data() != nullptr)
      PURLIN_TRY(section(kSpool, "spool", [&](Decoder& in) {
        batch_.spool.bytes = in.varint();
        batch_.spool.limit_bytes = in.varint();
      }));
    return std::move(batch_);
  }

 private:
  Status read_sections() {
    for (const char c : kBatchMagic)
      if (static_cast<char>(in_.u8()) != c) return error(Code::kInvalid, "this is no batch");
    const unsigned version = in_.fixed16();
    if (version > kBatchVersion)
      return error(Code::kCorrupt,
                   "the batch has version {}, written by a newer Purlin; update the server",
                   version);
    if (version == 0) return error(Code::kInvalid, "this is no batch");
    while (!in_.at_end()) {
      const std::uint64_t tag = in_.varint();
      const std::string_view bytes = in_.text();
      if (in_.failed()) return error(Code::kInvalid, "the batch is cut short");
      if (tag < kSections && sections_[tag].data() == nullptr) sections_[tag] = bytes;
    }
    return Status::ok();
  }
  template <class ReadAll>
  Status section(Section tag, const char* name, ReadAll read_all) {
    Decoder in(sections_[tag]);
    read_all(in);
    if (in.failed() || !in.at_end())
      return error(Code::kInvalid, "the batch's {} are damaged or over a limit", name);
    return Status::ok();
  }
  template <class Item>
  Status list(Section tag, const char* name, std::vector<Item>& items,
              void (BatchReader::*read_item)(Decoder&, Item&)) {
    if (sections_[tag].data() == nullptr) return Status::ok();
    return section(tag, name, [&](Decoder& in) {
      const std::size_t count = in.count(3);
      if (count > limits_.max_rows) in.fail();
      for (std::size_t i = 0; i < count && !in.failed(); ++i)
        (this->*read_item)(in, items.emplace_back());
    });
  }
  std::string text(Decoder& in) {
    const std::uint64_t id = in.varint();
    if (id >= texts_.size() || texts_[id].size() > named_left_) return in.fail(), "";
    named_left_ -= texts_[id].size();
    return std::string(texts_[id]);
  }
  std::int64_t time(Decoder& in) {
    return checked_time(in, static_cast<std::int64_t>(in.fixed64()));
  }
  std::int64_t checked_time(Decoder& in, std::int64_t ns) {
    if (ns < kFirstTimeNs || ns > kLastTimeNs) in.fail();
    return ns;
  }
  // Within the batch's own time.
  std::int64_t hour(Decoder& in) {
    const std::uint64_t after = in.varint();
    if (after > static_cast<std::uint64_t>(kMaxSpanNs / kBatchHourNs)) return in.fail(), 0;
    const std::int64_t ns = first_hour(batch_) + static_cast<std::int64_t>(after) * kBatchHourNs;
    if (ns > batch_.end_ns) in.fail();
    return ns;
  }
  template <class Item>
  std::uint32_t index(Decoder& in, const std::vector<Item>& items) {
    const std::uint32_t at = in.varint32();
    if (at >= items.size()) in.fail();
    return at;
  }
  int small(Decoder& in) {
    const std::int64_t value = in.signed_varint();
    if (value < -1 || value > std::numeric_limits<int>::max()) return in.fail(), 0;
    return static_cast<int>(value);
  }

  void head(Decoder& in) {
    batch_.node = text(in);
    batch_.boot = text(in);
    batch_.tool_version = text(in);
    if (batch_.node.empty() || batch_.node.size() > kMaxNodeBytes ||
        batch_.boot.size() > kMaxNodeBytes)
      in.fail();
    batch_.sequence = in.varint();
    if (batch_.sequence > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      in.fail();
    batch_.begin_ns = time(in);
    const std::uint64_t span = in.varint();
    if (span > static_cast<std::uint64_t>(kMaxSpanNs)) return in.fail();
    batch_.end_ns = batch_.begin_ns + static_cast<std::int64_t>(span);
    const std::int64_t later = in.signed_varint();
    if (later < -kLastTimeNs || later > kLastTimeNs / 8) return in.fail();
    batch_.sent_ns = checked_time(in, batch_.end_ns + later);
    batch_.collector_cpu_ns = read_amount(in);
    batch_.collector_rss_bytes = in.varint();
  }
  void device(Decoder& in, BatchDevice& device) {
    for (std::string* field :
         {&device.uuid, &device.model, &device.mig, &device.driver, &device.runtime})
      *field = text(in);
    device.ordinal = small(in);
  }
  void run(Decoder& in, BatchRun& run) {
    RunLabels& labels = run.labels;
    for (std::string* field : {&run.build, &run.command, &labels.host, &labels.user,
                               &labels.scheduler, &labels.job, &labels.container, &labels.pod})
      *field = text(in);
    run.rank = small(in);
    run.world = small(in);
  }
  void row(Decoder& in, BatchRow& row) {
    row.hour_ns = hour(in);
    for (std::string* field :
         {&row.kernel, &row.raw_kernel, &row.role, &row.op, &row.shape, &row.dtype})
      *field = text(in);
    row.device = index(in, batch_.devices);
    row.run = index(in, batch_.runs);
    row.recorded = read_amount(in);
    if (!read_sketch(in, row.duration, budget_)) in.fail();
  }
  void covered(Decoder& in, BatchCoverage& coverage) {
    coverage.hour_ns = hour(in);
    coverage.device = index(in, batch_.devices);
    for (double* value :
         {&coverage.busy_ns, &coverage.seen_ns, &coverage.launches_seen, &coverage.launches_lost,
          &coverage.launches_sampled_out, &coverage.overhead_ns, &coverage.bad_timestamps})
      *value = read_amount(in);
    coverage.why = text(in);
  }
  void shed_cause(Decoder& in, BatchShed& shed) {
    shed.cause = text(in);
    shed.batches = in.varint();
    shed.rows = in.varint();
    shed.raw_bytes = in.varint();
  }
  void raw(Decoder& in, RawPointer& raw) {
    raw.sha256 = text(in);
    const bool is_digest = raw.sha256.size() == 64 &&
                           raw.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_digest) in.fail();
    raw.bytes = in.varint();
    raw.begin_ns = time(in);
    raw.end_ns = time(in);
    raw.kind = text(in);
    raw.kernel = text(in);
    raw.run = index(in, batch_.runs);
  }

  static constexpr std::size_t kSections = 16;
  Decoder in_;
  const Limits limits_;
  std::size_t budget_, named_left_;
  std::string_view sections_[kSections];
  std::vector<std::string_view> texts_;
  Batch batch_;
};

Status writable(const Batch& batch) {
  const auto is_time = [](std::int64_t ns) { return ns >= kFirstTimeNs && ns <= kLastTimeNs; };
  if (batch.node.empty() || batch.node.size() > kMaxNodeBytes || batch.boot.size() > kMaxNodeBytes)
    return error(Code::kInvalid, "a batch's node and boot have 1 to {} bytes", kMaxNodeBytes);
  if (!is_time(batch.begin_ns) || !is_time(batch.end_ns) || !is_time(batch.sent_ns) ||
      batch.end_ns < batch.begin_ns || batch.end_ns - batch.begin_ns > kMaxSpanNs)
    return error(Code::kInvalid, "node {}: the batch's times are impossible: {} to {}", batch.node,
                 batch.begin_ns, batch.end_ns);
  const auto in_time = [&](std::int64_t hour) {
    return hour % kBatchHourNs == 0 && hour >= first_hour(batch) && hour <= batch.end_ns;
  };
  for (const BatchRow& row : batch.rows)
    if (!in_time(row.hour_ns) || row.device >= batch.devices.size() || row.run >= batch.runs.size())
      return error(Code::kInvalid, "node {}: a row of kernel '{}' is outside its batch", batch.node,
                   row.kernel);
  for (const BatchCoverage& coverage : batch.coverage)
    if (!in_time(coverage.hour_ns) || coverage.device >= batch.devices.size())
      return error(Code::kInvalid, "node {}: coverage is outside its batch", batch.node);
  return Status::ok();
}

bool same(const Sketch& a, const Sketch& b) {
  return a.scale() == b.scale() && a.first_bucket() == b.first_bucket() &&
         a.buckets() == b.buckets() && a.total_ns() == b.total_ns() && a.min_ns() == b.min_ns() &&
         a.max_ns() == b.max_ns();
}

}  // namespace

bool BatchRow::operator==(const BatchRow& other) const {
  const auto labels = [](const BatchRow& row) {
    return std::tie(row.hour_ns, row.kernel, row.raw_kernel, row.role, row.op, row.shape, row.dtype,
                    row.device, row.run, row.recorded);
  };
  return labels(*this) == labels(other) && same(duration, other.duration);
}

Result<std::string> encode(const Batch& batch) {
  PURLIN_TRY(writable(batch));
  return zstd_frame(BatchWriter(batch).body());
}

Result<Batch> decode(std::string_view bytes, const Limits& limits) {
  if (bytes.size() > limits.max_bytes)
    return error(Code::kInvalid, "the batch has {} bytes, over the limit of {}", bytes.size(),
                 limits.max_bytes);
  PURLIN_ASSIGN(const std::string body, zstd_contents(bytes, limits.max_body_bytes));
  return BatchReader(body, limits).read();
}

}  // namespace purlin::store
