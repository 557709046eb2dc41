// SPDX-License-Identifier: Apache-2.0
// The few bits of NVIDIA's machine code that Purlin reads: which instruction is at an offset.
// Volta and later: 16 bytes each, the operation in the lowest twelve bits. Pure functions over a
// module's bytes (a cubin, an ELF file), which may be damaged; offsets are the function's own.
#pragma once

#include <cstdint>
#include <string_view>

namespace purlin::profile {

inline constexpr std::uint64_t kInstructionBytes = 16;

// Whether the instruction waits at a block's barrier (BAR). False without an instruction.
bool is_barrier(std::string_view module, std::string_view function, std::uint64_t offset);

// The place of the sampled instruction. A warp at a barrier goes on for an instruction
// or two before it stops, and is sampled there: for samples that wait at one, this is the barrier.
std::uint64_t waiting_at(std::string_view module, std::string_view function, std::uint64_t offset);

}  // namespace purlin::profile
