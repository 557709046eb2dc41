#!/usr/bin/env bash
# A history of 64 commits with one that is slower, some that do not build, and a killed bisection. The
# commands make their times up, so nothing here depends on how busy the machine is.
source "$(dirname "$0")/lib.sh"
cd "$tmp"
begin_made_up

cat >bench.in <<'END'
#!/bin/sh
exec "$PURLIN_SOURCE/tests/suites/made_up" -v factor=@FACTOR@ 'BEGIN {
  print "kernel,time_us,sm_clock_mhz"
  shift = noise()
  for (i = 0; i < 20; ++i) {
    printf "steady,%.3f,1980\n", 50 * noise()
    printf "gemm,%.3f,1980\n", 20 * factor * shift * noise()
  }
}'
END
# Commit 41 plants 6 %; 20 to 23, 40 and every tenth do not build; 50 prints no times.
git init -q repo
cd repo
git config user.email a@b && git config user.name Ada
cp ../bench.in bench.in
printf 'bench: bench.in factor\n\t@[ ! -e broken ] || { echo "error: cannot build this"; false; }\n\tsed "s/@FACTOR@/$$(cat factor)/" bench.in >bench && chmod +x bench\n' >Makefile
for i in $(seq 1 64); do
  [ "$i" -ge 41 ] && echo 1.06 >factor || echo 1 >factor
  rm -f broken
  case $i in 20 | 21 | 22 | 23 | 30 | 40 | 60) touch broken ;; esac
  [ "$i" = 50 ] && echo 'exit 3' >bench.in || cp ../bench.in bench.in
  echo "$i" >number
  git add -A && git commit -qm "commit $i"
done
first=$(git rev-list --max-parents=0 HEAD)
subject() { git -C "$tmp/repo" log -1 --format=%s "$1"; }

# The commit before the culprit does not build: the two cannot be told apart, and that is said.
expect_exit 3 purlin guard bisect "$first" HEAD --build 'make bench' --json -- ./bench
expect_json "$tmp/out" 'd["outcome"] == "range" and len(d["candidates"]) == 2 and d["item"]["kernel"] == "gemm"'
[ "$(subject "$(json "$tmp/out" 'd["candidates"][0]')")" = 'commit 40' ] || fail 'wrong range'
[ "$(subject "$(json "$tmp/out" 'd["candidates"][1]')")" = 'commit 41' ] || fail 'wrong range'

# With the parent mended the culprit is named and confirmed.
git checkout -q -b mended HEAD~25   # commit 39
for i in 40 41 42 43 44 45 46 47 48 49; do
  [ "$i" -ge 41 ] && echo 1.06 >factor || echo 1 >factor
  rm -f broken
  case $i in 43 | 44) touch broken ;; esac
  echo "$i" >number
  git add -A && git commit -qm "commit $i"
done
expect_exit 0 purlin guard bisect "$first" mended --build 'make bench' --json -- ./bench
expect_json "$tmp/out" 'd["outcome"] == "culprit" and d["confirmation"]["verdict"] == "regression"'
expect_json "$tmp/out" 'abs(d["whole"]["ratio"] - 1.06) < 0.02 and any(s["result"] == "untriable" and "cannot build this" in s["reason"] for s in d["steps"]) '
[ "$(subject "$(json "$tmp/out" 'd["culprit"]')")" = 'commit 41' ] || fail 'wrong culprit'
[ -z "$(git status --porcelain)" ] || fail "the user's tree was touched"
[ "$(git worktree list | wc -l)" = 1 ] || fail 'a worktree was left behind'

# Killed in the middle of a step, it goes on without measuring those before again.
bisect=("$PURLIN" guard bisect "$first" mended --build 'make bench' --work "$tmp/work" --journal "$tmp/bisect.jsonl")
begin_made_up
MADE_UP_HANG=70 "${bisect[@]}" -- ./bench >/dev/null 2>"$tmp/err" &
victim=$!
wait_until 'the third step' test -e "$MADE_UP.hangs"
kill -9 $victim
wait $victim 2>/dev/null || true
rm "$MADE_UP.hangs"
kept=$(($(wc -l <"$tmp/bisect.jsonl") - 1))
[ "$kept" -ge 2 ] || fail "$kept steps are in the journal"
begin_made_up
expect_exit 0 "${bisect[@]}" -- ./bench
[ "$(grep -c '(from the journal)' "$tmp/err")" -eq "$kept" ] || fail "not all of $kept steps came from the journal"
expect_contains "$tmp/out" 'culprit: ' 'Ada: commit 41'
# The journal is of this bisection and no other.
expect_exit 2 purlin guard bisect "$first" mended --build 'make -s bench' --journal "$tmp/bisect.jsonl" -- ./bench
expect_contains "$tmp/err" 'is the journal of another bisection'

# Nothing to find, and nonsense.
expect_exit 3 purlin guard bisect HEAD~3 HEAD --build 'make bench' -- ./bench
expect_contains "$tmp/out" 'is not slower than'
expect_exit 2 purlin guard bisect HEAD "$first" --build 'make bench' -- ./bench
expect_contains "$tmp/err" 'they are swapped'
expect_exit 2 purlin guard bisect "$first" HEAD
expect_contains "$tmp/err" 'say what to run'
# A signal that ends it, as CI sends one, leaves no worktree and no folder behind.
mkdir "$tmp/scratch"
git worktree list >"$tmp/worktrees"
nothing_left() { [ -z "$(ls "$tmp/scratch")" ] && git worktree list | cmp -s - "$tmp/worktrees"; }
for signal in TERM HUP KILL; do
  rm -f "$tmp/building"
  TMPDIR=$tmp/scratch "$PURLIN" guard compare "$first" mended --build "touch '$tmp/building'; sleep 60" -- ./bench >/dev/null 2>&1 &
  victim=$!
  wait_until 'the build' test -e "$tmp/building"
  kill -$signal $victim
  wait $victim 2>/dev/null || true
  wait_until "the end of what SIG$signal left" nothing_left
done

# A culprit in a merged branch: the merge is named, and how to go into the branch. That works.
git init -q ../merged
cd ../merged
git config user.email a@b && git config user.name Ada
commit() { echo "$2" >factor; echo "$1" >"$1"; cp ../bench.in bench.in; cp ../repo/Makefile .; git add -A && git commit -qm "$1"; }
commit start 1
git tag start
commit one 1
git checkout -q -b branch
commit first 1
commit slow 1.06
commit last 1.06
git checkout -q -
echo other >other && git add other && git commit -qm other
git merge -q --no-ff -m 'the merge' branch
commit end 1.06
begin_made_up
expect_exit 0 purlin guard bisect start HEAD --build 'make bench' -- ./bench
expect_contains "$tmp/out" 'culprit: ' 'Ada: the merge' 'it merges a branch of 3 commits'
read -r base tip < <(sed -n 's/^  purlin guard bisect \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2/p' "$tmp/out")
expect_exit 0 purlin guard bisect "$base" "$tip" --build 'make bench' -- ./bench
expect_contains "$tmp/out" 'Ada: slow'
! grep -q 'it merges' "$tmp/out" || fail 'a commit that is no merge has a branch'
echo 'guard_bisect: all checks passed'
