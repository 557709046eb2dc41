#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An S3 service small enough to read: one process, objects in memory, the standard library alone.

It checks each request's signature (AWS Signature Version 4, computed here from the request as it
arrived), honours If-None-Match and If-Match, lists in pages of two, and injects faults:

  s3_fake.py PORT_FILE [--ignore-conditions] [--faults SPEC] [--key-uses N]

SPEC is a comma-separated list of what befalls every n-th request: "500:7" (answered with 500),
"503:9", "drop:5" (applied, and the connection closed without an answer), "cut:6" (half of the
answer's body), "slow:4" (0.2 s late), "skew:0" (never). Counters stand at GET /-/counters.

It also gives temporary keys, each for N requests: as an instance's metadata service (version 2), as a
container's agent (/container, with an authorization token) and as the token service (POST /).
"""
import argparse
import hashlib
import hmac
import http.server
import json
import os
import threading
import time
import urllib.parse
from datetime import datetime, timezone
from xml.sax.saxutils import escape

ACCESS, SECRET, REGION, BUCKET = "purlin-test", "a secret/with+signs", "eu-test-1", "team"
PAGE = 2

lock = threading.Lock()
objects = {}  # key -> (bytes, etag, modified)
counters = {"requests": 0, "unsigned": 0, "conflicts": 0, "faults": 0, "keys": 0}
temporary = {}  # access key -> [secret, session token, uses left]


def quote(text, safe):
    return urllib.parse.quote(text, safe=safe + "-_.~")


def signature_error(handler, body):
    """None, or why the request is not signed by our only user."""
    header = handler.headers.get("Authorization", "")
    if not header.startswith("AWS4-HMAC-SHA256 "):
        return "AccessDenied"
    parts = dict(p.strip().split("=", 1) for p in header.split(" ", 1)[1].split(","))
    access, day, region, service, _ = parts["Credential"].split("/")
    secret = SECRET
    if access in temporary:
        secret, token, left = temporary[access]
        if left == 0:
            return "ExpiredToken"
        temporary[access][2] -= 1
        if handler.headers.get("x-amz-security-token") != token:
            return "InvalidToken"
    elif access != ACCESS:
        return "InvalidAccessKeyId"
    if (region, service) != (REGION, "s3"):
        return "AuthorizationHeaderMalformed"
    moment = handler.headers["x-amz-date"]
    sent = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    if abs(time.time() - sent.timestamp()) > 900:
        return "RequestTimeTooSkewed"
    if handler.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        return "XAmzContentSHA256Mismatch"
    names = parts["SignedHeaders"].split(";")
    if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names):
        return "AccessDenied"
    if any(h in handler.headers and h not in names for h in ("if-match", "if-none-match")):
        return "AccessDenied"
    split = urllib.parse.urlsplit(handler.path)
    query = urllib.parse.parse_qsl(split.query, keep_blank_values=True)
    canonical = "\n".join([
        handler.command,
        quote(urllib.parse.unquote(split.path), "/"),
        "&".join(sorted(quote(k, "") + "=" + quote(v, "") for k, v in query)),
        "".join(f"{n}:{handler.headers[n].strip()}\n" for n in names),
        parts["SignedHeaders"],
        handler.headers["x-amz-content-sha256"],
    ])
    scope = f"{day}/{region}/s3/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, scope,
                         hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    wanted = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return None if hmac.compare_digest(wanted, parts["Signature"]) else "SignatureDoesNotMatch"


def new_key():
    """A temporary identity: (access key, secret, session token, its end)."""
    with lock:
        counters["keys"] += 1
        number = counters["keys"]
        temporary[f"TEMP{number}"] = [f"secret {number}", f"token {number}", options.key_uses]
    end = datetime.fromtimestamp(time.time() + 3600, timezone.utc)
    return f"TEMP{number}", f"secret {number}", f"token {number}", f"{end:%Y-%m-%dT%H:%M:%SZ}"


def key_document():
    access, secret, token, end = new_key()
    return json.dumps({"Code": "Success", "AccessKeyId": access, "SecretAccessKey": secret, "Token": token,
                       "Expiration": end}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None):
        cut = self.fault == "cut" and len(body) > 1
        if self.fault == "drop" or self.fault == "cut" and not cut:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True

    def refuse(self, status, code, message=""):
        self.answer(status, f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>"
                            f"{escape(message)}</Message></Error>".encode())

    def handle_one(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.fault = None
        split = urllib.parse.urlsplit(self.path)
        if split.path == "/-/counters":
            return self.answer(200, json.dumps(counters | {"objects": len(objects)}).encode())
        if (split.path.startswith(("/latest/", "/container")) or self.command == "POST"):
            return self.give_keys(split.path, body)
        with lock:
            counters["requests"] += 1
            for what, every in options.faults:
                if every and counters["requests"] % every == 0:
                    self.fault = what
                    counters["faults"] += 1
        if self.fault in ("500", "503"):
            return self.refuse(int(self.fault), "SlowDown" if self.fault == "503" else "InternalError")
        if self.fault == "slow":
            time.sleep(0.2)
        wrong = signature_error(self, body)
        if wrong:
            with lock:
                counters["unsigned"] += 1
            return self.refuse(400 if wrong == "ExpiredToken" else 403, wrong, "signature")
        path = urllib.parse.unquote(split.path)
        bucket, _, key = path[1:].partition("/")
        if bucket != BUCKET:
            return self.refuse(404, "NoSuchBucket")
        query = dict(urllib.parse.parse_qsl(split.query, keep_blank_values=True))
        with lock:
            return getattr(self, "on_" + self.command.lower())(key, query, body)

    def give_keys(self, path, body):
        if path == "/container":
            if self.headers.get("Authorization") != "agent's token":
                return self.answer(401)
            return self.answer(200, key_document())
        if self.command == "POST":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            if form.get("Action") != "AssumeRoleWithWebIdentity" or form.get("WebIdentityToken") != "a+b/c=":
                return self.answer(403, b"<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>")
            access, secret, token, end = new_key()
            return self.answer(200, (
                "<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
                f"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{access}</AccessKeyId>"
                f"<SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>"
                f"<Expiration>{end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
                "</AssumeRoleWithWebIdentityResponse>").encode())
        if self.command == "PUT" and path == "/latest/api/token":
            asked = "X-aws-ec2-metadata-token-ttl-seconds" in self.headers
            return self.answer(200 if asked else 400, b"session")
        if self.headers.get("X-aws-ec2-metadata-token") != "session":
            return self.answer(401)  # version 1 is switched off
        roles = "/latest/meta-data/iam/security-credentials/"
        return self.answer(200, b"worker" if path == roles else key_document()) if path.startswith(roles) else self.answer(404)

    do_GET = do_PUT = do_DELETE = do_POST = handle_one

    def on_get(self, key, query, _):
        if key == "":
            return self.list(query)
        if key not in objects:
            return self.refuse(404, "NoSuchKey")
        data, etag, _ = objects[key]
        self.answer(200, data, {"ETag": etag})

    def list(self, query):
        if query.get("list-type") != "2":
            return self.refuse(400, "InvalidArgument")
        keys = sorted(k for k in objects if k.startswith(query.get("prefix", "")))
        after = query.get("continuation-token", "")
        keys = [k for k in keys if k > after]
        page, more = keys[:PAGE], len(keys) > PAGE
        items = "".join(
            f"<Contents><Key>{escape(k)}</Key><LastModified>"
            f"{datetime.fromtimestamp(objects[k][2], timezone.utc):%Y-%m-%dT%H:%M:%S.000Z}"
            f"</LastModified><ETag>{escape(objects[k][1])}</ETag><Size>{len(objects[k][0])}</Size>"
            "</Contents>" for k in page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        self.answer(200, f"<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>"
                         f"{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>".encode())

    def on_put(self, key, _, body):
        if not options.ignore_conditions:
            absent, match = self.headers.get("If-None-Match"), self.headers.get("If-Match")
            if match is not None and key not in objects:
                return self.refuse(404, "NoSuchKey")
            if (absent == "*" and key in objects) or \
                    (match is not None and objects[key][1] != match):
                counters["conflicts"] += 1
                return self.refuse(412, "PreconditionFailed")
        etag = '"' + hashlib.md5(body).hexdigest() + '"'
        objects[key] = (body, etag, time.time())
        self.answer(200, b"", {"ETag": etag})

    def on_delete(self, key, *_):
        objects.pop(key, None)
        self.answer(204)


parser = argparse.ArgumentParser()
parser.add_argument("port_file")
parser.add_argument("--ignore-conditions", action="store_true")
parser.add_argument("--key-uses", type=int, default=1_000_000)
parser.add_argument("--faults", default="", type=lambda text: [
    (what, int(every)) for what, every in (p.split(":") for p in text.split(",") if p)])
options = parser.parse_args()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(options.port_file + ".new", "w", encoding="utf-8") as file:
    file.write(str(server.server_port))
# Renamed last: who waits for the file finds the port in it.
os.rename(options.port_file + ".new", options.port_file)
server.serve_forever()
