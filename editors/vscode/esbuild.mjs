// Bundles the extension (Node), its pages (browser) and, with --tests, its unit tests. --production: minified, with the licences of what is in it.
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import * as esbuild from "esbuild";

const production = process.argv.includes("--production");
const common = {
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  logLevel: "warning",
  metafile: true,
  legalComments: "none",
};

/** `import source from "worker:./name"`: the bundle of that script as text, for a page that starts a worker from it. */
const workerInputs = new Set();
const worker = {
  name: "worker",
  setup(build) {
    build.onResolve({ filter: /^worker:/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, `${path.slice("worker:".length)}.ts`),
      namespace: "worker",
    }));
    build.onLoad({ filter: /./, namespace: "worker" }, async ({ path }) => {
      const { entryPoints: _, outdir: __, ...options } = build.initialOptions;
      const made = await esbuild.build({ ...options, plugins: [], entryPoints: [path], write: false, sourcemap: false, metafile: true });
      for (const input of Object.keys(made.metafile.inputs)) workerInputs.add(input);
      return {
        contents: made.outputFiles[0].text,
        loader: "text",
        watchFiles: Object.keys(made.metafile.inputs).map((input) => resolve(input)),
      };
    });
  },
};

/** One bundle for the extension host, one for each page. */
const bundles = [
  {
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  },
  {
    ...common,
    entryPoints: { session: "src/session/page.ts", graph: "src/graph/page.ts" },
    outdir: "dist/pages",
    platform: "browser",
    format: "iife",
    target: "es2022",
    loader: { ".css": "css" },
    plugins: [worker],
  },
];

/** Packages that were bundled into another before we got it. */
const WITHIN = { "@dagrejs/dagre": ["@dagrejs/graphlib"] };

if (production) copyFileSync("../../LICENSE", "LICENSE");
if (process.argv.includes("--tests")) {
  rmSync("dist-test", { recursive: true, force: true });
  const entryPoints = readdirSync("test", { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join("test", name));
  const banner = { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' };
  await esbuild.build({
    ...common,
    minify: false,
    sourcemap: "inline",
    entryPoints,
    outdir: "dist-test",
    outExtension: { ".js": ".mjs" },
    outbase: "test",
    platform: "node",
    format: "esm",
    target: "node20",
    banner,
    external: ["playwright-core"],
  });
} else if (process.argv.includes("--watch")) {
  for (const options of bundles) await (await esbuild.context({ ...options, logLevel: "info" })).watch();
} else {
  rmSync("dist", { recursive: true, force: true });
  const inputs = (await Promise.all(bundles.map((options) => esbuild.build(options)))).flatMap((result) =>
    Object.keys(result.metafile.inputs),
  );
  writeFileSync("dist/THIRD-PARTY-NOTICES.txt", notices([...inputs, ...workerInputs]));
}

/** The licence texts of the packages that the bundles were made of. Throws when one has none: nothing is shipped without its licence. */
function notices(files) {
  const folders = new Set(
    files.map((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter((folder) => folder !== undefined),
  );
  for (const [name, inside] of Object.entries(WITHIN))
    if (folders.has(join("node_modules", name))) for (const within of inside) folders.add(join("node_modules", within));
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry)) ?? parentLicence(folder);
    if (!file) throw new Error(`${name} ${version}: no licence file in ${folder}`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return `What is bundled into this extension, and its licences.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

function parentLicence(folder) {
  const above = join("..", "LICENSE");
  return existsSync(join(dirname(folder), "LICENSE")) ? above : undefined;
}
