// SPDX-License-Identifier: Apache-2.0
// BinaryCache: compiled kernels on disk. The key contains all inputs of the compiler: source,
// included headers, options, config, entry, device, driver and toolkit.
//
// One file per binary (docs/formats/binary-cache.md), written whole; a damaged or foreign file is a
// miss. [MT], and safe between processes.
#pragma once

#include "gpu/device.h"
#include "model/spec/spec.h"

#include <optional>
#include <string>

namespace purlin::measure {

// The request that compiles a kernel of a spec with a config. The tuner and the programs both use
// it, so they share their binaries.
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
  // Removes the least recently used files until at most `bytes` are left. Other processes may
  // remove or add files at the same time.
  Status prune(std::uint64_t bytes = kDefaultBytes) const;
  const std::string& directory() const { return directory_; }

 private:
  std::string path_of(const std::string& key) const;
  std::string directory_;
};

}  // namespace purlin::measure
