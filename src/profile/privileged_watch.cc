// SPDX-License-Identifier: Apache-2.0
#include "profile/privileged_watch.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <unistd.h>

namespace purlin::profile {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(50);
constexpr int kDeepest = 64;
constexpr std::size_t kMostFound = 100, kMostThreads = 64;

// A file of /proc; "" where it cannot be read.
std::string proc_text(pid_t process, const std::string& file) {
  const auto text = read_file(fmt::format("/proc/{}/{}", process, file));
  return text.is_ok() ? *text : std::string();
}

}  // namespace

bool read_rights(const std::string& status, ProcessRights& rights) {
  int found = 0;
  for (const std::string& line : split(status, '\n')) {
    const char* value = line.c_str() + line.find(':') + 1;
    char* end = nullptr;
    if (starts_with(line, "Name:")) {
      rights.name = trim(value);
    } else if (starts_with(line, "Uid:")) {
      rights.real_user = static_cast<uid_t>(std::strtoul(value, &end, 10));
      rights.effective_user = static_cast<uid_t>(std::strtoul(end, nullptr, 10));
      ++found;
    } else if (starts_with(line, "Gid:")) {
      rights.real_group = static_cast<gid_t>(std::strtoul(value, &end, 10));
      rights.effective_group = static_cast<gid_t>(std::strtoul(end, nullptr, 10));
      ++found;
    } else if (starts_with(line, "CapEff:")) {
      rights.capabilities = std::strtoull(value, nullptr, 16);
    }
  }
  return found == 2;
}

bool has_more_rights(const ProcessRights& process, const ProcessRights& own) {
  if (process.real_user != process.effective_user || process.real_group != process.effective_group)
    return true;
  // One such as sudo takes over the real user too.
  if (own.effective_user != 0 && process.real_user != own.real_user) return true;
  return (process.capabilities & ~own.capabilities) != 0;
}

PrivilegedWatch::PrivilegedWatch(pid_t root) : root_(root) {
  if (!read_rights(proc_text(::getpid(), "status"), own_)) return;
  thread_ = std::thread([this] { watch(); });
}

std::map<pid_t, std::string> PrivilegedWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
  return std::move(found_);
}

void PrivilegedWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    look(root_, 0);
    lock.lock();
    stopping_.wait_for(lock, kInterval, [this] { return stop_; });
  }
}

void PrivilegedWatch::look(pid_t process, int depth) {
  if (depth > kDeepest || found_.size() >= kMostFound) return;
  ProcessRights rights;
  if (!read_rights(proc_text(process, "status"), rights)) return;
  if (has_more_rights(rights, own_)) found_[process] = rights.name;
  // Each thread has the children that it started.
  const auto threads = list_directory(fmt::format("/proc/{}/task", process));
  if (!threads.is_ok()) return;
  for (std::size_t i = 0; i < std::min(kMostThreads, threads->size()); ++i)
    for (const std::string& child :
         split(proc_text(process, "task/" + (*threads)[i] + "/children"), ' '))
      if (const auto number = parse_int(trim(child)); number && *number > 0)
        look(static_cast<pid_t>(*number), depth + 1);
}

}  // namespace purlin::profile
