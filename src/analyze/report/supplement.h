// SPDX-License-Identifier: Apache-2.0
// What a profile lacks and its reader knows: which GPU it was, and what problem a kernel solved.
// Never overrides what was recorded. Pure functions over a profile. Failure: kInvalid says what was
// wrong with the text, kNotFound that nothing in the profile is meant.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"

#include <string_view>

namespace purlin::analyze {

// "V100-SXM2", "H200": a name of the GPU table, for the devices that have none.
Status name_gpu(Profile& profile, std::string_view gpu);

// "KERNEL=CLASS,DTYPE,DIMENSIONS": the problem of each kernel with KERNEL in its name that has
// none, e.g. "implicit_convolve=conv,f32,N=128,C=3,H=224,W=224,K=64,R=11,S=11,P=55,Q=55".
Status give_shape(Profile& profile, std::string_view text);

// Stall samples of kernels by name, as profile/import/ncu/stall_csv.h reads them, become counters
// of the rows of those kernels.
Status give_stalls(Profile& profile, const Profile& samples);

}  // namespace purlin::analyze
