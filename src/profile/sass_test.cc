// SPDX-License-Identifier: Apache-2.0
#include "profile/sass.h"

#include "profile/sass_for_test.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace purlin::profile {
namespace {

// UIADD3, BAR, UISETP, BRA, four more
const std::string kModule = module_of({0x890, 0xb1d, 0xc0c, 0x947, 0x20b, 0x94d, 0xb82, 0x986});

TEST(Sass, FindsBarriers) {
  EXPECT_FALSE(is_barrier(kModule, "f", 0));
  EXPECT_TRUE(is_barrier(kModule, "f", 16));
  EXPECT_FALSE(is_barrier(kModule, "f", 8));   // amid an instruction
  EXPECT_FALSE(is_barrier(kModule, "g", 16));  // no such function
  EXPECT_FALSE(is_barrier(kModule, "f", 128));
}

TEST(Sass, AWarpAtABarrierIsSampledBehindIt) {
  EXPECT_EQ(waiting_at(kModule, "f", 32), 16u);
  EXPECT_EQ(waiting_at(kModule, "f", 16), 16u);
  EXPECT_EQ(waiting_at(kModule, "f", 48), 16u);  // as an H200 reported for tests/gpu/stalls.cu
  EXPECT_EQ(waiting_at(kModule, "f", 112), 112u);
  EXPECT_EQ(waiting_at(kModule, "f", 0), 0u);
  EXPECT_EQ(waiting_at(kModule, "f", 1 << 20), 1u << 20);
}

TEST(Sass, DamagedModulesHaveNoInstructions) {
  for (std::size_t length = 0; length < kModule.size(); ++length)
    EXPECT_FALSE(is_barrier(kModule.substr(0, length), "f", 16));
  std::string wild = kModule;
  wild.replace(wild.size() - sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset), 8, 8, '\xff');
  EXPECT_FALSE(is_barrier(wild, "f", 16));
}

}  // namespace
}  // namespace purlin::profile
