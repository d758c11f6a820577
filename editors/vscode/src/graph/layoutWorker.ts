// Lays graphs out beside the page, which stays quick meanwhile. Bundled into the page as text: see `worker` in esbuild.mjs.
import { type LayoutRequest, layOut } from "./layout";

const worker = globalThis as unknown as {
  onmessage: (event: MessageEvent<LayoutRequest>) => void;
  postMessage(message: unknown): void;
};
worker.onmessage = ({ data }) => worker.postMessage(layOut(data));
