import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AuthFile } from "../../helpers/auth-file.js";
import { REQUEST_PATHS, takePath } from "../../helpers/request-paths.js";
import { startServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };

for (const path of REQUEST_PATHS)
  describe(`an answer by SSE, ${path} path`, () => {
    for (const [title, target] of [
      ["of a stream", "a?live=sse&offset=-1"],
      ["of the list", "/v1/stream/__ds/streams?live=sse"],
    ] as const)
      test(`${title} is for its client alone where a credential was asked for, and kept by nobody`, async (context) => {
        takePath(context, path);
        const file = new AuthFile();
        const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: ["create", "read", "list"] }])}` };
        file.grantPublic([{ streams: ["**"], allow: ["read", "list"] }]);
        file.write();
        const server = await startServer(context, { auth: file.path });
        await server.send("PUT", "a", { headers: { ...owner, ...TEXT } });
        for (const [headers, control, vary] of [
          [owner, "private, no-cache, no-transform", /Authorization/],
          [{}, "no-cache, no-transform", /^((?!Authorization).)*$/],
        ] as const) {
          const connection = await server.begin("GET", target, { headers });
          const head = await connection.until("\r\n\r\n");
          assert.match(head, new RegExp(`^Cache-Control: ${control}\r$`, "m"));
          assert.match((head.match(/^Vary: .*$/gm) ?? []).join(), vary);
        }
      });
  });
