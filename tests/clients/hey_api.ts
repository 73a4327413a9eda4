// What a customer writes with the client of hey-api. Arguments: address, client_id, client_secret, a file.
import { readFileSync } from "node:fs";
import { enrolMember, issueToken, uploadEligibilityFile, type NewMember } from "./client";
import { client } from "./client/client.gen";

const [address, client_id, client_secret, path] = process.argv.slice(2) as [string, string, string, string];

const robin: NewMember = {
  external_id: "E-1", member_id: "M-1", first_name: "Robin", last_name: "Sample", dob: "1977-01-11", gender: "female",
  zipcode: "02134", effective_date: "2026-01-01", metadata: { department: "North" },
};
// @ts-expect-error A new member needs more.
const incomplete: NewMember = { external_id: "E-2" };

async function main() {
  client.setConfig({ baseUrl: address, throwOnError: true });
  const token = await issueToken({
    body: { grant_type: "client_credentials", client_id, client_secret }, throwOnError: true,
  });
  client.setConfig({ auth: token.data.access_token });
  const plan = { plan_id: 1 };
  const created = await enrolMember({ path: plan, body: robin, throwOnError: true });
  const changed = await enrolMember({
    path: plan, body: { external_id: "E-1", last_name: "Sample-Lee" }, throwOnError: true,
  });
  const refused = await enrolMember({ path: plan, body: incomplete, throwOnError: false });
  const uploaded = await uploadEligibilityFile({
    path: plan, query: { dry_run: true }, body: new Blob([readFileSync(path)]), throwOnError: true,
  });
  console.log(JSON.stringify({
    created: created.response.status, changed: changed.data.last_name, refused: refused.response?.status,
    uploaded: uploaded.response.status, file: uploaded.data,
  }));
}

void main();
