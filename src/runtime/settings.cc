// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings.h"

#include "base/files.h"
#include "base/text.h"

#include <fcntl.h>
#include <unistd.h>

namespace purlin::runtime {
namespace {

std::optional<Level> level_from_name(std::string_view name) {
  if (name == "debug") return Level::kDebug;
  if (name == "info" || name == "1") return Level::kInfo;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  if (name == "off" || name == "0" || name.empty()) return Level::kSilent;
  return std::nullopt;
}

}  // namespace

Settings Settings::from_environment() {
  Settings settings;
  const auto wrong = [&](const char* name, const std::string& value, std::string_view accepted) {
    settings.problems += fmt::format("{}{}='{}' is none of {}",
                                     settings.problems.empty() ? "" : "; ", name, value, accepted);
  };
  const std::string disable = environment_variable("PURLIN_DISABLE");
  settings.disabled = !disable.empty() && disable != "0";
  settings.record = environment_variable("PURLIN_RECORD", "1") != "0";
  const std::string revalidate = environment_variable("PURLIN_REVALIDATE");
  if (revalidate == "serve" || revalidate == "refuse")
    settings.serve_stale = revalidate == "serve";
  else if (!revalidate.empty())
    wrong("PURLIN_REVALIDATE", revalidate, "serve, refuse");
  if (const std::string shadow = environment_variable("PURLIN_SHADOW"); !shadow.empty()) {
    const auto every = parse_int(shadow);
    if (every && *every >= 0 && *every <= 1'000'000'000)
      settings.shadow_every = static_cast<int>(*every);
    else
      wrong("PURLIN_SHADOW", shadow, "0 to 1000000000");
  }
  const std::string log = environment_variable("PURLIN_LOG");
  const std::size_t colon = log.find(':');
  if (const auto level = level_from_name(log.substr(0, colon))) {
    settings.log_level = *level;
    if (colon != std::string::npos) settings.log_file = log.substr(colon + 1);
  } else {
    settings.log_level = Level::kWarning;
    wrong("PURLIN_LOG", log, "debug, info, warning, error, off, or one of them and :FILE");
  }
  return settings;
}

RuntimeLog::RuntimeLog(const Settings& settings)
    : Log(settings.log_level), level_(settings.log_level), file_(stderr) {
  if (settings.log_file.empty() || level_ == Level::kSilent) return;
  // Not to be inherited by what the program starts.
  const int fd = ::open(settings.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  std::FILE* opened = fd < 0 ? nullptr : ::fdopen(fd, "a");
  if (opened != nullptr) {
    file_ = opened;
  } else {
    if (fd >= 0) ::close(fd);
    warn("cannot open the log '{}'; logging here", settings.log_file);
  }
}

RuntimeLog::~RuntimeLog() {
  if (file_ != stderr) std::fclose(file_);
}

void RuntimeLog::emit(Level level, std::string_view text) {
  if (lines_ > kMaxLines) return;
  constexpr std::string_view kPrefix[] = {"debug: ", "", "warning: ", "error: ", ""};
  const std::string line =
      ++lines_ > kMaxLines ? fmt::format("purlin: {} lines; this log ends here\n", kMaxLines)
                           : fmt::format("purlin: {}{}\n", kPrefix[static_cast<int>(level)], text);
  // Not fmt::print, which throws where the text cannot be written.
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fflush(file_);
}

}  // namespace purlin::runtime
