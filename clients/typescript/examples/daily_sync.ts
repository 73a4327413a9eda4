/**
 * Load the full list of a plan's members, every night: node daily_sync.ts gold-2027 members.csv
 *
 * Exit status: 0 every row was applied, 1 the file failed, 3 some rows were refused, 4 a person has to decide about the file.
 */
import { Frontdesk, FrontdeskError } from "frontdesk-client";

async function main(planName = "", path = ""): Promise<number> {
  const { FRONTDESK_URL: url = "", FRONTDESK_CLIENT_ID: id = "", FRONTDESK_CLIENT_SECRET: secret = "" } = process.env;
  const desk = new Frontdesk(url, id, secret);
  const plan = await desk.plans({ external_id: planName }).first();
  if (!plan) throw new Error(`There is no plan ${planName}.`);
  const file = await desk.upload(plan.id, path, { mode: "full" });
  await file.wait(3600);
  console.log(`File ${file.id} is ${file.state}:`, file.counts);
  if (file.problem) console.log(`${file.problem.code}: ${file.problem.message}`);
  for await (const { row, external_id, field, hint } of file.report({ outcome: "refused" }))
    console.log(`row ${row}, ${external_id}: ${field} ${hint}`);
  if (file.state === "held") return 4;
  if (file.state !== "done") return 1;
  return file.counts.refused ? 3 : 0;
}

try {
  process.exitCode = await main(...process.argv.slice(2));
} catch (error) {
  if (!(error instanceof FrontdeskError)) throw error;
  console.error(String(error));
  process.exitCode = 1;
}
