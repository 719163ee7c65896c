// Runs the conformance suite over one reader. No dependencies; README.md describes cases and records.
//
// usage: node conformance.mjs ADAPTER.mjs [--cases DIR] [--json FILE] [--fail]
//
// ADAPTER.mjs exports `reader` ({name, version}) and `async read(case, reads)`, which returns the record of the case or
// null if the reader does not support it. A read is a Uint8Array. Portable cases of `stream` and `sse` run.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';

const MILLISECONDS = 20_000;
const LONGEST = 1 << 16; // of a body that is read byte by byte
const WAYS = ['as given', 'in one read', 'by byte'];
const COMPARED = ['stream', 'sse'];

export function bytesOf(entry) {
  if (typeof entry === 'string') {
    return Buffer.from(entry);
  }
  if (Array.isArray(entry)) {
    return Buffer.concat(entry.map(bytesOf));
  }
  return 'base64' in entry ? Buffer.from(entry.base64, 'base64') : Buffer.from(entry.repeat.repeat(entry.times));
}

function waysOf(reads) {
  const body = Buffer.concat(reads);
  const ways = [reads, [body]];
  if (body.length <= LONGEST) {
    ways.push(Array.from(body, (_, n) => body.subarray(n, n + 1)));
  }
  return ways;
}

/** Arguments as a value: their JSON, or the text itself where it is none. */
function valueOf(args) {
  if (typeof args !== 'string') {
    return args ?? {};
  }
  try {
    return args.trim() ? JSON.parse(args) : {};
  } catch {
    return args;
  }
}

function isSameCall(found, wanted, ids) {
  const same = found.arguments === wanted.arguments || isDeepStrictEqual(valueOf(found.arguments), valueOf(wanted.arguments));
  if (found.name !== wanted.name || !same) {
    return false;
  }
  return !ids || (wanted.id === '*' ? Boolean(String(found.id ?? '').trim()) : found.id === wanted.id);
}

function counted(number, noun) {
  return number === 1 ? `1 ${noun}` : `${number} ${noun}s`;
}

function judgeStream(expect, record) {
  const wanted = expect.runnable;
  const calls = record.calls ?? [];
  if (expect.fault) {
    if ((record.error ?? null) === null) {
      return 'the fault is not reported';
    }
    const extra = calls.find((call) => !(wanted ?? calls).some((one) => isSameCall(call, one, false)));
    return extra ? `returns an incomplete call: ${extra.name}` : null;
  }
  if ((record.error ?? null) !== null) {
    return `raises: ${record.error}`;
  }
  if (wanted) {
    if (calls.length !== wanted.length) {
      return `${counted(calls.length, 'call')} instead of ${wanted.length}`;
    }
    for (const [n, call] of calls.entries()) {
      if (!isSameCall(call, wanted[n], false)) {
        return `call ${n}: name or arguments differ`;
      }
      if (!isSameCall(call, wanted[n], true)) {
        return `call ${n}: id differs`;
      }
    }
  }
  for (const [key, member] of [['content', 'text'], ['reasoning', 'reasoning'], ['refusal', 'refusal']]) {
    if (key in expect && (record[member] ?? null) !== null && record[member] !== expect[key]) {
      return `${member} differs`;
    }
  }
  return null;
}

function judgeSse(expect, record) {
  if ((record.error ?? null) !== null) {
    return `raises: ${record.error}`;
  }
  if (record.events.length !== expect.events.length) {
    return `${counted(record.events.length, 'event')} instead of ${expect.events.length}`;
  }
  const names = ['event', 'data', 'id', 'retry'];
  for (const [n, event] of record.events.entries()) {
    for (const [k, found] of event.entries()) {
      if (!(expect.not_compared ?? []).includes(names[k]) && found !== expect.events[n][k]) {
        return `event ${n}: ${names[k]} differs`;
      }
    }
  }
  return null;
}

export function judge(one, record) {
  return one.category === 'stream' ? judgeStream(one.expect, record) : judgeSse(one.expect, record);
}

function load(folder) {
  const rows = [];
  for (const name of readdirSync(folder).sort()) {
    if (COMPARED.includes(name.replace('.jsonl', ''))) {
      rows.push(...readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)));
    }
  }
  return rows.filter((row) => row.portable);
}

async function limited(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('timed out')), MILLISECONDS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function outcome(adapter, one) {
  for (const [n, pieces] of waysOf((one.reads ?? []).map(bytesOf)).entries()) {
    let record;
    try {
      record = await limited(adapter.read(one, pieces));
    } catch (error) {
      return ['failed', `${error?.name}: ${String(error?.message ?? error).slice(0, 120)}`];
    }
    if (record === null) {
      return ['unsupported', null];
    }
    const reason = judge(one, record);
    if (reason !== null) {
      return ['failed', n ? `${WAYS[n]}: ${reason.slice(0, 140)}` : reason.slice(0, 160)];
    }
  }
  return ['passed', null];
}

async function main() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { cases: { type: 'string' }, json: { type: 'string' }, fail: { type: 'boolean', default: false } },
  });
  const folder = values.cases ?? join(dirname(fileURLToPath(import.meta.url)), '..', 'cases');
  const adapter = await import(pathToFileURL(resolve(positionals[0])).href);
  const groups = {};
  const failed = {};
  for (const one of load(folder)) {
    const [state, reason] = await outcome(adapter, one);
    if (state === 'unsupported') {
      continue;
    }
    groups[one.dialect ?? one.category] ??= { passed: 0, of: 0 };
    const group = groups[one.dialect ?? one.category];
    group.of += 1;
    group.passed += state === 'passed';
    if (state === 'failed') {
      failed[one.id] = reason;
    }
  }
  console.log(`${adapter.reader.name} ${adapter.reader.version}`);
  for (const [name, { passed, of }] of Object.entries(groups).sort()) {
    console.log(`  ${name.padEnd(14)} ${String(passed).padStart(5)} of ${of}`);
  }
  if (values.json) {
    const sorted = Object.fromEntries(Object.entries(groups).sort());
    writeFileSync(values.json, `${JSON.stringify({ reader: adapter.reader, groups: sorted, failed }, null, 1)}\n`);
  }
  process.exit(values.fail && Object.keys(failed).length ? 1 : 0);
}

// Clients that fail in the background must not end the run.
process.on('unhandledRejection', () => undefined);

await main();
