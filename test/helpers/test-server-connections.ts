import { subscribe } from "node:diagnostics_channel";
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";

/** What Node tells of each connection that a server of this process accepts. */
const CHANNEL = "net.server.socket";

/** What servers of this process have open. */
const sockets = new Map<Socket, string>();
const sessions = new Map<ServerHttp2Session, string>();
const streams = new Map<ServerHttp2Stream, string>();

subscribe(CHANNEL, (message) => {
  const { socket } = message as { readonly socket: Socket }; // as Node documents it
  sockets.set(socket, placeOf(socket));
  socket.once("close", () => sockets.delete(socket));
});

// Node tells of sessions and streams by events of the server alone, which is out of a test's reach.
const prototype = Object.getPrototypeOf(createServer()) as Http2Server; // it is one's prototype
const emit: (this: unknown, event: string, ...args: unknown[]) => boolean = prototype.emit;
Object.assign(prototype, {
  emit(this: unknown, event: string, ...args: unknown[]): boolean {
    if (event === "session") noteSession(args[0] as ServerHttp2Session); // the event's argument
    if (event === "stream") noteStream(args[0] as ServerHttp2Stream); // the event's argument
    return emit.call(this, event, ...args);
  },
});

function noteSession(session: ServerHttp2Session): void {
  sessions.set(session, placeOf(session.socket));
  session.once("close", () => sessions.delete(session));
}

function noteStream(stream: ServerHttp2Stream): void {
  if (stream.session === undefined) return;
  streams.set(stream, placeOf(stream.session.socket));
  stream.once("close", () => streams.delete(stream));
}

function placeOf({ localPort, remotePort }: Pick<Socket, "localPort" | "remotePort">): string {
  return `${localPort} from ${remotePort}`;
}

/** The connections that the servers on `ports` have open, with their sessions and streams, and the state of each: a line each. */
export function openConnections(ports: readonly number[]): string[] {
  const isMeant = ([, place]: readonly [unknown, string]): boolean => ports.some((port) => place.startsWith(`${port} from `));
  return [
    ...[...sockets].filter(isMeant).map(([socket, place]) => `socket ${place}: ${stateOf(socket)}`),
    ...[...sessions].filter(isMeant).map(([session, place]) => `session ${place}: ${stateOf(session)}`),
    ...[...streams].filter(isMeant).map(([stream, place]) => `stream ${stream.id} of ${place}: ${stateOf(stream)}`),
  ];
}

/** What Node says of one of them, as far as it has it. */
const STATES = ["closed", "destroyed", "aborted", "rstCode", "pending", "writableEnded", "writableFinished", "readableEnded", "state"];

function stateOf(of: object): string {
  return JSON.stringify(Object.fromEntries(STATES.map((name) => [name, Reflect.get(of, name) as unknown])));
}
