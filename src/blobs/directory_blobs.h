// SPDX-License-Identifier: Apache-2.0
// Objects as files of a directory, which may be on a network file system.
//
// A file is whole or absent: written beside its place, synced, and linked or renamed to it. Swaps
// take turns under `.lock` in the directory, which they wait 5 s for (kUnavailable); what is
// written once needs no lock where the file system has hard links or RENAME_NOREPLACE, and readers
// never do. The tag is the contents' SHA-256.
#pragma once

#include "base/time.h"
#include "blobs/blob_store.h"

namespace purlin::blobs {

// `clock`, by which a lock is waited for, outlives it.
std::unique_ptr<BlobStore> make_directory_blobs(std::string directory,
                                                Clock& clock = system_clock());

}  // namespace purlin::blobs
