// What a customer writes with the client of orval, whose fetch gets the token. Arguments: see hey_api.ts.
import { readFileSync } from "node:fs";
import { enrolMember, issueToken, uploadEligibilityFile, type NewMember } from "./client";

const [, client_id, client_secret, path] = process.argv.slice(2) as [string, string, string, string];

const robin: NewMember = {
  external_id: "E-1", member_id: "M-1", first_name: "Robin", last_name: "Sample", dob: "1977-01-11", gender: "female",
  zipcode: "02134", effective_date: "2026-01-01", metadata: { department: "North" },
};
// @ts-expect-error A new member needs more.
const incomplete: NewMember = { external_id: "E-2" };

async function main() {
  const token = await issueToken({ grant_type: "client_credentials", client_id, client_secret });
  if (token.status !== 200) throw new Error(JSON.stringify(token));
  const options = { headers: { Authorization: `Bearer ${token.data.access_token}` } };
  const created = await enrolMember(1, robin, {}, options);
  const changed = await enrolMember(1, { external_id: "E-1", last_name: "Sample-Lee" }, {}, options);
  if (changed.status !== 200) throw new Error(JSON.stringify(changed));
  const refused = await enrolMember(1, incomplete, {}, options);
  const uploaded = await uploadEligibilityFile(1, new Blob([readFileSync(path)]), { dry_run: true }, options);
  console.log(JSON.stringify({
    created: created.status, changed: changed.data.last_name, refused: refused.status,
    uploaded: uploaded.status, file: uploaded.data,
  }));
}

void main();
