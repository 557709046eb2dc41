#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fleet_queries.sh [SECONDS]: questions over 100,000 groups while batches arrive, SQLite and ClickHouse side
# by side, and 1,000 agents against `purlin serve`. Prints Markdown for bench/results/store.md and fleet.md,
# with the load of the machine and the processor time of ClickHouse's server.
#
# For a quiet machine. It builds preset release, and starts Debian's clickhouse-server on loopback.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-60}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
say() { printf '\n%s\n' "$*"; }

cmake --preset release >"$work/cmake.log" || { cat "$work/cmake.log" >&2; exit 1; }
cmake --build build/release --target bench_store bench_fleet purlin >"$work/build.log" || { tail -20 "$work/build.log" >&2; exit 1; }
say "$(date -u +%FT%RZ), $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2), $(git rev-parse --short HEAD)"

say "### SQLite"
build/release/bench/bench_store "$work/sqlite" --launches=0 --queries="$seconds"

if [ -x /usr/sbin/clickhouse-server ]; then
  http=$((20000 + $$ % 20000)) tcp=$((20001 + $$ % 20000))
  cat >"$work/config.xml" <<XML
<yandex><logger><level>error</level><log>$work/log</log><errorlog>$work/errors</errorlog></logger>
<http_port>$http</http_port><tcp_port>$tcp</tcp_port><listen_host>127.0.0.1</listen_host><path>$work/data/</path>
<tmp_path>$work/tmp/</tmp_path><user_files_path>$work/files/</user_files_path>
<format_schema_path>$work/schemas/</format_schema_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>268435456</mark_cache_size></yandex>
XML
  echo '<yandex><profiles><default/></profiles><users><default><password/><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users><quotas><default/></quotas></yandex>' >"$work/users.xml"
  /usr/sbin/clickhouse-server --config-file="$work/config.xml" >/dev/null 2>&1 & server=$!
  for _ in $(seq 200); do curl -s "http://127.0.0.1:$http/ping" >/dev/null && break; sleep 0.1; done
  cpu() { awk '{ print ($14 + $15) / 100 }' "/proc/$server/stat"; }
  say "### ClickHouse $(curl -s "http://127.0.0.1:$http/?query=SELECT%20version()")"
  before=$(cpu)
  build/release/bench/bench_store "http://127.0.0.1:$http/bench" --launches=0 --queries="$seconds"
  say "Processor time of its server, with the batches: $(echo "$(cpu) $before" | awk '{ printf "%.1f", $1 - $2 }') s."
  kill "$server"; wait "$server" 2>/dev/null || true; server=
fi

say "### 1,000 agents (8,000 GPUs, 400,000 groups), SQLite"
PURLIN=$PWD/build/release/bin/purlin build/release/bench/bench_fleet 10 100 1000 --period 10 --seconds "$seconds" --markdown
say "load $(cut -d' ' -f1-3 /proc/loadavg)"
