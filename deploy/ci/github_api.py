#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the action asks of GitHub's API, with the standard library alone.

  github_api.py comment FILE           keeps one comment on the pull request up to date with a Markdown file
  github_api.py baseline NAME BRANCH   writes run-id=… of the newest artifact of a branch to $GITHUB_OUTPUT

Both read GITHUB_TOKEN, GITHUB_REPOSITORY and GITHUB_API_URL. A comment that the token may not write (a pull
request of a fork) is a warning: the verdict is the gate's.
"""
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

MARK = "<!-- purlin gate -->"  # finds our comment again
LONGEST = 60_000  # GitHub takes 65,536 characters


def call(method, path, body=None):
    url = os.environ.get("GITHUB_API_URL", "https://api.github.com") + path
    request = urllib.request.Request(url, method=method, headers={
        "Authorization": "Bearer " + os.environ["GITHUB_TOKEN"],
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "purlin-gate"})
    if body is not None:
        request.data = json.dumps(body).encode("utf-8")
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def pages(path, key=None):
    """The items of all pages of a list."""
    for page in range(1, 51):
        found = call("GET", "%s%sper_page=100&page=%d" % (path, "&" if "?" in path else "?", page))
        items = found[key] if key else found
        yield from items
        if len(items) < 100:
            return


def repository():
    return "/repos/" + os.environ["GITHUB_REPOSITORY"]


def pull_request():
    with open(os.environ["GITHUB_EVENT_PATH"], encoding="utf-8") as file:
        return json.load(file).get("pull_request", {}).get("number")


def comment(path):
    number = pull_request()
    if not number:
        return "no pull request: no comment"
    if not os.path.exists(path):
        return "no %s: the gate stopped before its report" % path
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition("\n")[0] + "\n\nThe report is longer: see the artifact `purlin-gate`.\n"
    body = {"body": MARK + "\n" + text}
    for old in pages("%s/issues/%d/comments" % (repository(), number)):
        if old["body"].startswith(MARK) and old["user"]["type"] == "Bot":
            call("PATCH", "%s/issues/comments/%d" % (repository(), old["id"]), body)
            return "comment %d updated" % old["id"]
    return "comment %d written" % call("POST", "%s/issues/%d/comments" % (repository(), number), body)["id"]


def baseline(name, branch):
    query = urllib.parse.urlencode({"name": name})
    newest = None
    for artifact in pages("%s/actions/artifacts?%s" % (repository(), query), "artifacts"):
        run = artifact["workflow_run"]
        # A fork may call its branch as the default one is called.
        own = run["head_repository_id"] == run["repository_id"] and run["head_branch"] == branch
        if own and not artifact["expired"] and (newest is None or artifact["created_at"] > newest["created_at"]):
            newest = artifact
    if newest is None:
        return "no artifact '%s' of branch '%s': run the action with mode: baseline there first" % (name, branch)
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        file.write("run-id=%d\n" % newest["workflow_run"]["id"])
    return "baseline of run %d" % newest["workflow_run"]["id"]


def main():
    commands = {("comment", 3): comment, ("baseline", 4): baseline}
    command = commands.get((sys.argv[1] if len(sys.argv) > 1 else "", len(sys.argv)))
    if command is None:
        sys.exit(__doc__)
    try:
        print(command(*sys.argv[2:]))
    except urllib.error.HTTPError as problem:
        if command is comment and problem.code in (403, 404):
            print("::warning title=purlin gate::the token may not comment here (HTTP %d)" % problem.code)
            return
        sys.exit("github_api.py: HTTP %d for %s" % (problem.code, problem.url))
    except urllib.error.URLError as problem:
        sys.exit("github_api.py: %s" % problem.reason)


if __name__ == "__main__":
    main()
