#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of GitHub's API that deploy/ci/github_api.py uses: comments of pull request 7, and artifacts.

  github_fake.py PORT_FILE STATE_FILE     STATE_FILE holds the comments after each change
"""
import http.server
import json
import os
import sys
import urllib.parse

OTHERS = [{"id": number, "body": "<!-- purlin gate -->\na forgery" if number == 3 else "text",
           "user": {"type": "User"}} for number in range(1, 121)]
comments = list(OTHERS)


def artifact(number, branch, created, expired=False, fork=False):
    return {"id": number, "name": "purlin-baseline", "expired": expired, "created_at": created,
            "workflow_run": {"id": 1000 + number, "head_branch": branch, "repository_id": 1,
                             "head_repository_id": 2 if fork else 1}}


ARTIFACTS = [artifact(1, "main", "2026-11-01T00:00:00Z"), artifact(2, "main", "2026-11-03T00:00:00Z"),
             artifact(3, "main", "2026-11-09T00:00:00Z", fork=True), artifact(4, "topic", "2026-11-08T00:00:00Z"),
             artifact(5, "main", "2026-11-07T00:00:00Z", expired=True)]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_one(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        split = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(split.query))
        if self.headers["Authorization"] != "Bearer secret":
            return self.answer(403, {"message": "Resource not accessible by integration"})
        at = (int(query.get("page", 1)) - 1) * int(query.get("per_page", 30))
        most = at + int(query.get("per_page", 30))
        if split.path == "/repos/team/code/actions/artifacts":
            found = [one for one in ARTIFACTS if one["name"] == query["name"]]
            return self.answer(200, {"total_count": len(found), "artifacts": found[at:most]})
        if split.path == "/repos/team/code/issues/7/comments" and self.command == "GET":
            return self.answer(200, comments[at:most])
        if split.path == "/repos/team/code/issues/7/comments":
            comments.append({"id": 500, "body": body["body"], "user": {"type": "Bot"}})
        elif split.path == "/repos/team/code/issues/comments/500" and self.command == "PATCH":
            comments[-1]["body"] = body["body"]
        else:
            return self.answer(404, {})
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(comments[len(OTHERS):], file)
        return self.answer(200, comments[-1])

    do_GET = do_POST = do_PATCH = handle_one


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(sys.argv[1] + ".new", "w", encoding="utf-8") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
