// SPDX-License-Identifier: Apache-2.0
// PURLIN_NEED_TOOLKIT: a test that needs a part of the CUDA toolkit is skipped where that part is
// missing, unless the machine is known to have a toolkit (PURLIN_EXPECT_CUDA_TOOLKIT, which ./dev
// test sets): there the test fails, so that it cannot stay away unnoticed. For tests only.
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
