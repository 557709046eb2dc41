// SPDX-License-Identifier: Apache-2.0
// Completion scripts: verbs, options, values of options, files. Pure functions; no failure.
#pragma once

#include "cli/help/page.h"

namespace purlin::cli {

std::string bash_completion(const Manual& manual);
std::string zsh_completion(const Manual& manual);
std::string fish_completion(const Manual& manual);

// `text` as one word of a POSIX shell, in single quotes.
std::string shell_quoted(std::string_view text);
// "cache get" -> {"cache", …}: the first words of all verbs, each once, with their summaries.
std::vector<Choice> first_words(const Manual& manual);
// The second words of a group.
std::vector<Choice> second_words(const Manual& manual, std::string_view group);

}  // namespace purlin::cli
