// Reads patterns from a file of JSON and prints what recheck says of each: safe, or how fast the time of a match can grow.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [tools, file] = process.argv.slice(2);
const { checkSync } = createRequire(`${tools}/`)("recheck");
const verdicts = JSON.parse(readFileSync(file, "utf8")).map(({ source, flags }) => {
  const { status, complexity, error } = checkSync(source, flags, { timeout: 60_000, randomSeed: 1 });
  return { status, growth: complexity?.summary ?? error?.message ?? error?.kind };
});
console.log(JSON.stringify(verdicts));
