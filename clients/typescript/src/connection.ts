/** Requests and their answers: tokens, retries and pages. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Content, Upload } from "./content.js";
import { ApiError, jsonObject, UnexpectedAnswer, Unreachable } from "./errors.js";

const REPEATED_STATUS = new Set([408, 429, 502, 503, 504]);
const REPEATED_ONCE = 500; // a fault of the service, which a second attempt may not meet
const [FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS] = [0.5, 20];
// A limit of the minute ends within it. A longer Retry-After, such as until midnight, is the caller's to wait for.
const LONGEST_RETRY_AFTER_SECONDS = 60;
const RENEW_SECONDS = 60;
const LOCAL_HOSTS = new Set(["localhost", "127.0.0.1", "[::1]"]);

export type Query = Record<string, string | number | boolean | undefined>;
export type Answer = { response: Response; text: string };

/** An option of every change. */
export interface Keyed {
  /** Your own, to be safe across restarts of your program. */
  idempotencyKey?: string;
}

/** A request; a body that is text is JSON, unless its headers say something else. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Query;
  headers?: Query;
  body?: string | Content;
}

export interface Options {
  /** Words with a space between them. Without it a token gets every scope of the client. */
  scope?: string;
  /** Longest wait for an answer, and for each piece of an upload; 30 by default. */
  timeoutSeconds?: number;
  /** Attempts of a request in all; 6 by default. */
  attempts?: number;
  /** Unknown fields and parameters are refused instead of ignored. */
  strict?: boolean;
  /** Instead of the global `fetch`, such as one with a proxy. */
  fetch?: typeof fetch;
}

export class Connection {
  readonly #baseUrl: string;
  readonly #form: URLSearchParams;
  #kept = { token: "", renewAt: 0 };
  #renewal: Promise<string> | undefined;

  constructor(baseUrl: string, clientId: string, clientSecret: string, readonly options: Options) {
    const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
    if (url?.protocol !== "https:" && !(url?.protocol === "http:" && LOCAL_HOSTS.has(url.hostname))) {
      throw new TypeError("The base URL must begin with https://, because records are health information.");
    }
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    const credentials = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
    this.#form = new URLSearchParams({ ...credentials, ...(options.scope && { scope: options.scope }) });
  }

  /** Send a call with a token and, if it changes something, an Idempotency-Key, the same one in all attempts. */
  async request(call: Call): Promise<Answer> {
    const headers: Call["headers"] = { Prefer: this.options.strict ? "handling=strict" : undefined, ...call.headers };
    if (call.method === "POST" || call.method === "PATCH") headers["Idempotency-Key"] ??= randomUUID();
    return this.#repeat({ ...call, headers }, (rejected) => this.#token(rejected));
  }

  /** The `data` of the answer. */
  async data<T>(call: Call): Promise<T> {
    return objectOf(await this.request(call)).data as T;
  }

  /** A list that is read by the page. */
  list<T>(path: string, query: Query, read: (answer: Answer) => Page<T> = readPage): List<T> {
    const request = (page: Query) => this.request({ method: "GET", path, query: page });
    return new List(async function* () {
      for (let following: Query | undefined = query; following; ) {
        const page: Page<T> = read(await request(following));
        yield* page.items;
        following = page.next;
      }
    });
  }

  /** The token: the kept one, or a new one if it is about to end or was rejected. Concurrent calls share one renewal. */
  #token(rejected: string | undefined): Promise<string> {
    const { token, renewAt } = this.#kept;
    if (token && token !== rejected && performance.now() < renewAt) return Promise.resolve(token);
    return (this.#renewal ??= this.#fetchToken().finally(() => (this.#renewal = undefined)));
  }

  async #fetchToken(): Promise<string> {
    const begun = performance.now();
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const call = { method: "POST", path: "/oauth/token", headers, body: String(this.#form) } as const;
    const answer = jsonObject(await this.#repeat(call));
    const [token, lifetime] = [answer.access_token, Number(answer.expires_in ?? 0)];
    if (typeof token !== "string") {
      throw new UnexpectedAnswer("The answer of /oauth/token has no access_token. Is the base URL right?");
    }
    this.#kept = { token, renewAt: begun + 1000 * (lifetime - Math.min(RENEW_SECONDS, lifetime / 10)) };
    return token;
  }

  /** Send a call until it succeeds, is refused for good, or no attempt is left. A 401 renews the token once. */
  async #repeat(call: Call, tokenFor?: (rejected?: string) => Promise<string>): Promise<Answer> {
    // By its method or Idempotency-Key each call may be sent again, but a stream is used up.
    const attempts = typeof call.body === "object" && call.body.size === undefined ? 0 : (this.options.attempts ?? 6);
    let rejected: string | undefined;
    let faultsOfService = 0;
    for (let attempt = 1; ; attempt += 1) {
      const token = await tokenFor?.(rejected);
      const answer = await this.#send(call, token);
      if (!(answer instanceof Unreachable) && answer.response.ok) return answer;
      const failure = answer instanceof Unreachable ? answer : new ApiError(answer);
      const isRejected = failure instanceof ApiError && failure.kind === "unauthorized";
      if (isRejected && token && !rejected && attempts) {
        rejected = token; // revoked, or a clock runs ahead
        continue;
      }
      if (failure instanceof ApiError && failure.status === REPEATED_ONCE) faultsOfService += 1;
      const isLast = attempt >= attempts || faultsOfService > 1;
      const seconds = isLast ? undefined : secondsUntilNext(failure, attempt);
      if (seconds === undefined) throw failure;
      await pause(1000 * seconds);
    }
  }

  /** One attempt: its answer, or Unreachable. Throws what is wrong with the call or its content. */
  async #send(call: Call, token: string | undefined): Promise<Answer | Unreachable> {
    const { method, path, query, body } = call;
    const request = { method, headers: headersOf(call, token), redirect: "manual", duplex: "half" } as const;
    const timeout = new AbortController();
    const alarm = setTimeout(() => timeout.abort(), 1000 * (this.options.timeoutSeconds ?? 30));
    const upload = typeof body === "object" ? new Upload(body, alarm) : undefined;
    const init = { ...request, body: upload?.pieces() ?? body, signal: timeout.signal } as RequestInit;
    try {
      const response = await (this.options.fetch ?? fetch)(this.#baseUrl + path + queryOf(query), init);
      alarm.refresh();
      return { response, text: await response.text() };
    } catch (cause) {
      if (upload?.failure) throw upload.failure;
      const reason = timeout.signal.aborted ? "it took too long" : "the connection failed";
      return new Unreachable(`${method} ${path} got no answer: ${reason}.`, { cause });
    } finally {
      clearTimeout(alarm);
    }
  }
}

/** A page of a list, and the parameters of the next one. Only these are taken from a link: no answer changes the host. */
export type Page<T> = { items: T[]; next: Query | undefined };

/** A list that is read by the page while you iterate with `for await`. */
export class List<T> implements AsyncIterable<T> {
  constructor(readonly iterate: () => AsyncGenerator<T>) {}

  [Symbol.asyncIterator](): AsyncGenerator<T> {
    return this.iterate();
  }

  /** The first item, or undefined. */
  async first(): Promise<T | undefined> {
    for await (const item of this) return item;
    return undefined;
  }

  /** Every item. */
  async all(): Promise<T[]> {
    const items: T[] = [];
    for await (const item of this) items.push(item);
    return items;
  }
}

/** The headers of a change with the caller's own key. Without it the client makes one. */
export const keyed = ({ idempotencyKey }: Keyed): Query => ({ "Idempotency-Key": idempotencyKey });

export function nextOf(link: string | undefined): Query | undefined {
  return link ? Object.fromEntries(new URL(link, "https://unused.example").searchParams) : undefined;
}

/** The JSON object of a success. Throws UnexpectedAnswer. */
export function objectOf(answer: Answer): Record<string, unknown> {
  const content = jsonObject(answer);
  if (Object.keys(content).length) return content;
  throw new UnexpectedAnswer("The answer is not a JSON object. Is the base URL right?");
}

export function readPage<T>(answer: Answer): Page<T> {
  const { data, links } = objectOf(answer) as { data?: T[]; links?: { next?: string } };
  return { items: data ?? [], next: nextOf(links?.next) };
}

function secondsUntilNext(failure: Unreachable | ApiError, attempt: number): number | undefined {
  const backoff = Math.min(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), LONGEST_PAUSE_SECONDS) * (0.5 + Math.random() / 2);
  if (!(failure instanceof ApiError)) return backoff;
  const { status, codes, retryAfter = 0 } = failure;
  const isRepeated = REPEATED_STATUS.has(status) || status === REPEATED_ONCE || codes.has("idempotency_in_flight");
  if (!isRepeated || retryAfter > LONGEST_RETRY_AFTER_SECONDS) return undefined;
  return Math.max(backoff, retryAfter * (1 + Math.random() / 10));
}

function headersOf({ headers, body }: Call, token: string | undefined): Headers {
  const made = new Headers({ Accept: "application/json", "User-Agent": "frontdesk-client-typescript/0.1.0" });
  if (token) made.set("Authorization", `Bearer ${token}`);
  if (typeof body === "string") made.set("Content-Type", "application/json");
  else if (body) made.set("Content-Type", "application/octet-stream"); // the service looks at the content
  if (typeof body === "object" && body.size !== undefined) made.set("Content-Length", String(body.size));
  for (const [name, value] of given(headers)) made.set(name, value);
  return made;
}

function queryOf(query?: Query): string {
  const parameters = given(query);
  return parameters.length ? `?${new URLSearchParams(parameters)}` : "";
}

/** The parameters that are not undefined, as text. */
function given(parameters: Query = {}): [string, string][] {
  return Object.entries(parameters).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
}
