// What a customer writes with openapi-fetch and the types of openapi-typescript. Arguments: see hey_api.ts.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./client";

const [address, client_id, client_secret, path] = process.argv.slice(2) as [string, string, string, string];

type NewMember = components["schemas"]["NewMember"];
const robin: NewMember = {
  external_id: "E-1", member_id: "M-1", first_name: "Robin", last_name: "Sample", dob: "1977-01-11", gender: "female",
  zipcode: "02134", effective_date: "2026-01-01", metadata: { department: "North" },
};
// @ts-expect-error A new member needs more.
const incomplete: NewMember = { external_id: "E-2" };

async function main() {
  const client = createClient<paths>({ baseUrl: address });
  const token = await client.POST("/oauth/token", {
    body: { grant_type: "client_credentials", client_id, client_secret },
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  });
  const headers = { Authorization: `Bearer ${token.data!.access_token}` };
  const params = { path: { plan_id: 1 } };
  const enrol = (body: components["schemas"]["EligibleMember"]) =>
    client.POST("/v2/plans/{plan_id}/eligibility", { params, headers, body });
  const created = await enrol(robin);
  const changed = await enrol({ external_id: "E-1", last_name: "Sample-Lee" });
  const refused = await enrol(incomplete);
  const uploaded = await client.POST("/v2/plans/{plan_id}/eligibility-files", {
    params: { ...params, query: { dry_run: true } },
    headers: { ...headers, "Content-Type": "application/octet-stream" },
    body: readFileSync(path, "utf-8"),
    bodySerializer: (content) => content,
  });
  console.log(JSON.stringify({
    created: created.response.status, changed: changed.data!.last_name, refused: refused.response.status,
    uploaded: uploaded.response.status, file: uploaded.data,
  }));
}

void main();
