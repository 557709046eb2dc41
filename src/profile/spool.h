// SPDX-License-Identifier: Apache-2.0
// The folder in which the processes of a run leave their captures, and the listener for those that
// cannot write to it. docs/formats/profile.md, "The spool".
//
// A Spool has one owner and one thread. Failure: where nothing of a run could be recorded, kIo with
// the cause and what to do; where a part is missing, a coverage note.
#pragma once

#include "base/os/descriptor.h"
#include "base/status.h"
#include "model/device/capability.h"
#include "model/profile/profile.h"
#include "profile/format/file.h"
#include "profile/spool_fault.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::profile {

class Spool {
 public:
  // A new folder under TMPDIR that takes files. It is removed with the object, unless its contents
  // could not be read.
  static Result<Spool> make();
  Spool(Spool&&) noexcept;
  Spool& operator=(Spool&&) = delete;
  ~Spool();

  const std::string& path() const { return path_; }
  // What the processes left, merged. Call it when the command has ended.
  Result<Profile> gather();

 private:
  Spool(std::string path, std::unique_ptr<Descriptor> listener);
  std::vector<SpoolFault> faults() const;

  std::string path_;
  std::unique_ptr<Descriptor> listener_;  // null where the system gave none
};

// Whether a folder has files of a spool.
bool looks_like_spool(const std::string& folder);
// A spool that was left, or to which injected processes still write.
Result<Profile> open_spool(const std::string& folder, const ReadOptions& options);

// The capability to record: folders of spools exist, are writable and have space.
Capability examine_spool();

}  // namespace purlin::profile
