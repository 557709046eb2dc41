// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/jax_programs.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "model/document.h"
#include "profile/import/input.h"
#include "profile/jax/kernel_match.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <vector>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxJaxNote = 64 << 10, kMaxJaxProcesses = 64;
// Of all processes together, unpacked.
constexpr std::size_t kMaxHloText = std::size_t{256} << 20;
constexpr std::size_t kMaxScheduled = 1'000'000;  // launches in the schedules of a process

std::vector<JaxNote> read_jax_notes(const std::string& spool) {
  std::vector<JaxNote> notes;
  for (const std::string& name : list_directory(spool).value_or({})) {
    if (!starts_with(name, "jax-") || !ends_with(name, ".note")) continue;
    const Result<std::string> text = read_file(join_path(spool, name), kMaxJaxNote);
    if (!text.is_ok()) continue;
    // One of each process: two would count its programs twice.
    if (Result<JaxNote> note = parse_jax_note(*text);
        note.is_ok() && name == fmt::format("jax-{}.note", note->pid))
      notes.push_back(std::move(note).value());
  }
  std::sort(notes.begin(), notes.end(),
            [](const JaxNote& a, const JaxNote& b) { return a.pid < b.pid; });
  return notes;
}

// What could be decoded: a process that was killed leaves a file without an end.
std::string read_text(const std::string& path, std::size_t most) {
  std::string text;
  Result<Input> input = Input::open(path);
  if (!input.is_ok()) return text;
  constexpr std::size_t kPiece = 1 << 20;
  while (text.size() < most) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    const Result<std::size_t> got = input->read(text.data() + had, kPiece);
    text.resize(had + got.value_or(0));
    if (got.value_or(0) == 0) break;
  }
  return text;
}

void jax_note(Profile& profile, const char* cause, std::string text, double count = 0,
              double seconds = 0) {
  profile.coverage.notes.push_back({cause, std::move(text), count, seconds});
}

std::string share_of(double part, double whole) {
  return fmt::format("{:.0f} %", whole > 0 ? 100 * part / whole : 0.0);
}

class Programs {
 public:
  explicit Programs(const std::string& spool) : spool_(spool) {}

  void read(const JaxNote& note) {
    if (processes.size() >= kMaxJaxProcesses || bytes_ >= kMaxHloText) {
      left_out += static_cast<double>(note.modules);
      return;
    }
    const std::string path = join_path(spool_, fmt::format("jax-{}.hlo.gz", note.pid));
    texts_.push_back(read_text(path, kMaxHloText - bytes_));
    bytes_ += texts_.back().size();
    ProcessPrograms& process = processes.emplace_back();
    process.pid = note.pid;
    std::size_t scheduled = 0;
    for (const hlo::Module& module : hlo::read_modules(texts_.back())) {
      if (scheduled >= kMaxScheduled) {
        ++left_out;
        continue;
      }
      process.programs.push_back(hlo::program_of(module));
      scheduled += process.programs.back().order.size();
      ++modules;
    }
  }

  std::vector<ProcessPrograms> processes;
  double modules = 0, left_out = 0;

 private:
  const std::string& spool_;
  std::deque<std::string> texts_;  // the programs point into them
  std::size_t bytes_ = 0;
};

// XLA times candidates for each product and convolution, and keeps the fastest.
void note_autotuning(Profile& profile, double compiled) {
  if (compiled <= 0) return;
  jax_note(profile, "jax_autotuned",
           "XLA timed kernels for products and convolutions while Purlin recorded, which made it "
           "keep slower ones in measured runs. A run with a compilation cache "
           "(JAX_COMPILATION_CACHE_DIR) that a run without Purlin has filled times none",
           compiled);
}

void add_match(Profile& profile, const Programs& programs, double cost_ns, double compiled) {
  const ProgramMatch match = match_programs(profile, programs.processes);
  std::string text = fmt::format(
      "ops and shapes are from the texts of {} that XLA compiled, for {} of the program's time; {} "
      "of the kernels' time has an op",
      counted(static_cast<std::int64_t>(programs.modules), "program"), format_ns(cost_ns),
      share_of(match.with_op_ns, match.total_ns));
  if (match.heavy_ns > 0)
    text += fmt::format(", and {} of the time of these programs' products and convolutions a shape",
                        share_of(match.heavy_with_shape_ns, match.heavy_ns));
  jax_note(profile, "jax_programs", std::move(text), match.launches, cost_ns * 1e-9);
  if (match.implausible > 0)
    jax_note(profile, "jax_implausible",
             "launches were too fast for the program that their order points to, or of another "
             "type: they have no op",
             match.implausible);
  if (match.heavy_ns > 0) note_autotuning(profile, compiled);
}

}  // namespace

Result<JaxNote> parse_jax_note(const std::string& text) {
  PURLIN_ASSIGN(const Json document, Json::parse(text, {kMaxJaxNote, 8}));
  PURLIN_TRY(check_schema(document, "purlin.jax", 1));
  JaxNote note;
  note.pid = document["pid"].as_int();
  note.modules = std::max<std::int64_t>(0, document["modules"].as_int());
  note.left_out = std::max<std::int64_t>(0, document["left_out"].as_int());
  note.compiled = std::max<std::int64_t>(0, document["compiled"].as_int());
  note.reason = document["reason"].as_string().substr(0, 64);
  note.detail = document["detail"].as_string().substr(0, 400);
  note.jax = document["jax"].as_string().substr(0, 64);
  note.cost_ns = std::max(0.0, document["cost_ns"].as_double());
  if (note.pid <= 0) return error(Code::kCorrupt, "a note of the JAX hook without a process");
  return note;
}

void add_jax_programs(Profile& profile, const std::string& spool) {
  Programs programs(spool);
  double cost_ns = 0, compiled = 0;
  for (const JaxNote& note : read_jax_notes(spool)) {
    cost_ns += note.cost_ns;
    compiled += static_cast<double>(note.compiled);
    if (!note.reason.empty())
      jax_note(profile, "jax_no_programs",
               fmt::format("the programs of JAX in process {} were not all read: {}", note.pid,
                           note.detail.empty() ? note.reason : note.detail));
    programs.left_out += static_cast<double>(note.left_out);
    programs.read(note);
  }
  if (programs.left_out > 0)
    jax_note(profile, "jax_programs_left_out",
             "compiled programs of JAX were not read, as reading takes the program's time; their "
             "kernels have no ops",
             programs.left_out);
  profile.coverage.overhead_ns += cost_ns;
  if (programs.modules > 0) add_match(profile, programs, cost_ns, compiled);
}

}  // namespace purlin::profile
