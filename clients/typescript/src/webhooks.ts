/** Verify webhooks by the Standard Webhooks specification (https://www.standardwebhooks.com). */
import { createHmac, timingSafeEqual } from "node:crypto";
import { BadSignature } from "./errors.js";
import type { Event } from "./schema.js";

const TOLERANCE_SECONDS = 300;

/** What a webhook says; the `id` of the event is the header `webhook-id`. */
export type WebhookEvent = Omit<Event, "id">;
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * The event of a webhook. `body` is the raw body, before any JSON parser; `headers` are those of Node or of fetch.
 *
 * Give both secrets while one replaces the other. A message may come more than once with the same `webhook-id`: keep the
 * ids of the messages that you have handled. Throws BadSignature: no secret has signed it, or its timestamp is more than
 * five minutes away. Throws TypeError for a secret that has not the form `whsec_…`.
 */
export function verifyWebhook(body: string | Uint8Array, headers: WebhookHeaders, secrets: string | string[]): WebhookEvent {
  const keys = [secrets].flat().map(keyOf);
  const given = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  const values = new Map(Object.entries(given).map(([name, value]) => [name.toLowerCase(), String(value)]));
  const [id, timestamp] = [values.get("webhook-id"), values.get("webhook-timestamp") ?? ""];
  if (!id || !/^\d+$/.test(timestamp)) {
    throw new BadSignature("The headers webhook-id and webhook-timestamp are missing or malformed.");
  }
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new BadSignature("The webhook-timestamp is more than five minutes away from this clock.");
  }
  const expected = keys.map((key) => createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest());
  const parts = (values.get("webhook-signature") ?? "").split(" ").filter((part) => part.startsWith("v1,"));
  const sent = parts.map((part) => Buffer.from(part.slice("v1,".length), "base64"));
  if (!expected.some((one) => sent.some((other) => one.length === other.length && timingSafeEqual(one, other)))) {
    throw new BadSignature("No signature of the message is by one of the secrets.");
  }
  return JSON.parse(Buffer.from(body).toString()) as WebhookEvent;
}

function keyOf(secret: string): Buffer {
  const text = secret.replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  if (key.length && key.toString("base64") === text) return key;
  throw new TypeError("The secret of a webhook is whsec_ and base64.");
}
