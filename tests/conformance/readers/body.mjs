// The bytes of a case for clients that want HTTP: a fetch without a network.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const MODULES = process.env.CONFORMANCE_NODE ?? join(import.meta.dirname, '..', '..', 'node', 'node_modules');

/** Imports a file of an installed package, wherever the packages are. */
export const load = (path) => import(join(MODULES, path));

export function reader(packageName, name = packageName) {
  return { name, version: JSON.parse(readFileSync(join(MODULES, packageName, 'package.json'), 'utf8')).version };
}

/** A `fetch` that answers with these reads. */
export const answering = (reads) => async () => {
  const left = [...reads];
  const body = new ReadableStream({
    pull(controller) {
      if (left.length) {
        controller.enqueue(new Uint8Array(left.shift()));
      } else {
        controller.close();
      }
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
};

export const QUIET = { apiKey: 'none', baseURL: 'http://case', maxRetries: 0, logLevel: 'off' };
export const failed = (error) => `${error?.name ?? 'Error'}: ${String(error?.message ?? error).slice(0, 100)}`;
