// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/engine.h"

#include <unordered_set>

namespace purlin::store {
namespace {

using profile::wire::Decoder;
using profile::wire::Encoder;

constexpr const char* kRawInsert =
    "raw(sha256, bytes, begin_ns, end_ns, kind, kernel, node, build, job, keep_until_ns, kept_for, "
    "gone, version)";

}  // namespace

Status ClickhouseStore::add_raws(const std::vector<HashedBatch>& batches) {
  std::string list;
  for (const HashedBatch& hashed : batches)
    for (const RawPointer& raw : hashed.batch.raws)
      list += (list.empty() ? "" : ",") + sql_text(raw.sha256);
  if (list.empty()) return Status::ok();
  PURLIN_ASSIGN(const std::string rows,
                client().select(fmt::format(
                    "SELECT DISTINCT sha256 FROM {{db}}.raw WHERE sha256 IN ({})", list)));
  std::unordered_set<std::string> known;
  Decoder in(rows);
  while (!in.at_end() && !in.failed()) known.emplace(in.text());
  for (const HashedBatch& hashed : batches) {
    for (const RawPointer& raw : hashed.batch.raws) {
      if (!known.insert(raw.sha256).second) continue;
      const BatchRun& run = hashed.batch.runs[raw.run];
      PURLIN_TRY(put_raw({raw, hashed.batch.node, run.build, job_of(run.labels), 0, ""}, false));
    }
  }
  return Status::ok();
}

Status ClickhouseStore::put_raw(const RawInfo& info, bool gone) {
  Encoder row;
  row.text(info.pointer.sha256);
  row.fixed64(info.pointer.bytes);
  row.fixed64(static_cast<std::uint64_t>(info.pointer.begin_ns));
  row.fixed64(static_cast<std::uint64_t>(info.pointer.end_ns));
  for (const std::string* text :
       {&info.pointer.kind, &info.pointer.kernel, &info.node, &info.build, &info.job})
    row.text(*text);
  row.fixed64(static_cast<std::uint64_t>(info.keep_until_ns));
  row.text(info.kept_for);
  row.u8(gone ? 1 : 0);
  row.fixed64(next_version());
  return client().insert(kRawInsert, row.bytes());
}

Status ClickhouseStore::keep_raw(const std::string& sha256, std::int64_t until_ns,
                                 const std::string& why) {
  PURLIN_ASSIGN(const std::vector<RawInfo> all, reader_.raws({}));
  for (RawInfo info : all) {
    if (info.pointer.sha256 != sha256) continue;
    info.keep_until_ns = std::max(info.keep_until_ns, until_ns);
    info.kept_for = why;
    return put_raw(info, false);
  }
  return error(Code::kNotFound, "no raw profile has the address {}", sha256);
}

Status ClickhouseStore::forget_raw(const std::string& sha256) {
  PURLIN_ASSIGN(const std::vector<RawInfo> all, reader_.raws({}));
  for (const RawInfo& info : all)
    if (info.pointer.sha256 == sha256) return put_raw(info, true);
  return Status::ok();
}

Status ClickhouseStore::put_guard(const GuardResult& result) {
  Encoder row;
  row.text(result.id);
  row.fixed64(static_cast<std::uint64_t>(result.time_ns));
  for (const std::string* text : {&result.suite, &result.verdict, &result.build, &result.model})
    row.text(*text);
  row.varint(result.kernels.size());
  for (const std::string& kernel : result.kernels) row.text(kernel);
  row.text(result.document);
  return client().insert("guard(id, time_ns, suite, verdict, build, model, kernels, document)",
                         row.bytes());
}

}  // namespace purlin::store
