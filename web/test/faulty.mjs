// SPDX-License-Identifier: Apache-2.0
// A server between the page and Purlin's own, which fails as servers and networks do: `faults` maps a
// part of a path to what happens to its answers.
import { createServer, request } from "node:http";
import { gunzipSync } from "node:zlib";

// A status; bytes: the answer; "cut": half of the answer, then nothing; "slow": none; a function: changes the answer's JSON.
export async function faulty(target) {
  const to = new URL(target), faults = new Map(), held = new Set(), sockets = new Set();
  const server = createServer((asked, out) => {
    const fault = [...faults].find(([part]) => asked.url.includes(part))?.[1];
    if (typeof fault === "number") { out.writeHead(fault, { "Content-Type": "application/json" }); out.end(fault === 404 ? '{"error": {"message": "no such resource"}}' : "{}"); return; }
    if (Buffer.isBuffer(fault)) { out.writeHead(200); out.end(fault); return; }
    if (fault === "slow") { held.add(out); return; }
    const headers = { ...asked.headers, host: to.host, ...(asked.headers.origin ? { origin: to.origin } : {}) };
    const inner = request({ host: to.hostname, port: to.port, path: asked.url, method: asked.method, headers }, (answer) => {
      if (!fault) { out.writeHead(answer.statusCode, answer.headers); answer.pipe(out); return; }
      const parts = [];
      answer.on("data", (d) => parts.push(d));
      answer.on("end", () => {
        const body = Buffer.concat(parts), { "content-encoding": packed, "content-length": _, "transfer-encoding": __, ...rest } = answer.headers;
        const plain = packed === "gzip" ? gunzipSync(body) : body;
        if (fault === "cut") { out.writeHead(answer.statusCode, { ...rest, "content-length": plain.length }); out.write(plain.subarray(0, plain.length >> 1), () => out.destroy()); return; }
        out.writeHead(answer.statusCode, rest);
        out.end(JSON.stringify(fault(JSON.parse(plain.toString()))));
      });
    });
    inner.on("error", () => out.destroy());
    out.on("close", () => inner.destroy());
    asked.pipe(inner);
  });
  server.on("connection", (s) => { sockets.add(s); s.on("close", () => sockets.delete(s)); });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const at = (port) => `http://127.0.0.1:${port}/`;
  return {
    url: at(server.address().port), faults,
    // Ends what is open, as a network does.
    drop: () => { for (const s of sockets) s.destroy(); held.clear(); },
    stop: () => { for (const s of sockets) s.destroy(); server.close(); },
  };
}
