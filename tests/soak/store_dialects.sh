#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# store_dialects.sh STORE_TEST: the store's tests that CI leaves out, in about three minutes: against the
# newest ClickHouse, as the library of npm's @chdb/lib-linux-x64-gnu (160 MB), and two replicas of Debian's
# ClickHouse with ZooKeeper (apt-get install zookeeper clickhouse-server).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../suites" && pwd)
test=$(realpath "$1")
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

echo "== replicas"
PURLIN_TEST_REPLICAS=1 "$test" --gtest_brief=1 --gtest_filter='ClickhouseReplicas*'

echo "== newest ClickHouse"
npm pack --silent @chdb/lib-linux-x64-gnu >/dev/null
tar xzf chdb-lib-*.tgz
python3 "$here/chdb_server.py" package/libchdb.so "$work/data" >"$work/url" & server=$!
for _ in $(seq 300); do [ -s "$work/url" ] && break; sleep 0.1; done
curl -s "$(cat "$work/url")/" --data-binary 'SELECT version()'
PURLIN_TEST_CLICKHOUSE=$(cat "$work/url") "$test" --gtest_brief=1 --gtest_filter='*/Clickhouse'
