// SPDX-License-Identifier: Apache-2.0
// What a shared cache hands us, from any bytes: bundles (as they come, and with a header that fits,
// so that the payload's parser is reached), the index, and S3's XML. What is accepted must survive
// being written again.
#include "base/gzip.h"
#include "base/sha256.h"
#include "blobs/s3_config.h"
#include "blobs/s3_xml.h"
#include "cache/share/exchange.h"
#include "cache/share/share_index.h"
#include "require.h"

#include <cstdlib>

using namespace purlin::cache;

namespace {

void check_bundle(std::string_view bytes) {
  const auto bundle = read_records(bytes, nullptr);
  if (!bundle.is_ok()) return;
  const auto copy = decode_bundle(encode_bundle(bundle->records, nullptr).value(), nullptr);
  require(copy.is_ok() && copy->records.size() + copy->refused == bundle->records.size());
}

// A bundle that holds `lines`, as its checksums and counts say.
std::string whole(std::string_view lines, std::size_t count) {
  const std::string payload = purlin::gzip(lines).value();
  return fmt::format(
      "{{\"schema\":\"purlin.bundle/1\",\"records\":{},\"plain_bytes\":{},\"payload_bytes\":{},"
      "\"payload_sha256\":\"{}\"}}\n{{}}\n{}",
      count, lines.size(), payload.size(), purlin::sha256_hex(payload), payload);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_bundle(bytes);
  std::size_t lines = 0;
  for (const char c : bytes) lines += c == '\n' ? 1 : 0;
  check_bundle(whole(bytes, lines));

  if (const auto index = decode_index(bytes); index.is_ok()) {
    const auto copy = decode_index(encode_index(*index));
    require(copy.is_ok() && copy->segments == index->segments && copy->retired == index->retired);
  }
  if (const auto page = purlin::blobs::parse_list_page(bytes); page.is_ok())
    require(page->blobs.size() <= 10'000);
  static_cast<void>(purlin::blobs::parse_s3_error(bytes));
  static_cast<void>(purlin::blobs::profile_settings(bytes, "default"));
  static_cast<void>(purlin::blobs::parse_s3_target(bytes).is_ok());
  return 0;
}
