/** The service that the tests talk to, and its members. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { ApiError, Frontdesk, type NewMember, type Options, type ProblemKind } from "frontdesk-client";

const { FRONTDESK_URL: url = "", FRONTDESK_CLIENT_ID: id = "", FRONTDESK_CLIENT_SECRET: secret = "" } = process.env;
export { url, id, secret };

export const open = (options: Options = {}, address = url) => new Frontdesk(address, id, secret, options);

/** Numbers of members: identifiers are unique over the whole service. */
let last = randomInt(2 ** 40);
export const numbers = (count: number) => Array.from({ length: count }, () => (last += 1));

export function memberOf(n: number, changes: Partial<NewMember> = {}): NewMember {
  const names = { external_id: `E-${n}`, member_id: `M-${n}`, first_name: "Noor", last_name: `Sample-${n}` };
  return { ...names, dob: "1977-01-11", gender: "female", zipcode: "02134", effective_date: "2026-01-01", ...changes };
}

const COLUMNS = ["external_id", "member_id", "first_name", "last_name", "dob", "gender", "zipcode", "effective_date"] as const;
export function csv(...members: NewMember[]): Buffer {
  const lines = members.map((member) => COLUMNS.map((column) => member[column]).join(","));
  return Buffer.from([COLUMNS.join(","), ...lines, ""].join("\n"));
}

/** The refusal, which has this kind and, if given, these codes. */
export async function refused(work: Promise<unknown>, kind: ProblemKind, ...codes: string[]): Promise<ApiError> {
  const error: unknown = await work.then(() => assert.fail(`not refused as ${kind}`), (error: unknown) => error);
  assert.ok(error instanceof ApiError, `${error}`);
  assert.equal(error.kind, kind, error.message);
  if (codes.length) assert.deepEqual([...error.codes], codes);
  return error;
}
