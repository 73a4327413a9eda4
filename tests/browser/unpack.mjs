// Unpacks the Chromium of npm's @sparticuz/chromium into a folder, once, while `make setup` runs: the
// program, its graphics library, a font, and the libraries that a bare Debian lacks.
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, folder] = process.argv.slice(2).map((path) => resolve(path));
const main = createRequire(`${modules}/`).resolve("@sparticuz/chromium");
const { inflate } = await import(pathToFileURL(main));

// `inflate` writes to the temporary folder, and takes what lies there already for whole.
const unfinished = `${folder}.unfinished`;
rmSync(folder, { recursive: true, force: true });
rmSync(unfinished, { recursive: true, force: true });
mkdirSync(unfinished);
process.env.TMPDIR = unfinished;
for (const part of ["chromium.br", "swiftshader.tar.br", "fonts.tar.br", "al2023.tar.br"]) {
  await inflate(join(dirname(main), "../bin", part));
}
renameSync(unfinished, folder);
