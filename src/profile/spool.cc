// SPDX-License-Identifier: Apache-2.0
#include "profile/spool.h"

#include "base/files.h"
#include "base/os/folder_space.h"
#include "base/text.h"
#include "profile/jax/jax_programs.h"
#include "profile/stall_lines.h"
#include "profile/torch/torch_traces.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace purlin::profile {
namespace {

constexpr std::size_t kProbeBytes = std::size_t{64} << 10;  // what a short run of a program needs
constexpr std::uint64_t kScarceBytes = std::uint64_t{64} << 20;
constexpr std::string_view kRemedy =
    "free space there, or set TMPDIR to a folder that is writable and has space";

// A write, because quotas and limits of file sizes show in nothing else.
Status take_probe(const std::string& folder) {
  const std::string path = join_path(folder, "probe");
  PURLIN_TRY(write_atomic(path, std::string(kProbeBytes, '\0')));
  return remove_file(path);
}

std::unique_ptr<Descriptor> listen_for_faults(const std::string& spool) {
  auto listener =
      std::make_unique<Descriptor>(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  const socklen_t size = spool_fault_address(spool, address);
  if (listener->get() < 0 ||
      ::bind(listener->get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return nullptr;
  return listener;
}

// Faults that later writes did not make up for.
std::vector<SpoolFault> lasting(std::vector<SpoolFault> faults, const Profile& profile) {
  const auto made_up_for = [&](const SpoolFault& fault) {
    return std::any_of(
        profile.processes.begin(), profile.processes.end(), [&](const ProcessInfo& process) {
          return process.complete && process.pid == fault.pid && process.layer == fault.layer;
        });
  };
  faults.erase(std::remove_if(faults.begin(), faults.end(), made_up_for), faults.end());
  return faults;
}

}  // namespace

Spool::Spool(std::string path, std::unique_ptr<Descriptor> listener)
    : path_(std::move(path)), listener_(std::move(listener)) {}

Spool::Spool(Spool&& other) noexcept
    : path_(std::exchange(other.path_, "")), listener_(std::move(other.listener_)) {}

Spool::~Spool() {
  if (!path_.empty()) (void)remove_tree(path_);
}

Result<Spool> Spool::make() {
  PURLIN_ASSIGN(std::string made, make_temporary_directory("purlin-spool"));
  // The command may change its folder.
  const std::string path = absolute_path(made);
  Spool spool(path, listen_for_faults(path));
  if (const Status taken = take_probe(path); !taken.is_ok())
    return error(Code::kIo, "nothing can be recorded, and the command was not started: {}; {}",
                 taken.message(), kRemedy);
  return spool;
}

std::vector<SpoolFault> Spool::faults() const {
  std::vector<SpoolFault> faults;
  if (listener_ == nullptr) return faults;
  char text[kMaxSpoolFaultBytes + 1];
  for (ssize_t got; (got = ::recv(listener_->get(), text, sizeof text, MSG_DONTWAIT)) > 0;)
    if (SpoolFault fault; parse_spool_fault({text, static_cast<std::size_t>(got)}, fault))
      faults.push_back(std::move(fault));
  return faults;
}

Result<Profile> Spool::gather() {
  if (!is_directory(path_))
    return error(Code::kIo,
                 "nothing was recorded: the spool '{}' was removed while the command ran; set "
                 "TMPDIR to a folder that the command leaves alone",
                 path_);
  Result<Profile> gathered = read_spool(path_);
  if (!gathered.is_ok())
    return gathered.status().with_context(
        fmt::format("the run's files are kept in {}", std::exchange(path_, "")));
  const std::vector<SpoolFault> lost = lasting(faults(), *gathered);
  const bool empty = gathered->kernels.empty() && gathered->copies.empty();
  if (lost.empty()) {
    // A process of another network namespace reaches no listener.
    const Status taken = gathered->processes.empty() ? take_probe(path_) : Status::ok();
    if (taken.is_ok()) return gathered;
    return error(Code::kIo, "nothing was recorded: {}; {}", taken.message(), kRemedy);
  }
  const std::string cause =
      fmt::format("{} could not write to the spool '{}' ({}: {})", counted(lost.size(), "process"),
                  path_, lost.front().layer, std::strerror(lost.front().error));
  if (empty) return error(Code::kIo, "nothing was recorded: {}; {}", cause, kRemedy);
  gathered->coverage.notes.push_back(
      {"spool_failed", fmt::format("{}: what they did since then is missing; {}", cause, kRemedy),
       static_cast<double>(lost.size()), 0});
  return gathered;
}

bool looks_like_spool(const std::string& folder) {
  const std::vector<std::string> names = list_directory(folder).value_or({});
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return ends_with(name, ".plprof"); });
}

Result<Profile> open_spool(const std::string& folder, const ReadOptions& options) {
  PURLIN_ASSIGN(Profile profile, read_spool(folder, options));
  find_lines(profile, folder);
  add_torch_traces(profile, folder, {});
  add_jax_programs(profile, folder);
  return profile;
}

Capability examine_spool() {
  const std::string named = environment_variable("PURLIN_SPOOL");
  const std::string folder =
      absolute_path(named.empty() ? environment_variable("TMPDIR", "/tmp") : named);
  Capability result{"spool", "Spool", CapabilityState::kOk, folder, ""};
  const FolderSpace space = examine_folder(folder);
  const std::string variable = named.empty() ? "TMPDIR" : "PURLIN_SPOOL";
  if (!space.problem.empty() || space.free_bytes < kProbeBytes) {
    result.state = CapabilityState::kMissing;
    result.evidence +=
        fmt::format(" ({})", space.problem.empty() ? "the disk is full" : space.problem);
  } else {
    result.evidence +=
        fmt::format(", {} free", format_bytes(static_cast<double>(space.free_bytes)));
    if (space.free_bytes < kScarceBytes) result.state = CapabilityState::kDegraded;
  }
  if (result.state != CapabilityState::kOk)
    result.fix = fmt::format(
        "profiles are recorded there: free space, or set {} to a folder that exists, is writable "
        "and has space",
        variable);
  return result;
}

}  // namespace purlin::profile
