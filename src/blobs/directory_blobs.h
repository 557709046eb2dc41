// SPDX-License-Identifier: Apache-2.0
// Objects as files of a directory, which may be on a network file system.
//
// A file is whole or absent: it is written under a temporary name, synced, and linked or renamed to
// its place. Swaps take turns under `.lock` in the directory. They wait for it for a limited time
// (kUnavailable). A file that is written once needs no lock where the file system has hard links or
// RENAME_NOREPLACE, and readers never need one. The tag is the contents' SHA-256.
#pragma once

#include "base/time.h"
#include "blobs/blob_store.h"

namespace purlin::blobs {

// A swap takes milliseconds, or as long as a slow disk's sync. A process that holds the lock for
// longer hangs, or holds it on purpose. `clock`, which measures the wait, outlives the store.
std::unique_ptr<BlobStore> make_directory_blobs(std::string directory, double longest_wait_s = 5,
                                                Clock& clock = system_clock());

}  // namespace purlin::blobs
