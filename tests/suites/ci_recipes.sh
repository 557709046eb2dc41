#!/usr/bin/env bash
# The scripts of deploy/ci: the gate of the action, its install, its comment and baseline against a fake of
# GitHub's API, and the script of the GitLab component.
# labels: opencl
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ci=$PURLIN_SOURCE/deploy/ci
unset GITHUB_ACTIONS GITHUB_OUTPUT GITHUB_PATH GITHUB_STEP_SUMMARY CI_MERGE_REQUEST_DIFF_BASE_SHA || true
cd "$tmp"

# --- what the recipes run: a stand-in that notes its arguments, one a line, and exits as asked
mkdir fake
cat >fake/purlin <<'END'
#!/bin/sh
[ "$1" = doctor ] && exit 0
printf '%s\n' "$@" >"$ASKED"
printf 'report\n' >purlin-gate/gate.md 2>/dev/null
exit "${FAKE_EXIT:-0}"
END
chmod +x fake/purlin
export ASKED=$tmp/asked
asked() { grep -qxF -- "$1" "$ASKED" || { cat "$ASKED" >&2; fail "'$1' was not asked for"; }; }
gate() { env PATH="$tmp/fake:$PATH" PURLIN_SUITE='a suite.toml' "$@" "$ci/gate.sh"; }

GITHUB_OUTPUT=$tmp/outputs expect_exit 0 gate PURLIN_BASE='origin/main' PURLIN_BUILD='make; echo "$(id)"' PURLIN_TAG=quick
[ "$(sed -n '1,5p' "$ASKED" | tr '\n' '|')" = 'guard|compare|origin/main|HEAD|--suite|' ] || fail "compare: $(cat "$ASKED")"
asked 'a suite.toml'
asked 'make; echo "$(id)"'
asked quick
asked purlin-gate/bencher.json
! grep -q -- --github "$ASKED" || fail "annotations outside of GitHub"
expect_contains outputs exit-code=0
GITHUB_ACTIONS=true FAKE_EXIT=1 expect_exit 1 gate PURLIN_MODE=check PURLIN_BASELINE=b/
asked --github
asked b/
FAKE_EXIT=2 expect_exit 2 gate PURLIN_MODE=check
FAKE_EXIT=3 expect_exit 0 gate PURLIN_MODE=check
expect_contains err inconclusive
FAKE_EXIT=3 GITHUB_ACTIONS=true expect_exit 0 gate PURLIN_MODE=check
expect_contains out '::warning title=purlin gate::inconclusive'
FAKE_EXIT=3 expect_exit 3 gate PURLIN_MODE=check PURLIN_INCONCLUSIVE=fail
expect_exit 2 gate PURLIN_MODE=chekc
expect_contains err 'give compare, check or baseline'
expect_exit 0 gate PURLIN_MODE=baseline PURLIN_BASELINE=kept/ PURLIN_NOTE='run 1'
asked --replace
asked 'run 1'

# --- the real command takes these options, and writes these files
cp "$PURLIN_SOURCE"/tests/data/guard/scale* .
cat >gate.toml <<'END'
schema = "purlin.suite/1"
name = "gate"
device = "opencl:0"
[[items]]
spec = "scale.toml"
config = "default"
END
mkdir real
ln -s "$PURLIN" real/purlin
PATH=$tmp/real:$PATH PURLIN_SUITE=gate.toml PURLIN_MODE=check PURLIN_BASELINE=purlin-baseline/ GITHUB_ACTIONS=true \
  expect_exit 0 "$ci/gate.sh"
expect_contains err 'there is no baseline'
for file in gate.xml gate.sarif gate.md action-benchmark.json bencher.json; do
  [ -f "purlin-gate/$file" ] || fail "no purlin-gate/$file"
done
PATH=$tmp/real:$PATH PURLIN_SUITE=gate.toml PURLIN_MODE=baseline expect_exit 0 "$ci/gate.sh"
[ -f purlin-baseline/gate.json ] || fail "no baseline"

# --- install
mkdir -p bundle/purlin-9/bin
printf '#!/bin/sh\necho purlin 9\n' >bundle/purlin-9/bin/purlin
chmod +x bundle/purlin-9/bin/purlin
tar -C bundle -czf bundle.tar.gz purlin-9
sum=$(sha256sum bundle.tar.gz | cut -d' ' -f1)
export PURLIN_BUNDLE_FOLDER=$tmp/installed PURLIN_BUNDLE_URL=$tmp/bundle.tar.gz
GITHUB_PATH=$tmp/path PURLIN_BUNDLE_SHA256=$sum expect_exit 0 "$ci/install.sh"
expect_contains out 'purlin 9'
expect_contains path "$tmp/installed/$sum/bin"
rm bundle.tar.gz  # the second time it is there already
PURLIN_BUNDLE_SHA256=$sum expect_exit 0 "$ci/install.sh"
echo other >bundle.tar.gz
PURLIN_BUNDLE_SHA256=${sum//[0-7]/0} expect_exit 2 "$ci/install.sh"
expect_contains err 'another SHA-256'
[ "$(ls installed)" = "$sum" ] || fail "a refused bundle was installed"
PURLIN_BUNDLE_SHA256=abc expect_exit 2 "$ci/install.sh"

# --- comment and baseline
python3 "$PURLIN_SOURCE/tests/suites/github_fake.py" port state.json &
server=$!
trap 'kill $server; rm -rf "$tmp"' EXIT
wait_until "the fake of GitHub" test -s port
export GITHUB_API_URL=http://127.0.0.1:$(cat port) GITHUB_REPOSITORY=team/code GITHUB_TOKEN=secret
export GITHUB_EVENT_PATH=$tmp/event.json
echo '{"pull_request": {"number": 7}}' >event.json
api() { python3 "$ci/github_api.py" "$@"; }
printf '### red\n' >report.md
expect_exit 0 api comment report.md
expect_contains out 'comment 500 written'
printf '### green\n' >report.md
expect_exit 0 api comment report.md
expect_contains out 'comment 500 updated'
expect_json state.json 'len(d) == 1 and d[0]["body"] == "<!-- purlin gate -->\n### green\n"'
seq -f '| row %g |' 20000 >report.md
expect_exit 0 api comment report.md
expect_json state.json 'len(d[0]["body"]) < 65000 and "purlin-gate" in d[0]["body"][-100:]'
GITHUB_TOKEN=fork expect_exit 0 api comment report.md
expect_contains out '::warning title=purlin gate::the token may not comment'
expect_exit 0 api comment absent.md
echo '{}' >event.json
expect_exit 0 api comment report.md
expect_contains out 'no pull request'
# The newest of the branch: no fork's, no expired one.
GITHUB_OUTPUT=$tmp/run expect_exit 0 api baseline purlin-baseline main
[ "$(cat run)" = run-id=1002 ] || fail "the baseline is of $(cat run)"
GITHUB_OUTPUT=$tmp/none expect_exit 0 api baseline purlin-baseline release
expect_contains out 'mode: baseline'
[ ! -e none ] || fail "a baseline of no branch"
GITHUB_TOKEN=bad GITHUB_OUTPUT=$tmp/none expect_exit 1 api baseline purlin-baseline main
expect_exit 1 api

# --- the action: each action of others is pinned by commit, and no input is text of a script
! grep -E '^ *uses: ' "$ci/github/action.yml" | grep -vE '@[0-9a-f]{40} # v[0-9.]+$' || fail "an action is not pinned"
awk '/^ *run:/ {inside = 1} /^ *(- |env:|with:|uses:|if:|shell:|name:)/ && !/run:/ {inside = 0} inside && /\$\{\{/ {print}' \
  "$ci/github/action.yml" >text
[ ! -s text ] || { cat text >&2; fail "an input is text of a script"; }
for script in $(grep -o 'GITHUB_ACTION_PATH/\.\./[a-z_.]*' "$ci/github/action.yml" | sed 's#.*/##' | sort -u); do
  [ -x "$ci/$script" ] || fail "the action runs $script, which is not there"
done

# --- GitLab: the script of the component, as the runner runs it
awk '/^    - \|$/ {inside = 1; next} inside && /^  [a-z]/ {exit} inside {sub(/^      /, ""); print}' \
  "$ci/gitlab/templates/gate.yml" >gitlab.sh
[ -s gitlab.sh ] || fail "no script in the component"
cat >fake/curl <<'END'
#!/bin/sh
printf '%s\n' "$@" >"$ASKED.curl"
for word; do case $word in *jobs/artifacts*) exit 22 ;; esac; done
END
chmod +x fake/curl
gitlab() {
  env PATH="$tmp/fake:$PATH" PURLIN_SUITE=s.toml PURLIN_BUILD= PURLIN_TIME_LIMIT=5m CI_JOB_TOKEN=t CI_API_V4_URL=https://g/api/v4 \
    CI_PROJECT_ID=1 CI_DEFAULT_BRANCH=main "$@" sh gitlab.sh
}
FAKE_EXIT=3 expect_exit 3 gitlab
asked check
expect_contains out 'no baseline of main yet'
FAKE_EXIT=1 expect_exit 1 gitlab CI_MERGE_REQUEST_DIFF_BASE_SHA=abc CI_MERGE_REQUEST_IID=4 PURLIN_GITLAB_TOKEN=s
asked compare
asked abc
expect_contains asked.curl 'PRIVATE-TOKEN: s' 'merge_requests/4/notes'
if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
  /usr/bin/python3 -c 'import sys, yaml
for path in sys.argv[1:]: list(yaml.safe_load_all(open(path)))' "$ci/github/action.yml" "$ci/gitlab/templates/gate.yml" || fail "no YAML"
fi
echo "ci_recipes: ok"
