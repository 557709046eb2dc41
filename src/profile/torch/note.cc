// SPDX-License-Identifier: Apache-2.0
#include "profile/torch/note.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "model/document.h"

#include <algorithm>
#include <tuple>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxNoteBytes = 64 << 10;
constexpr std::string_view kNotePrefix = "torch-", kNoteSuffix = ".note";

}  // namespace

Result<TorchNote> parse_torch_note(const std::string& text) {
  PURLIN_ASSIGN(const Json document, Json::parse(text, {kMaxNoteBytes, 8}));
  PURLIN_TRY(check_schema(document, "purlin.torch", 1));
  TorchNote note;
  note.pid = document["pid"].as_int();
  note.number = static_cast<int>(std::clamp<std::int64_t>(document["number"].as_int(), 0, 1 << 20));
  note.mode = document["mode"].as_string();
  note.reason = document["reason"].as_string();
  note.detail = document["detail"].as_string().substr(0, 400);
  note.torch = document["torch"].as_string().substr(0, 64);
  note.trace = document["trace"].as_string();
  note.flow = document["flow"].as_string();
  note.no_flow = document["no_flow"].as_string().substr(0, 400);
  note.start_ns = document["start_ns"].as_int();
  note.end_ns = std::max(note.start_ns, document["end_ns"].as_int());
  note.steps = std::max<std::int64_t>(0, document["steps"].as_int());
  note.optimizer_steps = std::max<std::int64_t>(0, document["optimizer_steps"].as_int());
  note.usual_step_ns = std::max(0.0, document["usual_step_ns"].as_double());
  note.step_after_ns = std::max(0.0, document["step_after_ns"].as_double());
  note.steps_after = std::max<std::int64_t>(0, document["steps_after"].as_int());
  note.cost_ns = std::max(0.0, document["cost_ns"].as_double());
  note.cuda = document["cuda"].as_bool();
  note.keeps_cupti = document["keeps_cupti"].as_bool(true);
  const auto is_path = [](const std::string& file) {
    return !file.empty() && base_name(file) != file;
  };
  if (note.pid <= 0 || is_path(note.trace) || is_path(note.flow))
    return error(Code::kCorrupt, "a note of the PyTorch hook without a process or with a path");
  return note;
}

std::vector<TorchNote> read_torch_notes(const std::string& spool) {
  std::vector<TorchNote> notes;
  const Result<std::vector<std::string>> names = list_directory(spool);
  if (!names.is_ok()) return notes;
  for (const std::string& name : *names) {
    if (!starts_with(name, kNotePrefix) || !ends_with(name, kNoteSuffix)) continue;
    const Result<std::string> text = read_file(join_path(spool, name), kMaxNoteBytes);
    if (!text.is_ok()) continue;
    if (Result<TorchNote> note = parse_torch_note(*text); note.is_ok())
      notes.push_back(std::move(note).value());
  }
  std::sort(notes.begin(), notes.end(), [](const TorchNote& a, const TorchNote& b) {
    return std::tie(a.start_ns, a.pid, a.number) < std::tie(b.start_ns, b.pid, b.number);
  });
  return notes;
}

}  // namespace purlin::profile
