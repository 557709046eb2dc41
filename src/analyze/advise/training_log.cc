// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/training_log.h"

#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace purlin::analyze {
namespace {

constexpr double kManySkipped = 0.05;  // of the lines

bool has_word(std::string_view text, std::string_view word) {
  const auto letter = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; ++at)
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

// The first number after a word, with no other word between them than "to", "is", "is now".
std::optional<double> number_after(std::string_view line, std::string_view word) {
  constexpr std::string_view kOfNumbers = "0123456789.";
  constexpr std::size_t kNear = 12;
  for (std::size_t at = 0; (at = line.find(word, at)) != std::string_view::npos; ++at) {
    const std::size_t from = at + word.size();
    const std::size_t begin = line.find_first_of("0123456789", from);
    if (begin == std::string_view::npos || begin - from > kNear) continue;
    std::size_t end = std::min(line.find_first_not_of(kOfNumbers, begin), line.size());
    if (end + 1 < line.size() && line[end] == 'e' && (line[end + 1] == '+' || line[end + 1] == '-'))
      end = std::min(line.find_first_not_of(kOfNumbers, end + 2), line.size());
    std::string_view number = line.substr(begin, end - begin);
    while (ends_with(number, ".")) number.remove_suffix(1);
    if (const auto value = parse_double(number); value && *value > 0) return value;
  }
  return std::nullopt;
}

std::optional<double> scale_in(std::string_view line) {
  for (std::string_view word : {"reducing loss scale to", "reducing to", "scale"})
    if (const auto value = number_after(line, word)) return value;
  return std::nullopt;
}

bool skips(std::string_view line) {
  for (std::string_view words : {"skipping step", "skipped step", "step skipped", "overflow",
                                 "\"skipped\": true", "found_inf=1", "found_inf: 1"})
    if (line.find(words) != std::string_view::npos) return true;
  const bool grads =
      line.find("grad") != std::string_view::npos || line.find("loss") != std::string_view::npos;
  return grads && (has_word(line, "inf") || has_word(line, "nan") || has_word(line, "infinity"));
}

}  // namespace

TrainingLog read_training_log(std::string_view text) {
  TrainingLog out;
  std::size_t said = 0, reduced = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::transform(line.begin(), line.end(), line.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::optional<double> scale = scale_in(line);
    const bool skip = skips(line);
    out.lines += scale || skip ? 1 : 0;
    said += skip ? 1 : 0;
    if (!scale) continue;
    // A message about a skipped step names the scale after it; before the first it was twice that.
    const bool lowers = line.find("reducing") != std::string::npos;
    if (out.first_scale == 0) out.first_scale = lowers ? 2 * *scale : *scale;
    if (out.last_scale > 0 ? *scale < out.last_scale : lowers) ++reduced;
    out.last_scale = *scale;
  }
  // A log may name the step, or the scale after it, or both, in one line or in two.
  out.skipped = std::max(said, reduced);
  return out;
}

std::string to_text(const TrainingLog& log) {
  if (log.lines == 0) return "";
  std::string out = counted(static_cast<double>(log.skipped), "skipped step");
  if (log.first_scale > 0)
    out += fmt::format(", scale {:.10g} -> {:.10g}", log.first_scale, log.last_scale);
  if (log.skipped == 0) return out;
  out += ": a step whose gradients are not finite changes no weight, and lowers the scale";
  if (static_cast<double>(log.skipped) > kManySkipped * static_cast<double>(log.lines))
    out += "; that many are lost work: bfloat16 needs no scale";
  return out;
}

}  // namespace purlin::analyze
