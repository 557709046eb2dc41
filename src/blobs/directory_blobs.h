// SPDX-License-Identifier: Apache-2.0
// Objects as files of a directory, which may be on a network file system.
//
// A file is whole or absent: written beside its place, synced and renamed. Puts take turns under a
// lock file; readers take none. The tag is the contents' SHA-256.
#pragma once

#include "blobs/blob_store.h"

namespace purlin::blobs {

std::unique_ptr<BlobStore> make_directory_blobs(std::string directory);

}  // namespace purlin::blobs
