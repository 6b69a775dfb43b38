import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";

/** The types of frames (RFC 9113, 6). */
export const FRAME = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, ping: 6, goaway: 7, window: 8, continuation: 9 } as const;
/** What the flags of frames say. */
export const FLAG = { endStream: 1, ack: 1, endHeaders: 4 } as const;
/** The codes that reset a stream or end a connection. */
export const CODE = { none: 0, protocol: 1, internal: 2, flow: 3, refused: 7, cancel: 8, calm: 11 } as const;

/** A frame that came. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES = 9;

/** The bytes of a frame. */
export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as HPACK has them without an index (RFC 7541, 6.2.2), each in full. */
export function headerBlock(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), hpackText(name), hpackText(value)]));
}

function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const digits = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) digits.push((rest % 128) + 128);
  return Buffer.concat([Buffer.from([...digits, rest]), bytes]);
}

/** The headers of a request. */
export function requestHeaders(method: string, path: string, more: readonly (readonly [string, string])[] = []): Buffer {
  return headerBlock([[":method", method], [":path", path], [":scheme", "https"], [":authority", "localhost"], ...more]);
}

/** Four bytes. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A setting: its number and its value. */
export function setting(id: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([id >> 8, id & 0xff]), uint32(value)]);
}

/** A connection on which a test writes frames of HTTP/2 as it likes, and reads those that come. */
export class FrameConnection {
  readonly socket: TLSSocket;
  /** What is under it. */
  readonly tcp: Socket;
  readonly frames: Frame[] = [];
  #received = Buffer.alloc(0);
  #isOver = false;
  #changed: (() => void)[] = [];

  private constructor(socket: TLSSocket, tcp: Socket) {
    this.socket = socket;
    this.tcp = tcp;
    socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#cut();
      this.#tell();
    });
    // A reset is one of the ways in which a connection ends here.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#isOver = true;
      this.#tell();
    });
  }

  /** A connection whose client has chosen HTTP/2. `greets`: it has sent the preface and its settings. */
  static async open(
    port: number,
    ca: string,
    { greets = true, settings = Buffer.alloc(0) }: { greets?: boolean; settings?: Buffer } = {},
  ): Promise<FrameConnection> {
    const tcp = connectTcp(port, "127.0.0.1");
    // One that is reset under TLS is over all the same.
    tcp.on("error", () => undefined);
    const socket = connect({ socket: tcp, host: "127.0.0.1", ca, ALPNProtocols: ["h2"] });
    await once(socket, "secureConnect");
    assert.equal(socket.alpnProtocol, "h2");
    const connection = new FrameConnection(socket, tcp);
    if (greets) connection.write(Buffer.from(PREFACE), frame(FRAME.settings, 0, 0, settings));
    return connection;
  }

  write(...bytes: readonly Buffer[]): void {
    if (this.socket.writable) this.socket.write(Buffer.concat(bytes));
  }

  /** The first frame that came or comes that `isMeant`; rejects when the connection ends before it. */
  async frame(isMeant: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const found = this.frames.find(isMeant);
      if (found !== undefined) return found;
      if (this.#isOver) throw new Error("the connection ended before the frame came");
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
  }

  /**
   * The code that the server ends the connection with; `null` when it is cut, or a reset has taken the goodbye away.
   */
  async goaway(): Promise<number | null> {
    for (;;) {
      const said = this.frames.find(({ type }) => type === FRAME.goaway);
      if (said !== undefined || this.#isOver) return said?.payload.readUInt32BE(4) ?? null;
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
  }

  /** Resolves when the connection is gone. */
  async ended(): Promise<void> {
    while (!this.#isOver) await new Promise<void>((resolve) => this.#changed.push(resolve));
  }

  /** The code that a stream is reset with. */
  async reset(stream: number): Promise<number> {
    return (await this.frame((each) => each.type === FRAME.reset && each.stream === stream)).payload.readUInt32BE(0);
  }

  close(): void {
    this.socket.destroy();
    this.tcp.destroy();
  }

  #cut(): void {
    while (this.#received.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + this.#received.readUIntBE(0, 3);
      if (this.#received.length < end) return;
      const [type, flags, stream] = [this.#received.readUInt8(3), this.#received.readUInt8(4), this.#received.readUInt32BE(5)];
      this.frames.push({ type, flags, stream, payload: Buffer.from(this.#received.subarray(HEAD_BYTES, end)) });
      this.#received = this.#received.subarray(end);
    }
  }

  #tell(): void {
    for (const resolve of this.#changed.splice(0)) resolve();
  }
}
