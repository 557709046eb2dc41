// SPDX-License-Identifier: Apache-2.0
// What S3 answers in XML: pages of a listing, and errors. Only what is needed is looked for, in
// bounded space; attributes, comments and unknown elements are passed over. Pure functions.
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
  std::string code, message;  // "" where there is none
};
S3Error parse_s3_error(std::string_view xml);

}  // namespace purlin::blobs
