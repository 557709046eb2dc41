#!/usr/bin/env bash
# Kills at random moments with a ledger of what was acknowledged: some rounds of tests/soak/soak.py. And the
# histories of a server's clients, checked for linearizability: some seconds of tests/soak/history.py.
# labels: opencl
source "$(dirname "$0")/lib.sh"
export PURLIN_DEVICE=opencl:0
python3 "$PURLIN_SOURCE/tests/soak/soak.py" --rounds "${PURLIN_SOAK_ROUNDS:-12}" --seed "${PURLIN_SOAK_SEED:-1}" || fail "a kill lost something, or doubled it"
python3 "$PURLIN_SOURCE/tests/soak/history.py" --seconds "${PURLIN_HISTORY_SECONDS:-10}" --seed "${PURLIN_SOAK_SEED:-1}" || fail "a history of the server is not linearizable"
