// SPDX-License-Identifier: Apache-2.0
// The answers of S3 in XML: pages of a listing, and errors. The parser reads only the needed
// elements, in bounded space. It skips attributes, comments and unknown elements. Pure functions.
#pragma once

#include "blobs/blob_store.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::blobs {

struct ListPage {
  std::vector<BlobInfo> blobs;
  std::string next;  // continuation token; "" on the last page
};
// kInvalid for what is no listing.
Result<ListPage> parse_list_page(std::string_view xml);

struct S3Error {
  std::string code, message;  // "" where absent
};
S3Error parse_s3_error(std::string_view xml);

}  // namespace purlin::blobs
