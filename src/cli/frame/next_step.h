// SPDX-License-Identifier: Apache-2.0
// The last line of a report for people: the one command to run next.
//
// Free functions. Words are quoted for a shell, and their control characters replaced.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

// A word that a POSIX shell reads as one.
std::string shell_word(std::string_view text);
// "next: purlin advise run.plprof". Words in capitals, such as SPEC, are for the reader to replace.
std::string next_step(const std::vector<std::string>& words);

}  // namespace purlin::cli
