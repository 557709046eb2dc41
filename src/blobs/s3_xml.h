// SPDX-License-Identifier: Apache-2.0
// The answers of S3 and of its token service in XML: pages of a listing, errors, credentials. What
// is no XML, or cut, is an error. Entities that a document declares are not expanded. Pure
// functions.
#pragma once

#include "blobs/blob_store.h"
#include "blobs/credentials.h"

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

// The answer to AssumeRoleWithWebIdentity. kInvalid without keys.
Result<Credentials> parse_assumed_role(std::string_view xml);

}  // namespace purlin::blobs
