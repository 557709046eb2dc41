// SPDX-License-Identifier: Apache-2.0
// PURLIN_NEED_TOOLKIT: skips a test if a part of the CUDA toolkit is missing. On a machine that is
// known to have the toolkit the test fails instead (PURLIN_EXPECT_CUDA_TOOLKIT, set by ./dev test),
// so a missing part is noticed. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#define PURLIN_NEED_TOOLKIT(here, what)                                            \
  do {                                                                             \
    if (!(here)) {                                                                 \
      if (std::getenv("PURLIN_EXPECT_CUDA_TOOLKIT") != nullptr)                    \
        FAIL() << (what) << " is missing, though this machine has CUDA's toolkit"; \
      GTEST_SKIP() << "no " << (what) << " on this machine";                       \
    }                                                                              \
  } while (false)
