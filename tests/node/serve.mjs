// Answers requests of the Python tests, one JSON object a line: `{"id", "op": "file.function", "args"}` on standard
// input, `{"id", "value"}` or `{"id", "error": {"name", "message"}}` on standard output, in any order.
// An operation is an exported function of a file in ops/, loaded when it is first asked for: a new concern is a new file.
// It knows none of them.

import { createInterface } from 'node:readline';

// What a client prints is no answer: standard output belongs to the protocol.
for (const name of ['log', 'info', 'debug', 'warn']) {
  console[name] = console.error;
}

async function answer({ id, op, args }) {
  try {
    const [file, name] = op.split('.');
    const operation = (await import(`./ops/${file}.mjs`))[name];
    if (operation === undefined) {
      throw new TypeError(`ops/${file}.mjs exports no ${name}`);
    }
    return { id, value: await operation(args) };
  } catch (error) {
    return { id, error: { name: error?.name ?? 'Error', message: String(error?.message ?? error) } };
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  answer(JSON.parse(line)).then((done) => process.stdout.write(`${JSON.stringify(done)}\n`));
}
