import type { Position } from "../../storage.js";
import { FORMAT, seal, unseal } from "../format/sidecar.js";

/** An accepted loss: positions from one on, which readers may have seen with other bytes, are given out again. */
export interface AcceptedLoss {
  readonly position: Position;
  /** Why the stream was refused. */
  readonly reason: string;
  readonly acceptedAtMs: number;
}

/** The losses of one stream that were accepted, oldest first. */
export interface Losses {
  readonly id: string;
  readonly name: string;
  readonly accepted: readonly AcceptedLoss[];
}

/** Older ones are forgotten. */
const MAX_ACCEPTED = 100;

/** Losses as they are kept in the stream's directory. */
export function encodeLosses({ id, name, accepted }: Losses): Buffer {
  return seal([
    ["format", FORMAT],
    ["id", id],
    ["name", name],
    ["accepted", accepted.slice(-MAX_ACCEPTED)],
  ]);
}

/** Reads them; or says in words what is wrong with them. */
export function decodeLosses(bytes: Buffer): Losses | string {
  const sealed = unseal(bytes);
  if ("problem" in sealed) return sealed.problem;
  // The checksum has vouched for the text: it is what encodeLosses wrote.
  const { format, id, name, accepted } = JSON.parse(sealed.text) as Losses & { readonly format: number };
  return format === FORMAT
    ? { id, name, accepted }
    : `format ${format} is not known to this version, which writes format ${FORMAT}`;
}

/** A loss in words. */
export function describeLoss({ position, reason, acceptedAtMs }: AcceptedLoss): string {
  return `what it had from position ${position} on was given up at ${new Date(acceptedAtMs).toISOString()}: ${reason}`;
}
