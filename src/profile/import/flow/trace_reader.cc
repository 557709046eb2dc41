// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/trace_reader.h"

#include "base/json/json.h"
#include "base/json/json_pieces.h"
#include "base/text.h"
#include "profile/import/flow/node_reader.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::flow {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{2} << 30;

// "1.1.1-chakra.0.0.4": 1.0 lacks strides.
Status check_document(const std::string& rest) {
  constexpr std::string_view kNoTrace =
      "no execution trace of PyTorch; torch.profiler.ExecutionTraceObserver writes one";
  const Result<Json> document = Json::parse(rest, {kMaxNodeBytes, kMaxDepth});
  if (!document.is_ok()) return error(Code::kInvalid, "{}", kNoTrace);
  const std::string& schema = (*document)["schema"].as_string();
  if (schema.empty() || !(*document)["nodes"].is_array())
    return error(Code::kInvalid, "{}", kNoTrace);
  if (starts_with(schema, "1.0"))
    return error(Code::kInvalid,
                 "an execution trace of schema {}, which lacks the strides of tensors; record it "
                 "with a newer PyTorch",
                 schema.substr(0, 40));
  return Status::ok();
}

}  // namespace

Result<ExecutionTrace> read_execution_trace(Input& input) {
  NodeReader reader;
  std::size_t taken = 0;
  JsonPieces pieces(
      {"nodes"},
      [&](std::string_view piece) {
        const Status status = reader.add(piece);
        ++taken;
        return status.is_ok() ? status : status.with_context(fmt::format("node {}", taken));
      },
      kMaxNodeBytes);
  std::vector<char> part(std::size_t{1} << 18);
  while (true) {
    PURLIN_ASSIGN(const std::size_t got, input.read(part.data(), part.size()));
    if (got == 0) break;
    if (input.offset() > kMaxBytes)
      return error(Code::kInvalid,
                   "more than {} MiB of an execution trace; record fewer steps: three are enough",
                   kMaxBytes >> 20);
    PURLIN_TRY(pieces.add({part.data(), got}));
  }
  PURLIN_ASSIGN(const std::string rest, pieces.rest());
  PURLIN_TRY(check_document(rest));
  if (!pieces.has_end())
    return error(Code::kCorrupt,
                 "an execution trace that is cut at byte {}; stop the observer and unregister it "
                 "before the program ends",
                 input.offset());
  return reader.finish();
}

}  // namespace purlin::profile::flow
