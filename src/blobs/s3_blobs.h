// SPDX-License-Identifier: Apache-2.0
// Objects of an S3-compatible bucket below a prefix. Conditional writes (If-None-Match, If-Match)
// are what makes puts safe; whether a service honours them is for the caller to probe
// (cache/share). Answers that say "later" are retried with growing, jittered pauses.
#pragma once

#include "base/time.h"
#include "blobs/blob_store.h"
#include "blobs/http.h"
#include "blobs/s3_config.h"

#include <cstdint>
#include <memory>

namespace purlin::blobs {

// `clock` outlives the store; `seed` spreads the pauses of several clients. `credentials`: of a
// config whose keys come from the machine; null where the config has them.
std::unique_ptr<BlobStore> make_s3_blobs(S3Config config, std::unique_ptr<HttpClient> http,
                                         Clock& clock, std::uint64_t seed,
                                         std::unique_ptr<CredentialSource> credentials = nullptr);

}  // namespace purlin::blobs
