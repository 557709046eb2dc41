// SPDX-License-Identifier: Apache-2.0
// The constants of the worker protocol that both ends use (docs/formats/worker.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace purlin::measure {

constexpr std::int64_t kProtocol = 1;
constexpr std::size_t kMaxRequestBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxReplyBytes = std::size_t{16} << 20;  // a library's space is the longest
constexpr std::int64_t kMaxBenches = 1024;

}  // namespace purlin::measure
