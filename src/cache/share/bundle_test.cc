// SPDX-License-Identifier: Apache-2.0
#include "cache/share/bundle.h"

#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

std::vector<CacheRecord> some_records() {
  const CacheRecord first = make_record(sample_entry(1024)), second = make_record(sample_entry(9));
  return {first, second, make_record(new_status(first.id, EntryState::kDemoted, "it \"lost\""))};
}

SigningKey key_of(const std::string& secret) { return SigningKey::from_secret(secret).value(); }

TEST(Bundle, GivesBackWhatWentIn) {
  const auto records = some_records();
  const std::string bytes = encode_bundle(records, nullptr).value();
  EXPECT_TRUE(is_bundle(bytes));
  const Bundle bundle = decode_bundle(bytes, nullptr).value();
  ASSERT_EQ(bundle.records.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(bundle.records[i].id, records[i].id);
    EXPECT_EQ(bundle.records[i].kind, records[i].kind);
    EXPECT_EQ(bundle.records[i].payload, records[i].payload);
  }
  EXPECT_EQ(bundle.signed_by, "");
  EXPECT_FALSE(bundle.written_at.empty());
  EXPECT_NE(bytes, encode_bundle(records, nullptr).value()) << "names must not come twice";
  EXPECT_TRUE(decode_bundle(encode_bundle({}, nullptr).value(), nullptr)->records.empty());
}

TEST(Bundle, EveryFlippedOrMissingByteIsFound) {
  const std::string bytes = encode_bundle(some_records(), nullptr).value();
  const std::size_t header_end = bytes.find('\n');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(decode_bundle(bytes.substr(0, i), nullptr).is_ok()) << "cut at " << i;
    if (i < header_end) continue;  // the header holds words that nothing depends on
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(decode_bundle(changed, nullptr).is_ok()) << "byte " << i;
  }
  EXPECT_FALSE(decode_bundle(bytes + "x", nullptr).is_ok());
}

TEST(Bundle, SignaturesAreOfOneKeyAndAllBytes) {
  const SigningKey ours = key_of("0123456789abcdef"), theirs = key_of("fedcba9876543210");
  const std::string bytes = encode_bundle(some_records(), &ours).value();
  EXPECT_EQ(decode_bundle(bytes, &ours)->signed_by, ours.id());
  EXPECT_TRUE(decode_bundle(bytes, nullptr).is_ok()) << "a signature is only checked on request";
  const auto refused = [](const std::string& text, const SigningKey& key, const char* why) {
    const Result<Bundle> bundle = decode_bundle(text, &key);
    ASSERT_FALSE(bundle.is_ok()) << why;
    EXPECT_EQ(bundle.status().code(), Code::kInvalid);
    EXPECT_NE(bundle.status().message().find(why), std::string::npos) << bundle.status().message();
  };
  refused(bytes, theirs, "is signed with key");
  refused(encode_bundle(some_records(), nullptr).value(), ours, "is not signed");
  std::string changed = bytes;
  changed.replace(changed.find("\"nonce\":\"") + 9, 1, "z");
  refused(changed, ours, "signature is wrong");
}

TEST(Bundle, KeysAreLongEnoughAndSayNothing) {
  EXPECT_FALSE(SigningKey::from_secret("short").is_ok());
  TemporaryDirectory folder;
  ASSERT_TRUE(write_atomic(folder.file("key"), "0123456789abcdef\n").is_ok());
  const SigningKey key = SigningKey::load(folder.file("key")).value();
  EXPECT_EQ(key.id(), key_of("0123456789abcdef").id());
  EXPECT_EQ(key.id().size(), 16u);
  EXPECT_FALSE(SigningKey::load(folder.file("none")).is_ok());
}

TEST(Bundle, NewerOnesAndForeignRecordsAreNamedOrCounted) {
  std::string bytes = encode_bundle(some_records(), nullptr).value();
  std::string newer = bytes;
  newer.replace(newer.find("bundle/1"), 8, "bundle/2");
  const Status status = decode_bundle(newer, nullptr).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("newer Purlin"), std::string::npos);
  EXPECT_EQ(decode_bundle("{\"schema\":\"purlin.report/1\"}", nullptr).status().code(),
            Code::kInvalid);

  auto records = some_records();
  records[0].id[0] = records[0].id[0] == '0' ? '1' : '0';  // not its contents' id
  const Bundle bundle = decode_bundle(encode_bundle(records, nullptr).value(), nullptr).value();
  EXPECT_EQ(bundle.refused, 1u);
  EXPECT_EQ(bundle.records.size(), 2u);
}

}  // namespace
}  // namespace purlin::cache
