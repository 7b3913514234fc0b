// One source, one ES module, three hosts: anywidget, Dash, a plain HTML file.
import { context } from "esbuild";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const outfile = join(here, "..", "static", "canvas.js");

const bundle = await context({
  absWorkingDir: here,
  entryPoints: ["src/index.js"],
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  loader: { ".css": "text" },
  outfile,
});

if (process.argv.includes("--watch")) {
  await bundle.watch();
} else {
  await bundle.rebuild();
  await bundle.dispose();
  const made = readFileSync(outfile);
  console.log(`canvas.js ${made.length} bytes, ${gzipSync(made).length} gzipped`);
}
