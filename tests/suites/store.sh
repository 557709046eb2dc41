#!/usr/bin/env bash
# `purlin store`: init, check, migrate and release over a folder; bad input; damage is exit code 3.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
unset PURLIN_STORE || true

expect_exit 2 purlin store check
expect_contains "$tmp/err" PURLIN_STORE
expect_exit 2 purlin store check "$tmp/none"
expect_contains "$tmp/err" "purlin store init"

expect_exit 0 purlin store init "$tmp/store"
expect_exit 0 purlin store init "$tmp/store" --json
expect_json "$tmp/out" 'd["schema"] == "purlin.store-init/1" and d["target"].endswith("/store")'
export PURLIN_STORE=$tmp/store
expect_exit 0 purlin store check
expect_contains "$tmp/out" sqlite "0 batches" "no damage"
expect_exit 0 purlin store check --json
expect_json "$tmp/out" 'd["schema"] == "purlin.store-check/1" and not d["damaged"] and d["findings"] == []'
expect_exit 0 purlin store migrate --json
expect_json "$tmp/out" 'd["steps"] == []'
expect_exit 0 purlin store release --node gpu07
expect_contains "$tmp/out" "0 batches released"

# A file that is none of SQLite is named.
mkdir -p "$tmp/store/hours"
head -c 9000 /dev/zero | tr '\0' x >"$tmp/store/hours/2026-11-20.sqlite"
expect_exit 3 purlin store check --json
expect_json "$tmp/out" 'd["damaged"] and d["findings"][0]["where"].endswith("hours/2026-11-20.sqlite")'
rm "$tmp/store/hours/2026-11-20.sqlite"

# Addresses of ClickHouse.
expect_exit 2 purlin store init http://user:secret@127.0.0.1:1/db
expect_contains "$tmp/err" PURLIN_CLICKHOUSE_PASSWORD
if grep -q secret "$tmp/err"; then fail "the password is in the message"; fi
expect_exit 2 purlin store init "http://127.0.0.1:1/a b"
expect_exit 2 purlin store init http://127.0.0.1:1/db
expect_contains "$tmp/err" 127.0.0.1
