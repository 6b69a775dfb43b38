import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { ALL_PATHS, takePath } from "../../helpers/request-paths.js";
import { requestBytes, startServer } from "../../helpers/test-server.js";

const ROUNDS = 40;

for (const path of ALL_PATHS)
  test(`an auth file that changes under load takes no right away for a moment, and leaves none: ${path}`, async (context) => {
    takePath(context, path);
    const file = new AuthFile();
    const steady = { Authorization: `Bearer ${file.token("steady", [{ streams: ["**"], allow: OPERATIONS }])}` };
    file.write();
    const server = await startServer(context, { auth: file.path });
    const made = await server.send("PUT", "a", { headers: { ...steady, "Content-Type": "text/plain" }, body: "hello" });
    assert.equal(made.status, 201);
    let isOver = false;
    let answered = 0;
    /** One connection that asks again and again. */
    const hammer = async (headers: Record<string, string>, allowed: readonly number[]): Promise<void> => {
      const connection = await server.connect();
      const five = Buffer.concat(Array.from({ length: 5 }, () => requestBytes("GET", "a?offset=-1", { headers })));
      while (!isOver) {
        connection.write(five);
        for (let each = 0; each < 5; each++) {
          const { status } = await connection.answer();
          assert.ok(allowed.includes(status), `${status}, not ${allowed.join(" or ")}`);
          answered += 1;
        }
      }
    };
    const hammers = [hammer(steady, [200]), hammer(steady, [200]), hammer({ Authorization: "Bearer sd_x_y" }, [401]), hammer({}, [401])];
    for (let round = 0; round < ROUNDS; round++) {
      const id = `t${round}`;
      const headers = { Authorization: `Bearer ${file.token(id, [{ streams: ["a"], allow: ["read"] }])}` };
      file.write();
      // Several at once, as SIGHUP and the watcher may come together.
      assert.deepEqual(await Promise.all([server.server.reload(), server.server.reload()]), [true, true]);
      const short = await server.connect();
      short.write(requestBytes("GET", "a?offset=-1", { headers }));
      assert.equal((await short.answer()).status, 200, "from the moment that it was taken");
      if (round % 3 === 0) {
        // Broken, empty, or half of itself: none is taken.
        writeFileSync(file.path, ["", "{", '{"tokens":[{"id":"t"'][(round / 3) % 3] ?? "");
        assert.equal(await server.server.reload(), false);
        short.write(requestBytes("GET", "a?offset=-1", { headers }));
        assert.equal((await short.answer()).status, 200, "what was taken last still holds");
      }
      if (round % 2 === 0) file.removeToken(id);
      else file.revoke({ id });
      file.write();
      assert.equal(await server.server.reload(), true);
      for (let each = 0; each < 3; each++) {
        short.write(requestBytes("GET", "a?offset=-1", { headers }));
        assert.equal((await short.answer()).status, 401, "from the moment that its end was taken");
      }
      await short.close();
    }
    isOver = true;
    await Promise.all(hammers);
    assert.ok(answered > ROUNDS);
  });
