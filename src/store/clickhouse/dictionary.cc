// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/dictionary.h"

#include "base/hash.h"

#include <algorithm>

namespace purlin::store {
namespace {

constexpr std::size_t kMaxFields = 4;
constexpr std::size_t kMaxKnown = 4'000'000;
constexpr std::size_t kMaxIdsAtOnce = 100'000;

}  // namespace

std::uint64_t entry_id(Kind kind, std::string_view text) {
  const std::uint64_t id = hash64(std::string(1, static_cast<char>(kind)) + std::string(text));
  return id > kCoverageKernel ? id : id + 2;
}

const char* column_of(Kind kind) {
  static constexpr const char* kColumns[] = {"kernel", "problem", "platform",
                                             "build",  "job",     "unit"};
  return kColumns[static_cast<std::size_t>(kind)];
}

std::string filter_sql(const Client& client, const Filter& filter, const std::vector<Kind>& kinds) {
  std::string sql;
  for (const Kind kind : kinds) {
    std::string asked;
    for (int i = 0; i < kDimensions; ++i) {
      const auto dimension = static_cast<Dimension>(i);
      const Place place = place_of(dimension);
      if (place.kind == kind && filter[dimension])
        asked += fmt::format(" AND f{} = {}", place.field + 1, sql_text(*filter[dimension]));
    }
    if (asked.empty()) continue;
    sql += fmt::format(" AND {} {}IN (SELECT id FROM {{db}}.dict WHERE kind = {}{})",
                       column_of(kind), client.target().cluster.empty() ? "" : "GLOBAL ",
                       static_cast<int>(kind), asked);
  }
  return sql;
}

Status Dictionary::write(Client& client, const std::vector<BatchLabels::Entry>& entries) {
  if (written_.size() > kMaxKnown) written_.clear();
  profile::wire::Encoder rows;
  std::vector<std::uint64_t> ids;
  for (const auto& [kind, text] : entries) {
    const std::uint64_t id = entry_id(kind, text);
    if (written_.count(id) > 0) continue;
    ids.push_back(id);
    Fields fields = split_fields(text);
    fields.resize(kMaxFields);
    rows.u8(static_cast<std::uint8_t>(kind));
    rows.fixed64(id);
    for (const std::string& field : fields) rows.text(field);
  }
  PURLIN_TRY(client.insert("dict(kind, id, f1, f2, f3, f4)", rows.bytes()));
  written_.insert(ids.begin(), ids.end());
  return Status::ok();
}

Status Dictionary::read(Client& client, Kind kind, const std::vector<std::uint64_t>& ids) {
  if (known_.size() > kMaxKnown) known_.clear();
  std::vector<std::uint64_t> wanted;
  for (const std::uint64_t id : ids)
    if (known_.count(id) == 0) wanted.push_back(id);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (std::size_t from = 0; from < wanted.size(); from += kMaxIdsAtOnce) {
    std::string list;
    const std::size_t to = std::min(wanted.size(), from + kMaxIdsAtOnce);
    for (std::size_t i = from; i < to; ++i)
      list += (i > from ? "," : "") + std::to_string(wanted[i]);
    PURLIN_ASSIGN(const std::string rows,
                  client.select(fmt::format("SELECT id, f1, f2, f3, f4 FROM {{db}}.dict WHERE kind "
                                            "= {} AND id IN ({})",
                                            static_cast<int>(kind), list)));
    profile::wire::Decoder in(rows);
    while (!in.at_end() && !in.failed()) {
      const std::uint64_t id = in.fixed64();
      Fields fields;
      for (std::size_t i = 0; i < kMaxFields; ++i) fields.emplace_back(in.text());
      known_[id] = std::move(fields);
    }
  }
  for (const std::uint64_t id : wanted)
    if (known_.count(id) == 0)
      return error(Code::kCorrupt, "{}: table dict lacks entry {} of column {}",
                   client.target().url, id, column_of(kind));
  return Status::ok();
}

}  // namespace purlin::store
