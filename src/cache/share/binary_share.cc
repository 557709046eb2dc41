// SPDX-License-Identifier: Apache-2.0
#include "cache/share/binary_share.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"

#include <algorithm>
#include <set>
#include <vector>

namespace purlin::cache {
namespace {

constexpr std::string_view kBinaries = "binaries/", kBinarySuffix = ".bin";
constexpr std::string_view kSigned = "purlin.signed-binary/1 ", kBinary = "purlin.binary/1 ";
constexpr std::size_t kKeyDigits = 32, kIdDigits = 16, kSignatureDigits = 64;

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// SCHEMA SIGNATURE\n, then a file of the binary cache; "" for other bytes.
std::string_view file_in(std::string_view bytes) {
  const std::size_t head = kSigned.size() + kSignatureDigits + 1;
  if (bytes.size() <= head || !starts_with(bytes, kSigned) || bytes[head - 1] != '\n') return {};
  return bytes.substr(head);
}

// SCHEMA CHECKSUM\n, then what the checksum is of.
bool is_whole(std::string_view file) {
  const std::size_t end = file.find('\n');
  return starts_with(file, kBinary) && end != file.npos &&
         file.substr(kBinary.size(), end - kBinary.size()) == hash128_hex(file.substr(end + 1));
}

// The same time for each wrong signature.
bool is_same(std::string_view a, std::string_view b) {
  unsigned char different = a.size() != b.size();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

std::string path_in(const std::string& directory, const std::string& key) {
  return join_path(join_path(directory, key.substr(0, 2)), key + std::string(kBinarySuffix));
}

// Of the files in a folder of the binary cache, sorted.
Result<std::vector<std::string>> keys_in(const std::string& directory) {
  std::vector<std::string> keys;
  if (!is_directory(directory)) return keys;
  PURLIN_ASSIGN(const std::vector<std::string> folders, list_directory(directory));
  for (const std::string& folder : folders) {
    if (!is_hex(folder, 2)) continue;
    PURLIN_ASSIGN(const std::vector<std::string> files,
                  list_directory(join_path(directory, folder)));
    for (const std::string& file : files)
      if (ends_with(file, kBinarySuffix) && is_hex(file.substr(0, file.find('.')), kKeyDigits))
        keys.push_back(file.substr(0, kKeyDigits));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace

bool is_binary_object(std::string_view key) {
  if (!starts_with(key, kBinaries) || !ends_with(key, kBinarySuffix)) return false;
  key.remove_prefix(kBinaries.size());
  key.remove_suffix(std::min(key.size(), kBinarySuffix.size()));
  return key.size() == kIdDigits + 1 + kKeyDigits && key[kIdDigits] == '-' &&
         is_hex(key.substr(0, kIdDigits), kIdDigits) &&
         is_hex(key.substr(kIdDigits + 1), kKeyDigits);
}

Status check_binary_object(std::string_view bytes) {
  if (is_whole(file_in(bytes))) return Status::ok();
  return error(Code::kInvalid,
               "this is no signed file of a cache of compiled kernels, or not whole");
}

std::string BinaryShare::object_of(const std::string& key) const {
  return fmt::format("{}{}-{}{}", kBinaries, key_.id(), key, kBinarySuffix);
}

std::string BinaryShare::signature(const std::string& key, std::string_view file) const {
  return key_.sign(fmt::format("{}{}\n{}", kSigned, key, file));
}

Result<BinaryReport> BinaryShare::push(const std::string& directory, std::uint64_t limit) {
  PURLIN_ASSIGN(const std::vector<std::string> keys, keys_in(directory));
  PURLIN_ASSIGN(const std::vector<blobs::BlobInfo> listed, store_.list(std::string(kBinaries)));
  std::set<std::string> there;
  for (const blobs::BlobInfo& object : listed) there.insert(object.key);
  BinaryReport report;
  for (const std::string& key : keys) {
    if (there.contains(object_of(key))) {
      ++report.known;
      continue;
    }
    const Result<std::string> file = read_file(path_in(directory, key), kMaxSharedBinary / 2);
    if (!file.is_ok() && file.status().code() == Code::kNotFound) continue;  // it was pruned
    if (!file.is_ok() || report.bytes + file->size() > limit) {
      ++report.large;
      continue;
    }
    if (!is_whole(*file)) {
      ++report.refused;
      continue;
    }
    const std::string object = fmt::format("{}{}\n{}", kSigned, signature(key, *file), *file);
    PURLIN_ASSIGN(const blobs::Put put, store_.put_if_absent(object_of(key), object));
    ++(put == blobs::Put::kStored ? report.moved : report.known);
    if (put == blobs::Put::kStored) report.bytes += object.size();
  }
  return report;
}

Result<BinaryReport> BinaryShare::pull(const std::string& directory, std::uint64_t limit) {
  PURLIN_ASSIGN(const std::vector<blobs::BlobInfo> listed, store_.list(std::string(kBinaries)));
  PURLIN_TRY(make_private_directory(directory));
  BinaryReport report;
  for (const blobs::BlobInfo& info : listed) {
    if (!is_binary_object(info.key)) continue;
    const std::string key =
        info.key.substr(info.key.size() - kBinarySuffix.size() - kKeyDigits, kKeyDigits);
    if (info.key != object_of(key)) continue;  // of another secret
    if (file_exists(path_in(directory, key))) {
      ++report.known;
      continue;
    }
    if (info.size > kMaxSharedBinary || report.bytes + info.size > limit) {
      ++report.large;
      continue;
    }
    const Result<blobs::Blob> blob = store_.get(info.key, kMaxSharedBinary);
    if (!blob.is_ok() && blob.status().code() == Code::kNotFound) continue;  // it was removed
    PURLIN_TRY(blob.status());
    const std::string_view bytes = blob->bytes, file = file_in(bytes);
    if (!is_whole(file) ||
        !is_same(bytes.substr(kSigned.size(), kSignatureDigits), signature(key, file))) {
      ++report.refused;
      continue;
    }
    PURLIN_TRY(make_directories(parent_path(path_in(directory, key))));
    PURLIN_TRY(write_atomic(path_in(directory, key), file));
    ++report.moved;
    report.bytes += bytes.size();
  }
  return report;
}

Result<std::size_t> remove_old_binaries(blobs::BlobStore& store, double seconds, Clock& clock) {
  PURLIN_ASSIGN(const std::vector<blobs::BlobInfo> listed, store.list(std::string(kBinaries)));
  std::size_t removed = 0;
  for (const blobs::BlobInfo& info : listed) {
    const double age_s = static_cast<double>(clock.wall_ns() - info.modified_ns) * 1e-9;
    if (!is_binary_object(info.key) || info.modified_ns == 0 || age_s < seconds) continue;
    PURLIN_TRY(store.remove(info.key));
    ++removed;
  }
  return removed;
}

}  // namespace purlin::cache
