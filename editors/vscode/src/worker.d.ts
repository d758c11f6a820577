/** The bundle of a script, as text to start a worker from: see `worker` in esbuild.mjs. */
declare module "worker:*" {
  const source: string;
  export default source;
}
