// SPDX-License-Identifier: Apache-2.0
#include "profile/format/wire.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin::profile::wire {
namespace {

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

// Sums of file contents wrap rather than overflow: a damaged file must not be undefined behaviour.
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t wrapping_subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

bool whole(double weight) { return weight == std::floor(weight) && weight < 9e15; }

}  // namespace

void Encoder::little_endian(std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
}

void Encoder::real(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  fixed64(bits);
}

void Encoder::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) u8(static_cast<std::uint8_t>(value | 0x80));
  u8(static_cast<std::uint8_t>(value));
}

void Encoder::signed_varint(std::int64_t value) { varint(zigzag(value)); }

void Encoder::text(std::string_view value) {
  varint(value.size());
  bytes_.append(value);
}

std::uint64_t Decoder::little_endian(int size) {
  if (rest() < static_cast<std::size_t>(size)) return fail(), 0;
  std::uint64_t value = 0;
  for (int i = 0; i < size; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(*at_++)} << (8 * i);
  return value;
}

double Decoder::real() {
  const std::uint64_t bits = fixed64();
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint64_t Decoder::long_varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
    const std::uint64_t byte = static_cast<unsigned char>(*at_++);
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return fail(), 0;
}

std::uint32_t Decoder::varint32() {
  const std::uint64_t value = varint();
  if (value > std::numeric_limits<std::uint32_t>::max()) return fail(), 0;
  return static_cast<std::uint32_t>(value);
}

std::string_view Decoder::text() {
  const std::size_t size = count();
  const std::string_view value(at_, size);
  at_ += size;
  return value;
}

std::size_t Decoder::count(std::size_t least) {
  const std::uint64_t value = varint();
  if (value > rest() / least) return fail(), 0;
  return static_cast<std::size_t>(value);
}

void append_header(std::string& out) {
  Encoder header;
  header.raw(kMagic);
  header.fixed16(kFormatVersion);
  header.fixed16(0);
  header.fixed32(0);
  out += header.bytes();
}

std::uint64_t checksum_seed(std::uint16_t type, std::uint16_t version, std::uint32_t length) {
  return type | std::uint64_t{version} << 16 | std::uint64_t{length} << 32;
}

void append_chunk(std::string& out, ChunkType type, std::string_view payload) {
  append_chunk(out, type, version_of(type), payload);
}

void append_chunk(std::string& out, ChunkType type, std::uint16_t version,
                  std::string_view payload) {
  const auto number = static_cast<std::uint16_t>(type);
  const auto length = static_cast<std::uint32_t>(payload.size());
  Encoder header;
  header.fixed16(number);
  header.fixed16(version);
  header.fixed32(length);
  header.fixed64(
      XXH3_64bits_withSeed(payload.data(), payload.size(), checksum_seed(number, version, length)));
  out += header.bytes();
  out += payload;
}

void encode(Encoder& out, const KernelDefinition& definition) {
  out.varint(definition.name);
  out.varint(definition.op);
  out.varint(definition.shape);
  out.varint(definition.device);
  for (const auto& extent : {definition.grid, definition.block, definition.cluster})
    for (const std::uint32_t value : extent) out.varint(value);
  out.varint(definition.dynamic_shared_bytes);
  out.varint(definition.static_shared_bytes);
  out.varint(definition.registers);
  out.varint(definition.local_bytes);
}

KernelDefinition decode_definition(Decoder& in) {
  KernelDefinition definition;
  definition.name = in.varint32();
  definition.op = in.varint32();
  definition.shape = in.varint32();
  definition.device = in.varint32();
  for (auto* extent : {&definition.grid, &definition.block, &definition.cluster})
    for (std::uint32_t& value : *extent) value = in.varint32();
  definition.dynamic_shared_bytes = in.varint32();
  definition.static_shared_bytes = in.varint32();
  definition.registers = in.varint32();
  definition.local_bytes = in.varint32();
  return definition;
}

void encode(Encoder& out, const Sketch& sketch) {
  std::uint64_t used = 0;
  bool all_whole = true;
  for (const double weight : sketch.buckets()) {
    used += weight > 0 ? 1 : 0;
    all_whole = all_whole && whole(weight);
  }
  out.varint(used << 1 | (all_whole ? 1 : 0));
  if (used == 0) return;
  out.u8(static_cast<std::uint8_t>(sketch.scale()));
  out.real(sketch.total_ns());
  out.real(sketch.min_ns());
  out.real(sketch.max_ns());
  int previous = 0;
  for (std::size_t i = 0; i < sketch.buckets().size(); ++i) {
    const double weight = sketch.buckets()[i];
    if (!(weight > 0)) continue;
    const int bucket = sketch.first_bucket() + static_cast<int>(i);
    out.varint(static_cast<std::uint64_t>(bucket - previous));
    previous = bucket;
    if (all_whole) {
      out.varint(static_cast<std::uint64_t>(weight));
    } else {
      out.real(weight);
    }
  }
}

namespace {

// Version 1 had 3500 buckets with g = 1.005 / 0.995.
constexpr std::uint64_t kFirstBuckets = 3500;
constexpr double kFirstBase = 1.005 / 0.995;

double first_value_of(int bucket) {
  return 2 * std::exp(bucket * std::log(kFirstBase)) / (kFirstBase + 1);
}

// Buckets of version 1 in those of today. Count, total, minimum and maximum stay.
bool convert(int first, const std::vector<double>& weights, double total, double min, double max,
             Sketch& sketch) {
  Sketch converted;
  if (!sketch.restore(0, {1}, 0, min, max)) return false;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0)
      converted.add(std::clamp(first_value_of(first + static_cast<int>(i)), min, max), weights[i]);
  return sketch.restore(converted.first_bucket(), converted.buckets(), total, min, max);
}

}  // namespace

bool decode(Decoder& in, Sketch& sketch, std::size_t& budget, std::uint16_t version) {
  sketch = Sketch();
  const bool converting = version < kSketchVersion;
  const std::uint64_t most = converting ? kFirstBuckets : Sketch::kMaxBuckets;
  const std::uint64_t head = in.varint();
  const std::uint64_t used = head >> 1;
  if (in.failed() || used > most) return false;
  if (used == 0) return true;
  const int scale = converting ? Sketch::kScale : in.u8();
  const double total = in.real(), min = in.real(), max = in.real();
  std::vector<double> weights;
  int first = 0;
  std::uint64_t bucket = 0;
  // A converted sketch takes up to twice the buckets.
  const std::size_t cost = converting ? 2 : 1;
  for (std::uint64_t i = 0; i < used; ++i) {
    const std::uint64_t gap = in.varint();
    const double weight = (head & 1) != 0 ? static_cast<double>(in.varint()) : in.real();
    if (in.failed() || gap >= most || (i > 0 && gap == 0)) return false;
    bucket += gap;
    if (bucket >= most || !(weight >= 0)) return false;
    if (i == 0) first = static_cast<int>(bucket);
    const std::size_t size = static_cast<std::size_t>(bucket) - static_cast<std::size_t>(first) + 1;
    if (cost * (size - weights.size()) > budget) return false;
    budget -= cost * (size - weights.size());
    weights.resize(size, 0);
    weights.back() = weight;
  }
  if (converting) return convert(first, weights, total, min, max, sketch);
  return sketch.restore(first, std::move(weights), total, min, max, scale);
}

// kernel and "same stream", the stream if it changed, the gap since the previous launch's end, how
// much longer it took than the same kernel's launch before.
void LaunchEncoder::add(std::uint32_t kernel, std::uint32_t stream, std::int64_t start_ns,
                        std::int64_t duration_ns) {
  if (count_ == 0) base_ns_ = previous_end_ns_ = start_ns;
  const bool moved = stream != stream_;
  duration_ns = std::max<std::int64_t>(duration_ns, 0);
  memory_.make_room(kernel);
  std::int64_t& last_duration = memory_.duration_ns(kernel);
  body_.varint(std::uint64_t{kernel} << 1 | (moved ? 1 : 0));
  if (moved) body_.varint(stream);
  body_.signed_varint(wrapping_subtract(start_ns, previous_end_ns_));
  body_.signed_varint(duration_ns - last_duration);
  last_duration = duration_ns;
  previous_end_ns_ = wrapping_add(start_ns, duration_ns);
  stream_ = stream;
  ++count_;
}

std::string LaunchEncoder::finish(std::uint32_t process) {
  Encoder out;
  out.varint(process);
  out.fixed64(static_cast<std::uint64_t>(base_ns_));
  out.varint(count_);
  out.raw(body_.bytes());
  body_.clear();
  memory_.begin_chunk();
  count_ = 0;
  stream_ = 0;
  return out.bytes();
}

LaunchDecoder::LaunchDecoder(std::string_view payload, LaunchMemory& memory)
    : in_(payload), memory_(memory) {
  process_ = in_.varint32();
  base_ns_ = previous_end_ns_ = static_cast<std::int64_t>(in_.fixed64());
  count_ = in_.count(3);
  memory.begin_chunk();
}

Launch LaunchDecoder::next() {
  Launch launch;
  const std::uint64_t head = in_.varint();
  if (head >> 1 >= memory_.kernels()) return in_.fail(), launch;
  launch.kernel = static_cast<std::uint32_t>(head >> 1);
  if ((head & 1) != 0) stream_ = in_.varint32();
  launch.stream = stream_;
  launch.start_ns = wrapping_add(previous_end_ns_, in_.signed_varint());
  std::int64_t& last_duration = memory_.duration_ns(launch.kernel);
  launch.duration_ns = last_duration = wrapping_add(last_duration, in_.signed_varint());
  if (launch.duration_ns < 0) in_.fail();
  previous_end_ns_ = wrapping_add(launch.start_ns, launch.duration_ns);
  return launch;
}

std::string encode(const Seal& seal) {
  Encoder out;
  out.varint(seal.sequence);
  out.fixed64(static_cast<std::uint64_t>(seal.wall_ns));
  out.fixed64(seal.offset);
  out.u8(seal.final ? 1 : 0);
  return out.bytes();
}

bool decode(std::string_view payload, Seal& seal) {
  Decoder in(payload);
  seal.sequence = in.varint();
  seal.wall_ns = static_cast<std::int64_t>(in.fixed64());
  seal.offset = in.fixed64();
  seal.final = in.u8() != 0;
  return !in.failed();
}

}  // namespace purlin::profile::wire
