/** What an upload sends. It can be sent again after a failure, unless it is a stream. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { EligibleMember } from "./schema.js";

/** The path of a file, bytes, a stream of bytes (of Node or of the web), or records. */
export type Source = string | URL | Uint8Array | AsyncIterable<Uint8Array> | Iterable<EligibleMember>;
/** Called after each piece of an upload; `size` is undefined for a stream. It begins again when the upload is repeated. */
export type Progress = (sent: number, size: number | undefined) => void;

/** `size` is undefined for a stream. `pieces` are the bytes from the beginning; a stream has them once. */
export interface Content {
  readonly size: number | undefined;
  readonly isRecords: boolean;
  readonly progress: Progress | undefined;
  pieces(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

const PIECE_BYTES = 64 * 1024;

/** The content of a source. Rejects if there is no such file. */
export async function contentOf(source: Source, progress?: Progress): Promise<Content> {
  if (typeof source === "string" || source instanceof URL) {
    const { size } = await stat(source);
    // A file may grow while it is sent: only what it had at first is sent.
    return { size, isRecords: false, progress, pieces: () => (size ? createReadStream(source, { end: size - 1 }) : []) };
  }
  if (Symbol.asyncIterator in source) return { size: undefined, isRecords: false, progress, pieces: () => source };
  const isRecords = !(source instanceof Uint8Array);
  const bytes = isRecords ? Buffer.from(Array.from(source, (record) => `${JSON.stringify(record)}\n`).join("")) : source;
  return { size: bytes.length, isRecords, progress, pieces: () => sliced(bytes) };
}

function* sliced(bytes: Uint8Array): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** A content on its way. `failure` is what went wrong with it, not with the connection. */
export class Upload {
  failure: unknown;
  constructor(readonly content: Content, readonly alarm: NodeJS.Timeout) {}

  async *pieces(): AsyncGenerator<Uint8Array> {
    const { size = 0, progress } = this.content;
    let sent = 0;
    try {
      for await (const piece of this.content.pieces()) {
        yield piece;
        this.alarm.refresh();
        sent += piece.length;
        progress?.(sent, this.content.size);
      }
      if (sent < size) throw new Error("The file became shorter while it was sent. Send it again.");
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}
