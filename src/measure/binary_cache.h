// SPDX-License-Identifier: Apache-2.0
// BinaryCache: compiled kernels on disk, keyed by everything that decides the compiler's output:
// source, the headers it includes, options, config, entry, device, driver and toolkit.
//
// One file per binary (docs/formats/binary-cache.md), written whole; a damaged or foreign file is a
// miss. [MT], and safe between processes.
#pragma once

#include "gpu/device.h"
#include "model/spec/spec.h"

#include <optional>
#include <string>

namespace purlin::measure {

// How a kernel of a spec is compiled with a config; one wording of it, so that the tuner and the
// programs share their binaries.
gpu::CompileRequest compile_request(const KernelSpec& spec, const SourceText& source,
                                    const std::string& entry, const Config& config);

class BinaryCache {
 public:
  // Tens of thousands of kernels; a tuning session writes some MB.
  static constexpr std::uint64_t kDefaultBytes = std::uint64_t{2} << 30;
  explicit BinaryCache(std::string directory) : directory_(std::move(directory)) {}
  // "" where the headers, or the version of a compiler other than the toolkit's, are not known:
  // such a binary is not kept.
  static std::string key(const DeviceInfo& device, const gpu::CompileRequest& request);
  std::optional<gpu::Binary> get(const std::string& key) const;
  Status put(const std::string& key, const gpu::Binary& binary) const;
  // Removes the files longest unused until at most `bytes` are left; what another process removes
  // or adds meanwhile is no error.
  Status prune(std::uint64_t bytes = kDefaultBytes) const;
  const std::string& directory() const { return directory_; }

 private:
  std::string path_of(const std::string& key) const;
  std::string directory_;
};

}  // namespace purlin::measure
