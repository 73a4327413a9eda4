import { setTimeout as pause } from "node:timers/promises";
import { type Answer, type Call, type Connection, keyed, type Keyed, type List, nextOf, type Page } from "./connection.js";
import { FileNotFinished } from "./errors.js";
import type { File, Mapping, operations, ParameterReportOutcome } from "./schema.js";

type ReportQuery = NonNullable<operations["reportEligibilityFile"]["parameters"]["query"]>;
export type ReportFilter = Pick<ReportQuery, "outcome" | "code" | "external_id">;

const ENDED_STATES = new Set<File["state"]>(["done", "held", "failed", "cancelled"]);
const [FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS] = [0.2, 5];
const PAGE_OF_LINES = 5000;

/** A line of the report of a file: a row has one for its outcome, and one for each fault and each warning. */
export interface ReportLine {
  row: number | null;
  external_id: string | null;
  outcome: ParameterReportOutcome;
  code: string;
  field: string;
  hint: string;
  changed: string[];
  left_plan: string | null;
  /** Of an 834: which ST of the file, and which INS of that. */
  transaction: number | null;
  ordinal: number | null;
}

/** A file of the service: its state as it was last read, and what can be done with it. */
export class FileHandle {
  readonly #connection: Connection;
  /** Every field of the file, as it was last read. */
  data: File;

  constructor(connection: Connection, data: File) {
    this.#connection = connection;
    this.data = data;
  }

  get id() { return this.data.id; }
  get state() { return this.data.state; }
  /** Rows by outcome. */
  get counts() { return this.data.counts; }
  /** Why the file failed or is held. */
  get problem() { return this.data.problem; }

  /** Read the file's state anew. */
  refresh(): Promise<this> { return this.#become("GET"); }

  /** Wait until the file is done, held, failed or cancelled. Throws FileNotFinished after `timeoutSeconds`. */
  async wait(timeoutSeconds = Infinity): Promise<this> {
    const end = performance.now() + 1000 * timeoutSeconds;
    for (let seconds = FIRST_WAIT_SECONDS; !ENDED_STATES.has(this.state); await this.refresh()) {
      const left = (end - performance.now()) / 1000;
      if (left <= 0) throw new FileNotFinished(`File ${this.id} is ${this.state} after ${timeoutSeconds} seconds.`);
      await pause(1000 * Math.min(seconds, left));
      seconds = Math.min(seconds * 1.5, LONGEST_WAIT_SECONDS);
    }
    return this;
  }

  /** Let a held file continue as a whole. Throws `wrong_state`, `second_person_needed`. */
  approve(options: Keyed = {}): Promise<this> {
    return this.#become("POST", "/approve", { headers: keyed(options) });
  }

  /** Stop a waiting, running or held file; applied rows stay applied. Throws `wrong_state`. */
  cancel(options: Keyed = {}): Promise<this> { return this.#become("POST", "/cancel", { headers: keyed(options) }); }

  /** Give a held 834 a mapping, or the suggested one; `keep` makes it the account's default. Throws `wrong_state`. */
  acceptMapping(mapping: Mapping = {}, { keep = true, ...own }: Keyed & { keep?: boolean } = {}): Promise<this> {
    return this.#become("POST", "/mapping", { query: { keep }, body: JSON.stringify(mapping), headers: keyed(own) });
  }

  /** Undo the file's changes. Answers a new file, which does it. Throws `wrong_state`. */
  undo(options: Keyed = {}): Promise<FileHandle> {
    return readFile(this.#connection, { method: "POST", path: this.#path("/undo"), headers: keyed(options) });
  }

  /** The lines of the report in the order of the rows; while the file is loaded, those so far. */
  report(wanted: ReportFilter = {}): List<ReportLine> {
    return this.#connection.list(this.#path("/report"), { ...wanted, "page[size]": PAGE_OF_LINES }, readLines);
  }

  #path(action = ""): string {
    return `/v2/plans/${this.data.plan_id}/eligibility-files/${this.id}${action}`;
  }

  async #become(method: Call["method"], action = "", more: Omit<Call, "method" | "path"> = {}): Promise<this> {
    this.data = await this.#connection.data({ method, path: this.#path(action), ...more });
    return this;
  }
}

export async function readFile(connection: Connection, call: Call): Promise<FileHandle> {
  return new FileHandle(connection, await connection.data(call));
}

function readLines({ response, text }: Answer): Page<ReportLine> {
  const lines = text.split("\n").filter(Boolean);
  const next = /<([^>]*)>;\s*rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  return { items: lines.map((line) => JSON.parse(line) as ReportLine), next: nextOf(next) };
}
