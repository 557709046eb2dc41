// SPDX-License-Identifier: Apache-2.0
#include "cli/store/target.h"

#include "base/files.h"

namespace purlin::cli {

void StoreTarget::declare(Flags& flags) {
  flags.positional("TARGET", target_,
                   {"A folder, or http://[USER@]HOST:PORT/DATABASE of ClickHouse",
                    "Without it, PURLIN_STORE names the store. After the database, ?cluster=NAME "
                    "spreads the store over the servers of a cluster."},
                   false);
}

Result<std::string> StoreTarget::get() const {
  const std::string target = target_.empty() ? environment_variable("PURLIN_STORE") : target_;
  if (target.empty())
    return error(Code::kInvalid,
                 "no store is named: give a folder or an address, or set PURLIN_STORE");
  return target;
}

}  // namespace purlin::cli
