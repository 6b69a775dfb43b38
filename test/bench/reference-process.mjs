import { DurableStreamTestServer } from "@durable-streams/server";

/*
 * The reference server, with its files in the directory that is its only argument. It prints its port.
 */

const server = new DurableStreamTestServer({ port: 0, dataDir: JSON.parse(process.argv[2]), compression: false });
console.log(`port ${new URL(await server.start()).port}`);
