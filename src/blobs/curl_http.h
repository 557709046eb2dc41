// SPDX-License-Identifier: Apache-2.0
// HttpClient over libcurl, which is opened at run time: kUnavailable says how to install it. With
// PURLIN_SERVER_CA, a PEM file, the authorities in it are trusted instead of the system's.
#pragma once

#include "blobs/http.h"

#include <memory>

namespace purlin::blobs {

Result<std::unique_ptr<HttpClient>> make_curl_http();

}  // namespace purlin::blobs
