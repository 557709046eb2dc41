// SPDX-License-Identifier: Apache-2.0
#include "cache/share/bundle.h"

#include "base/files.h"
#include "base/gzip.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/time.h"
#include "cache/store/record_log.h"
#include "model/document.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/random.h>

namespace purlin::cache {
namespace {

constexpr int kBundleVersion = 1;
constexpr std::string_view kBundleSchema = "purlin.bundle";
constexpr std::string_view kStart = "{\"schema\":\"purlin.bundle/";
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxPlainBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxRecords = 10'000'000;
constexpr std::size_t kMinSecretBytes = 16, kMaxSecretBytes = 4096;

// Not std::random_device: linked statically, GCC 12's needs glibc 2.36, newer than Ubuntu 22.04's.
Result<std::string> nonce() {
  std::array<unsigned, 4> words;
  while (::getrandom(words.data(), sizeof words, 0) != ssize_t{sizeof words})
    if (errno != EINTR)
      return error(Code::kIo, "no random numbers for a bundle: getrandom failed with error {}",
                   errno);
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", words[0], words[1], words[2], words[3]);
}

// Removes the first line of `text` with its newline and returns it; nullopt if no newline is
// within `limit` bytes.
std::optional<std::string_view> take_line(std::string_view* text, std::size_t limit) {
  const std::size_t end = text->substr(0, limit + 1).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return line;
}

Status check_signature(std::string_view header, const Json& signature, const SigningKey& key) {
  const std::string& by = signature["key"].as_string();
  if (signature["algorithm"].as_string() != "hmac-sha256" || by.empty())
    return error(Code::kInvalid, "it is not signed; key {} is asked for", key.id());
  if (by != key.id())
    return error(Code::kInvalid, "it is signed with key {}; key {} is asked for", by, key.id());
  if (!equal_in_constant_time(signature["value"].as_string(), key.sign(header)))
    return error(Code::kInvalid, "its signature is wrong: it was changed after key {} signed it",
                 key.id());
  return Status::ok();
}

Status take_record(std::string_view line, Bundle* bundle) {
  PURLIN_ASSIGN(const Json json, Json::parse(line, {.max_bytes = 2 * kMaxPayload + 4096}));
  const std::string& kind = json["kind"].as_string();
  CacheRecord record;
  if (kind == record_kind_name(RecordKind::kEntry))
    record.kind = RecordKind::kEntry;
  else if (kind == record_kind_name(RecordKind::kStatus))
    record.kind = RecordKind::kStatus;
  else
    return ++bundle->newer, Status::ok();
  const Json* payload = json.find("payload");
  record.id = json["id"].as_string();
  if (payload == nullptr || record_id(*payload) != record.id)
    return ++bundle->refused, Status::ok();
  record.payload = payload->dump();
  bundle->records.push_back(std::move(record));
  return Status::ok();
}

}  // namespace

Result<SigningKey> SigningKey::load(const std::string& path) {
  PURLIN_ASSIGN(std::string secret, read_file(path, kMaxSecretBytes + 2));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  Result<SigningKey> key = from_secret(std::move(secret));
  if (!key.is_ok()) return key.status().with_context(path);
  return key;
}

Result<SigningKey> SigningKey::from_secret(std::string secret) {
  if (secret.size() < kMinSecretBytes || secret.size() > kMaxSecretBytes)
    return error(Code::kInvalid,
                 "a signing key has {} to {} bytes, this one {}; make one with: "
                 "head -c 32 /dev/urandom | base64 > FILE",
                 kMinSecretBytes, kMaxSecretBytes, secret.size());
  std::string id = hex(hmac_sha256(secret, "purlin key id")).substr(0, 16);
  return SigningKey(std::move(secret), std::move(id));
}

std::string SigningKey::sign(std::string_view text) const {
  return hex(hmac_sha256(secret_, text));
}

bool is_bundle(std::string_view bytes) { return starts_with(bytes, kStart); }

Result<std::string> encode_bundle(std::span<const CacheRecord> records, const SigningKey* key,
                                  std::size_t damaged) {
  std::string lines;
  for (const CacheRecord& record : records)
    lines += fmt::format("{{\"kind\":\"{}\",\"id\":\"{}\",\"payload\":{}}}\n",
                         record_kind_name(record.kind), record.id, record.payload);
  if (lines.size() > kMaxPlainBytes)
    return error(Code::kInvalid, "{} of records are too many for one bundle; export a part of them",
                 format_bytes(static_cast<double>(lines.size())));
  PURLIN_ASSIGN(const std::string payload, gzip(lines));
  Json header =
      new_document(fmt::format("{}/{}", kBundleSchema, kBundleVersion), host_environment());
  header.set("written_at", format_rfc3339(system_clock().wall_ns()));
  PURLIN_ASSIGN(const std::string number, nonce());
  header.set("nonce", number);
  header.set("records", records.size());
  header.set("plain_bytes", lines.size());
  header.set("payload_bytes", payload.size());
  header.set("payload_sha256", sha256_hex(payload));
  if (damaged > 0) header.set("damaged_records", damaged);
  const std::string first = header.dump();
  Json signature = Json::object();
  if (key != nullptr)
    signature = Json::object(
        {{"algorithm", "hmac-sha256"}, {"key", key->id()}, {"value", key->sign(first)}});
  return first + "\n" + signature.dump() + "\n" + payload;
}

Result<Bundle> decode_bundle(std::string_view bytes, const SigningKey* key) {
  if (!is_bundle(bytes)) return error(Code::kInvalid, "not a bundle of cache records");
  const auto damaged = [](std::string_view what) {
    return error(Code::kCorrupt, "the bundle is damaged: {}; fetch it again", what);
  };
  const auto first = take_line(&bytes, kMaxHeaderBytes);
  if (!first) return damaged("its header does not end");
  const Result<Json> header = Json::parse(*first);
  if (!header.is_ok()) return damaged("its header is no JSON");
  PURLIN_TRY(check_schema(*header, kBundleSchema, kBundleVersion));
  const auto second = take_line(&bytes, kMaxHeaderBytes);
  const Result<Json> signature = Json::parse(second.value_or(""));
  if (!signature.is_ok()) return damaged("its signature is no JSON");
  if (key != nullptr) PURLIN_TRY(check_signature(*first, *signature, *key));

  const auto plain_bytes = static_cast<std::uint64_t>((*header)["plain_bytes"].as_int(-1));
  const auto count = static_cast<std::uint64_t>((*header)["records"].as_int(-1));
  if (plain_bytes > kMaxPlainBytes || count > kMaxRecords)
    return damaged("its header states no usable sizes");
  if (bytes.size() != static_cast<std::uint64_t>((*header)["payload_bytes"].as_int(-1)))
    return damaged("it is cut short, or something was added");
  if (sha256_hex(bytes) != (*header)["payload_sha256"].as_string())
    return damaged("its contents do not have the checksum of its header");
  const Result<std::string> plain = gunzip(bytes, plain_bytes);
  if (!plain.is_ok()) return damaged(plain.status().message());

  Bundle bundle;
  bundle.signed_by = (*signature)["key"].as_string();
  bundle.written_at = (*header)["written_at"].as_string();
  bundle.damaged =
      static_cast<std::size_t>(std::max<std::int64_t>((*header)["damaged_records"].as_int(0), 0));
  bundle.tool_version = (*header)["tool_version"].as_string();
  std::string_view rest = *plain;
  std::uint64_t lines = 0;
  while (const auto line = take_line(&rest, rest.size())) {
    if (++lines > count) break;
    if (!take_record(*line, &bundle).is_ok()) return damaged("a record is no JSON");
  }
  if (lines != count || !rest.empty()) return damaged("it does not hold what its header counts");
  return bundle;
}

}  // namespace purlin::cache
