// SPDX-License-Identifier: Apache-2.0
// The texts of --help, at most 100 columns wide, or as a narrower terminal is. Examples keep their
// lines. Pure functions; no failure.
#pragma once

#include "cli/help/page.h"

namespace purlin::cli {

constexpr std::size_t kHelpColumns = 100;

std::string verb_help(const Page& page, std::size_t columns = kHelpColumns);
// Of every verb, or of the verbs of a group; "" for a group that does not exist.
std::string overview_help(const Manual& manual, std::string_view group = "");

}  // namespace purlin::cli
