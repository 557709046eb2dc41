// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/opencl/queue_properties.h"

#include <gtest/gtest.h>

#include <vector>

namespace purlin::profile::capture::opencl {
namespace {

using List = std::vector<cl_queue_properties>;

// The changed list, up to and including its 0.
List changed(const List& list) {
  const ProfiledProperties profiled(list.empty() ? nullptr : list.data());
  EXPECT_TRUE(profiled.can_add());
  EXPECT_FALSE(profiled.asked());
  List result;
  for (std::size_t i = 0; i == 0 || result.back() != 0; i += 2) {
    result.push_back(profiled.list()[i]);
    if (result.back() != 0) result.push_back(profiled.list()[i + 1]);
    if (result.size() > 64) break;
  }
  return result;
}

TEST(ProfiledProperties, AddTheBitToAnyList) {
  const List only_profiling = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  EXPECT_EQ(changed({}), only_profiling);
  EXPECT_EQ(changed({0}), only_profiling);
  EXPECT_EQ(changed({CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0}),
            (List{CL_QUEUE_PROPERTIES,
                  CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE, 0}));
  EXPECT_EQ(changed({CL_QUEUE_SIZE, 1024, 0}),
            (List{CL_QUEUE_SIZE, 1024, CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}));
}

TEST(ProfiledProperties, LeaveSomeListsToTheDriver) {
  const List asked = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  EXPECT_TRUE(ProfiledProperties(asked.data()).asked());
  const List on_device = {CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0};
  EXPECT_FALSE(ProfiledProperties(on_device.data()).can_add());
  List full(60, CL_QUEUE_SIZE);
  full.push_back(0);
  EXPECT_TRUE(ProfiledProperties(full.data()).can_add());
  List too_long(62, CL_QUEUE_SIZE);
  too_long.push_back(0);
  EXPECT_FALSE(ProfiledProperties(too_long.data()).can_add());
}

TEST(ProfiledProperties, TheProgramDoesNotSeeTheBit) {
  cl_command_queue_properties bits =
      CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  remove_profiling_bit(CL_QUEUE_REFERENCE_COUNT, sizeof bits, &bits);
  EXPECT_NE(bits & CL_QUEUE_PROFILING_ENABLE, 0u);
  remove_profiling_bit(CL_QUEUE_PROPERTIES, sizeof bits, nullptr);
  remove_profiling_bit(CL_QUEUE_PROPERTIES, sizeof bits, &bits);
  EXPECT_EQ(bits, cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE});
  List list = {CL_QUEUE_SIZE, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES,
               CL_QUEUE_PROFILING_ENABLE, 0};
  remove_profiling_bit(CL_QUEUE_PROPERTIES_ARRAY, list.size() * sizeof list[0], list.data());
  EXPECT_EQ(list, (List{CL_QUEUE_SIZE, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES, 0, 0}));
}

}  // namespace
}  // namespace purlin::profile::capture::opencl
