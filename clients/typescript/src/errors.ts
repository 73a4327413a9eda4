/**
 * Errors of the client. The page /problems of the service explains the kinds of problems and the codes.
 *
 * Decide by the class, `error.kind` and `error.codes`; sentences may change. No message holds a value that was sent.
 */
import type { Answer } from "./connection.js";
import type { Fault, File, FileProblem, OAuthError, Problem } from "./schema.js";

type Refusal = Partial<Problem & OAuthError>;


/** Any error of this client. */
export class FrontdeskError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}
/** No answer came, in all attempts; `cause` is the last failure. The request may have been carried out. */
export class Unreachable extends FrontdeskError {}
/** The answer is not one of the service: a proxy may have answered, or the base URL is wrong. */
export class UnexpectedAnswer extends FrontdeskError {}
/** The time to wait for a file is over. The file continues; wait again, or read it later. */
export class FileNotFinished extends FrontdeskError {}
/** The message is not signed by any of the secrets, or is too old. Answer it with 401, and do nothing else. */
export class BadSignature extends FrontdeskError {}

/** The file failed, is held or was cancelled. `problem` is the file's own: code, message and place. */
export class FileNotLoaded extends FrontdeskError {
  constructor(readonly state: File["state"], readonly problem: FileProblem | null) {
    super(`The file is ${state}${problem ? `: ${problem.code}: ${problem.message}` : "."}`);
  }
}

/** The kinds of problems, and the words of RFC 6749 for a refused token. */
export type ProblemKind =
  | "malformed" | "unauthorized" | "forbidden" | "second_person_needed" | "suspended" | "not_found" | "method_not_allowed"
  | "not_acceptable" | "timeout" | "conflict" | "wrong_state" | "gone" | "precondition_failed" | "too_large"
  | "unsupported_media_type" | "invalid" | "rate_limited" | "headers_too_large" | "internal" | "unavailable"
  | OAuthError["error"];

/** The service refused the request, or failed. */
export class ApiError extends FrontdeskError {
  /** What kind of problem it is. It is `unknown` for an answer of another server, such as a proxy. */
  readonly kind: ProblemKind | "unknown";
  readonly status: number;
  readonly faults: readonly Fault[];
  /** Ignored fields and parameters, each with the similar name that exists. */
  readonly didYouMean: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** Seconds until the service wants the request again, if it says so. */
  readonly retryAfter: number | undefined;

  constructor(answer: Answer) {
    const { status, headers } = answer.response;
    const { type, detail, errors = [], did_you_mean, request_id, error, error_description }: Refusal = jsonObject(answer);
    const kind = error ?? (String(type).split("#")[1] as ProblemKind | undefined) ?? "unknown";
    const requestId = request_id ?? headers.get("x-request-id") ?? "";
    const faults = errors.map((fault) => `${fault.field}: ${fault.code} (${fault.message})`).join("; ");
    const words = faults || detail || error_description || "no details";
    super(`${status} ${kind}: ${words}${requestId && ` [request ${requestId}]`}`);
    this.kind = kind;
    this.status = status;
    this.faults = errors;
    this.didYouMean = did_you_mean ?? {};
    this.requestId = requestId;
    this.retryAfter = secondsOf(headers.get("retry-after") ?? "");
  }

  /** The codes of all faults. */
  get codes(): ReadonlySet<Fault["code"]> {
    return new Set(this.faults.map((fault) => fault.code));
  }
}

/** The JSON object of an answer; an empty one where it has none. */
export function jsonObject({ text }: Answer): Record<string, unknown> {
  try {
    const content: unknown = JSON.parse(text);
    return content !== null && typeof content === "object" ? (content as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The seconds of a Retry-After, which has seconds or a date. */
function secondsOf(text: string): number | undefined {
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(seconds, 0);
}
