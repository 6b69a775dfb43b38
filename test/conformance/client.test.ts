import { randomBytes, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { DurableStream, IdempotentProducer, StaleEpochError, stream, type CreateOptions } from "@durable-streams/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BuiltServer } from "./built-server.js";

let server: BuiltServer;

beforeAll(async () => {
  server = await BuiltServer.start();
});

afterAll(() => server?.stop().catch(() => undefined)); // the last test has told what is wrong with it

function newUrl(): string {
  return `${server.origin}/v1/stream/client/${randomUUID()}`;
}

function create(contentType: string, more: Partial<CreateOptions> = {}): Promise<DurableStream> {
  return DurableStream.create({ url: newUrl(), contentType, ...more });
}

/** A fetch that notes each answer as "METHOD status" and hands it to `told`. */
function tellingFetch(told: (answer: string, response: Response) => void): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    told(`${init?.method ?? "GET"} ${response.status}`, response);
    return response;
  };
}

async function textOf(handle: DurableStream): Promise<string> {
  return (await stream({ url: handle.url, live: false })).text();
}

async function itemsOf<T>(handle: DurableStream): Promise<T[]> {
  return (await stream<T>({ url: handle.url, live: false })).json();
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The example of the README for this client, against the server of the test. */
async function runExample(log: (value: unknown) => void): Promise<void> {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const [, code = ""] = /^## With the official client\n[\s\S]*?^```js\nimport [^\n]*\n([\s\S]*?)^```$/m.exec(readme) ?? [];
  const body = `return (async () => {${code.replace("http://127.0.0.1:4437", server.origin)}})()`;
  // The example is code of ours; its import is what is passed.
  const run = new Function("DurableStream", "console", body) as (
    client: typeof DurableStream,
    console: { log: typeof log },
  ) => Promise<void>;
  await run(DurableStream, { log });
}

test("the README's example prints what it says, and again", async () => {
  const printed: unknown[] = [];
  for (let run = 0; run < 2; run += 1) await runExample((value) => void printed.push(value));
  const messages = [{ role: "user", text: "hello" }];
  expect(printed).toEqual([messages, messages]);
});

describe("a stream's life", () => {
  test("is created, found, and gone after delete", async () => {
    const handle = await create("text/plain", { ttlSeconds: 3600, body: "first" });
    const found = await DurableStream.connect({ url: handle.url });
    expect(found.contentType).toBe("text/plain");
    const head = await handle.head();
    expect(head).toMatchObject({ exists: true, contentType: "text/plain", streamClosed: false });
    await handle.delete();
    expect(await handle.head()).toEqual({ exists: false });
    await expect(textOf(handle)).rejects.toThrow();
  });

  test("is refused to another configuration and given again to the same", async () => {
    const { url } = await create("text/plain");
    await expect(DurableStream.create({ url, contentType: "application/json" })).rejects.toMatchObject({ status: 409 });
    await expect(DurableStream.create({ url, contentType: "text/plain" })).resolves.toBeInstanceOf(DurableStream);
  });

  test("ends with close, which may be repeated, and takes nothing after it", async () => {
    const handle = await create("text/plain", { body: "a" });
    const { finalOffset } = await handle.close({ body: "z" });
    expect(await handle.close()).toEqual({ finalOffset });
    const refusal = { status: 409, headers: { "stream-closed": "true", "stream-next-offset": finalOffset } };
    await expect(handle.close({ body: "late" })).rejects.toMatchObject(refusal);
    expect(await handle.head()).toMatchObject({ streamClosed: true, offset: finalOffset });
    await expect(handle.append("late")).rejects.toMatchObject(refusal);
    expect(await textOf(handle)).toBe("az");
  });

  test("can begin closed with all of its content", async () => {
    const handle = await create("application/json", { body: JSON.stringify([{ only: true }]), closed: true });
    const res = await stream({ url: handle.url, live: true });
    expect(await res.json()).toEqual([{ only: true }]);
    expect(res.streamClosed).toBe(true);
  });
});

describe("appends", () => {
  test("one after the other are read in their order, and from an offset on", async () => {
    const handle = await create("text/plain");
    await handle.append("one,");
    const between = (await handle.head()) as { offset: string }; // it exists
    await handle.append("two,");
    await handle.append(bytes("three"));
    expect(await textOf(handle)).toBe("one,two,three");
    const rest = await handle.stream({ offset: between.offset, live: false });
    expect(await rest.text()).toBe("two,three");
  });

  test("made at once travel in batches and keep their order", async () => {
    const posts: string[] = [];
    const handle = await create("application/json", {
      fetch: tellingFetch((answer) => void (answer.startsWith("POST") && posts.push(answer))),
    });
    const numbers = Array.from({ length: 500 }, (_, n) => n);
    await Promise.all(numbers.map((n) => handle.append(JSON.stringify({ n }))));
    expect(posts.length).toBeLessThan(50);
    expect(await itemsOf(handle)).toEqual(numbers.map((n) => ({ n })));
  });

  test("of bytes come back bit by bit, in chunks where they are many", async () => {
    const handle = await create("application/octet-stream");
    const parts = [randomBytes(1_500_000), randomBytes(1), randomBytes(1_500_000)];
    for (const part of parts) await handle.append(part);
    let chunks = 0;
    // With live: false the client stops after the first answer, up to date or not; body() ends a live session too.
    const res = await stream({ url: handle.url, live: true, fetch: tellingFetch(() => void chunks++) });
    expect(Buffer.from(await res.body()).equals(Buffer.concat(parts))).toBe(true);
    expect(chunks).toBeGreaterThan(1);
  });

  test("of a closed stream that takes many chunks are read to the end", async () => {
    const messages = Array.from({ length: 300 }, (_, n) => ({ n, text: "x".repeat(10_000) }));
    const handle = await create("application/json", { body: JSON.stringify(messages), closed: true });
    const res = await stream({ url: handle.url, live: true });
    expect(await res.json()).toEqual(messages);
    expect(res.streamClosed).toBe(true);
  });

  test("of a body that is still being written are taken whole", async () => {
    const handle = await create("text/plain");
    async function* words() {
      for (const word of ["never ", "ask ", "the ", "length"]) yield word;
    }
    await handle.appendStream(words());
    expect(await textOf(handle)).toBe("never ask the length");
  });

  test("with a Stream-Seq that does not grow are refused", async () => {
    const handle = await create("text/plain");
    await handle.append("a", { seq: "2" });
    await expect(handle.append("b", { seq: "10" })).rejects.toMatchObject({ status: 409 });
    expect(await textOf(handle)).toBe("a");
  });
});

describe("an idempotent producer", () => {
  test("has each message stored once and in order, with five batches on their way at a time", async () => {
    const handle = await create("application/json");
    const faults: Error[] = [];
    const producer = new IdempotentProducer(handle, "writer", {
      maxBatchBytes: 64,
      lingerMs: 0,
      maxInFlight: 5,
      onError: (fault) => faults.push(fault),
    });
    const numbers = Array.from({ length: 400 }, (_, n) => n);
    for (const n of numbers) producer.append(JSON.stringify({ n }));
    await producer.flush();
    expect(faults).toEqual([]);
    expect(producer.nextSeq).toBeGreaterThan(40);
    expect(await itemsOf(handle)).toEqual(numbers.map((n) => ({ n })));
  });

  test("whose every request arrives twice writes it once", async () => {
    const handle = await create("text/plain");
    const statuses: number[] = [];
    const twice: typeof fetch = async (input, init) => {
      const first = await fetch(input, init);
      const again = await fetch(input, init);
      statuses.push(first.status, again.status);
      return again;
    };
    const producer = new IdempotentProducer(handle, "retrier", { fetch: twice, maxInFlight: 1, maxBatchBytes: 1 });
    for (const word of ["once ", "and ", "only "]) producer.append(word);
    await producer.flush();
    await producer.close("once");
    expect(await textOf(handle)).toBe("once and only once");
    expect(statuses.slice(0, 6)).toEqual([200, 204, 200, 204, 200, 204]);
    expect(statuses[7]).toBe(204);
  });

  test("of an older epoch is fenced off, and one that may claim goes on", async () => {
    const handle = await create("text/plain");
    const current = new IdempotentProducer(handle, "w", { epoch: 3 });
    current.append("3");
    await current.flush();

    const faults: Error[] = [];
    const zombie = new IdempotentProducer(handle, "w", { epoch: 1, onError: (fault) => faults.push(fault) });
    zombie.append("1");
    await zombie.flush();
    expect(faults).toHaveLength(1);
    expect(faults[0]).toBeInstanceOf(StaleEpochError);
    expect(faults[0]).toMatchObject({ currentEpoch: 3 });

    const heir = new IdempotentProducer(handle, "w", { autoClaim: true });
    heir.append("4");
    await heir.flush();
    expect(heir.epoch).toBe(4);
    expect(await textOf(handle)).toBe("34");
  });

  test("starts anew with a higher epoch, beside another producer", async () => {
    const handle = await create("application/json");
    const one = new IdempotentProducer(handle, "one");
    const other = new IdempotentProducer(handle, "other");
    one.append('"a"');
    await one.flush();
    other.append('"b"');
    await other.flush();
    await one.restart();
    one.append('"c"');
    await one.flush();
    await other.detach();
    const { finalOffset } = await one.close('"d"');
    expect(await itemsOf(handle)).toEqual(["a", "b", "c", "d"]);
    expect(await handle.head()).toMatchObject({ streamClosed: true, offset: finalOffset });
  });

  test("is what a pipe writes through", async () => {
    const handle = await create("text/plain");
    const source = new ReadableStream<string>({
      start(controller) {
        for (const word of ["through ", "a ", "pipe"]) controller.enqueue(word);
        controller.close();
      },
    });
    await source.pipeTo(handle.writable());
    expect(await textOf(handle)).toBe("through a pipe");
    expect(await handle.head()).toMatchObject({ streamClosed: true });
  });
});

describe.each(["long-poll", "sse"] as const)("a live reader by %s", (live) => {
  test("of JSON gets what was there and what comes, to the end", async () => {
    const handle = await create("application/json", { body: '[{"n":0}]' });
    const res = await handle.stream<{ n: number }>({ live });
    const seen: number[] = [];
    for await (const { n } of res.jsonStream()) {
      seen.push(n);
      if (n < 9) await handle.append(JSON.stringify({ n: n + 1 }));
      else if (n === 9) await handle.close({ body: '{"n":10}' });
    }
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(res.streamClosed).toBe(true);
  });

  test("of text gets every line end and character as written", async () => {
    const pieces = [
      "start\n",
      "one\r\ntwo\rthree\n\n",
      " data: not an event\n\nevent: control\n",
      "gr\u00fc\u00df dich \u{1f600} ",
      "\n",
      "end",
    ];
    const handle = await create("text/plain", { body: pieces[0] ?? "" });
    // SSE has one line end only: what was written as CR or CRLF reaches the reader as LF, once it is past the catch-up.
    const asRead = (index: number, piece: string) => (live === "sse" && index > 0 ? piece.replace(/\r\n?/g, "\n") : piece);
    const expected = pieces.map((piece, index) => asRead(index, piece));
    const res = await handle.stream({ live });
    let text = "";
    let written = 1;
    for await (const chunk of res.textStream()) {
      text += chunk;
      expect(text).toBe(expected.join("").slice(0, text.length));
      if (text !== expected.slice(0, written).join("")) continue;
      const next = pieces[written++];
      if (next !== undefined) await handle.append(next);
      else await handle.close();
    }
    expect(text).toBe(expected.join(""));
  });

  test("of bytes gets all 256 of them, and many", async () => {
    const pieces = [Uint8Array.from({ length: 256 }, (_, n) => n), Uint8Array.of(0), randomBytes(100_001), Uint8Array.of(255)];
    const handle = await create("application/octet-stream");
    const res = await handle.stream({ live });
    const expected = Buffer.concat(pieces);
    let received = Buffer.alloc(0);
    let written = 1;
    await handle.append(pieces[0] ?? "");
    for await (const chunk of res.bodyStream()) {
      received = Buffer.concat([received, chunk]);
      expect(received.equals(expected.subarray(0, received.length))).toBe(true);
      if (received.length !== Buffer.concat(pieces.slice(0, written)).length) continue;
      const next = pieces[written++];
      if (next !== undefined) await handle.append(next);
      else await handle.close();
    }
    expect(received.length).toBe(expected.length);
  });

  test("that begins at now gets only what comes", async () => {
    const handle = await create("application/json", { body: '["old"]' });
    const res = await handle.stream<string>({ live, offset: "now" });
    await handle.append('"new"');
    await handle.close();
    const seen: string[] = [];
    for await (const item of res.jsonStream()) seen.push(item);
    expect(seen).toEqual(["new"]);
  });

  test("is one of many, and all get the same", async () => {
    const handle = await create("application/json");
    const readers = await Promise.all(Array.from({ length: 20 }, () => handle.stream<number>({ live })));
    const seen = readers.map(async (res) => {
      const items: number[] = [];
      for await (const item of res.jsonStream()) items.push(item);
      return items;
    });
    const producer = new IdempotentProducer(handle, "w", { maxBatchBytes: 8 });
    const numbers = Array.from({ length: 50 }, (_, n) => n);
    for (const n of numbers) producer.append(JSON.stringify(n));
    await producer.close();
    for (const items of await Promise.all(seen)) expect(items).toEqual(numbers);
  });
});

test("a long-poll that nothing came for is asked again", async () => {
  const handle = await create("application/json");
  let wakeOnce = () => {};
  const waitedInVain = new Promise<void>((resolve) => (wakeOnce = resolve));
  const told = tellingFetch((answer, response) => {
    if (answer === "GET 204" && response.headers.has("stream-cursor")) wakeOnce();
  });
  const res = await stream<string>({ url: handle.url, live: "long-poll", fetch: told });
  const items = (async () => {
    const seen: string[] = [];
    for await (const item of res.jsonStream()) seen.push(item);
    return seen;
  })();
  await waitedInVain;
  await handle.append('"after the wait"');
  await handle.close();
  expect(await items).toEqual(["after the wait"]);
});

test("the server ends with status 0 on SIGTERM, whoever still reads", async () => {
  const handle = await create("text/plain");
  const res = await handle.stream({ live: "sse" });
  const reading = res.bodyStream().getReader();
  await handle.append("still here");
  await reading.read();
  await server.stop();
  res.cancel();
}, 30_000);
