// SPDX-License-Identifier: Apache-2.0
#include "cache/store/lost_records.h"

#include "base/files.h"
#include "base/hash.h"
#include "model/document.h"

namespace purlin::cache::lost_records {
namespace {

constexpr int kLostVersion = 1;
constexpr std::size_t kMaxLostBytes = std::size_t{256} << 20;

std::string path_in(const std::string& directory) { return join_path(directory, "entries.lost"); }

}  // namespace

std::vector<LostRecord> load(const std::string& directory) {
  std::vector<LostRecord> lost;
  const Result<std::string> text = read_file(path_in(directory), kMaxLostBytes);
  if (!text.is_ok()) return lost;
  const Result<Json> document = Json::parse(*text, {.max_bytes = kMaxLostBytes});
  if (!document.is_ok() || !check_schema(*document, "purlin.cache-lost", kLostVersion).is_ok())
    return lost;
  for (const Json& item : (*document)["records"].items())
    // A name that is none would never be found, and so stay lost for ever.
    if (const Id128 id = Id128::parse(item["record"].as_string()); id != Id128())
      lost.push_back({id.hex(), static_cast<std::uint64_t>(item["offset"].as_int(0))});
  return lost;
}

Status save(const std::string& directory, const std::vector<LostRecord>& lost) {
  Json document =
      new_document(fmt::format("purlin.cache-lost/{}", kLostVersion), host_environment());
  Json records = Json::array();
  for (const LostRecord& record : lost)
    records.push(Json::object({{"record", record.record}, {"offset", record.offset}}));
  document.set("records", std::move(records));
  return write_atomic(path_in(directory), document.dump() + "\n");
}

Status remove(const std::string& directory) { return remove_file(path_in(directory)); }

}  // namespace purlin::cache::lost_records
