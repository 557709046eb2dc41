// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/client.h"

#include "base/files.h"
#include "base/text.h"
#include "blobs/curl_http.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace purlin::store {
namespace {

constexpr int kDefaultPort = 8123;
constexpr std::size_t kMaxAnswerBytes = std::size_t{2} << 30;
constexpr std::size_t kMaxMessage = 500;

std::string url_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("-_.~", c) != nullptr) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

// The number in "Code: 60. DB::Exception: …".
int error_number(std::string_view text) {
  const std::size_t at = text.find("Code: ");
  return at == std::string_view::npos ? 0 : std::atoi(std::string(text.substr(at + 6, 8)).c_str());
}

Code code_of(int number) {
  switch (number) {
    case 36:   // BAD_ARGUMENTS: a macro or cluster that is not there
    case 170:  // CLUSTER_DOESNT_EXIST
    case 192:  // UNKNOWN_USER
    case 193:  // WRONG_PASSWORD
    case 516:  // AUTHENTICATION_FAILED
      return Code::kInvalid;
    case 60:  // UNKNOWN_TABLE
    case 81:  // UNKNOWN_DATABASE
      return Code::kNotFound;
    case 159:  // TIMEOUT_EXCEEDED
    case 209:  // SOCKET_TIMEOUT
      return Code::kTimeout;
    case 202:  // TOO_MANY_SIMULTANEOUS_QUERIES
    case 203:  // NO_FREE_CONNECTION
    case 210:  // NETWORK_ERROR
    case 241:  // MEMORY_LIMIT_EXCEEDED
    case 242:  // TABLE_IS_READ_ONLY
    case 252:  // TOO_MANY_PARTS
    case 279:  // ALL_CONNECTION_TRIES_FAILED
    case 285:  // TOO_LESS_LIVE_REPLICAS
    case 999:  // KEEPER_EXCEPTION
      return Code::kUnavailable;
    default:
      return Code::kIo;
  }
}

}  // namespace

bool is_clickhouse_target(std::string_view target) {
  return starts_with(target, "http://") || starts_with(target, "https://") ||
         starts_with(target, "clickhouse://");
}

Result<ClickhouseTarget> parse_clickhouse_target(const std::string& target,
                                                 const StoreOptions& options) {
  ClickhouseTarget out;
  const std::size_t scheme_end = target.find("://");
  const std::string scheme = target.substr(0, scheme_end);
  std::string rest = scheme_end == std::string::npos ? "" : target.substr(scheme_end + 3);
  if (const std::size_t query = rest.find('?'); query != std::string::npos) {
    const std::string option = rest.substr(query + 1);
    if (!starts_with(option, "cluster="))
      return error(Code::kInvalid, "{}: after '?' only cluster=NAME may follow", target);
    out.cluster = option.substr(8);
    rest.resize(query);
  }
  if (!options.cluster.empty()) out.cluster = options.cluster;
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos || slash == 0)
    return error(Code::kInvalid, "{}: a ClickHouse store is http://[USER@]HOST:PORT/DATABASE",
                 target);
  out.database = rest.substr(slash + 1);
  std::string host = rest.substr(0, slash);
  if (const std::size_t at = host.rfind('@'); at != std::string::npos) {
    out.user = host.substr(0, at);
    host = host.substr(at + 1);
  }
  if (out.user.find(':') != std::string::npos)
    return error(Code::kInvalid,
                 "a password in the address would be in logs; set "
                 "PURLIN_CLICKHOUSE_PASSWORD instead");
  if (!options.user.empty()) out.user = options.user;
  out.password = !options.password.empty() ? options.password
                                           : environment_variable("PURLIN_CLICKHOUSE_PASSWORD");
  if (!is_name(out.database) || (!out.cluster.empty() && !is_name(out.cluster)))
    return error(Code::kInvalid, "{}: names of a database and a cluster have letters, digits and _",
                 target);
  if (host.find(':') == std::string::npos) host += fmt::format(":{}", kDefaultPort);
  out.url = (scheme == "https" ? "https://" : "http://") + host;
  return out;
}

Result<Client> Client::connect(ClickhouseTarget target) {
  PURLIN_ASSIGN(std::unique_ptr<blobs::HttpClient> http, blobs::make_curl_http());
  Client client(std::move(target), std::move(http));
  PURLIN_ASSIGN(const std::string answer,
                client.send("SELECT version() FORMAT TabSeparated", "", false));
  client.version_ = trim(answer);
  const std::vector<std::string> parts = split(client.version_, '.');
  client.major_ = static_cast<int>(parse_int(parts[0]).value_or(0));
  client.minor_ = parts.size() > 1 ? static_cast<int>(parse_int(parts[1]).value_or(0)) : 0;
  if (!client.is_at_least(18, 16))
    return error(Code::kInvalid, "{}: ClickHouse '{}' is too old; 18.16 or newer is necessary",
                 client.target_.url, client.version_);
  return client;
}

bool Client::is_at_least(int major, int minor) const {
  return major_ > major || (major_ == major && minor_ >= minor);
}

// Answers only once all is done: an error after the first rows would else look like their end.
Result<std::string> Client::send(const std::string& sql, std::string_view rows, bool is_insert) {
  blobs::HttpRequest request;
  request.method = "POST";
  request.url = target_.url + "/?wait_end_of_query=1";
  const std::string text = with_database(sql, target_.database);
  if (is_insert) {
    request.url += "&insert_distributed_sync=1&query=" + url_encoded(text);
    request.body = rows;
  } else {
    request.url += "&max_query_size=16777216&insert_distributed_sync=1";
    request.body = text;
  }
  request.headers.emplace_back("Content-Type", "application/octet-stream");
  if (!target_.user.empty()) request.headers.emplace_back("X-ClickHouse-User", target_.user);
  if (!target_.password.empty()) request.headers.emplace_back("X-ClickHouse-Key", target_.password);
  request.max_bytes = kMaxAnswerBytes;
  PURLIN_ASSIGN(blobs::HttpResponse response, http_->send(request));
  if (response.status == 200) return std::move(response.body);
  const int number = error_number(response.body);
  const Code code =
      response.status == 401 || response.status == 403 ? Code::kInvalid : code_of(number);
  constexpr int kAllConnectionTriesFailed = 279;
  const std::string_view shard = !target_.cluster.empty() && number == kAllConnectionTriesFailed
                                     ? "a shard of the cluster is missing, so nothing is answered "
                                       "or stored in part; start it again: "
                                     : "";
  return error(code, "ClickHouse at {}: {}{}", target_.url, shard,
               std::string(trim(response.body.substr(0, kMaxMessage))));
}

Status Client::execute(const std::string& sql) { return send(sql, "", false).status(); }

Result<std::string> Client::select(const std::string& sql) {
  return send(sql + " FORMAT RowBinary", "", false);
}

Result<std::int64_t> Client::integer(const std::string& sql) {
  PURLIN_ASSIGN(const std::string rows, select(sql));
  profile::wire::Decoder in(rows);
  return rows.empty() ? 0 : static_cast<std::int64_t>(in.fixed64());
}

Status Client::insert(const std::string& table_and_columns, std::string_view rows) {
  if (rows.empty()) return Status::ok();
  return send("INSERT INTO {db}." + table_and_columns + " FORMAT RowBinary", rows, true).status();
}

std::string with_database(std::string sql, const std::string& database) {
  constexpr std::string_view kMark = "{db}";
  for (std::size_t at = 0; (at = sql.find(kMark, at)) != std::string::npos; at += database.size())
    sql.replace(at, kMark.size(), database);
  return sql;
}

std::string sql_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\'':
        out += "\\'";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\0':
        out += "\\0";
        break;
      case '{':
        out += "\\x7B";
        break;  // {db} in a name is a name
      default:
        out += c;
    }
  }
  return out + "'";
}

std::vector<std::int32_t> read_int32s(profile::wire::Decoder& in) {
  std::vector<std::int32_t> values(in.count(4));
  for (std::int32_t& value : values) value = static_cast<std::int32_t>(in.fixed32());
  return values;
}

std::vector<double> read_reals(profile::wire::Decoder& in) {
  std::vector<double> values(in.count(8));
  for (double& value : values) value = in.real();
  return values;
}

}  // namespace purlin::store
