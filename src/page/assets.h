// SPDX-License-Identifier: Apache-2.0
// The page's style and scripts (web/dist), embedded at build time by cmake/EmbedPage.cmake, and
// their SHA-256 in hexadecimal. kMoreScript is the part of the page's script that its first view
// does not need.
#pragma once

#include <string_view>

namespace purlin::page {

extern const std::string_view kStyle, kScript, kMoreScript, kFleetScript;
extern const std::string_view kStyleSha256, kScriptSha256, kMoreSha256, kFleetSha256;

}  // namespace purlin::page
