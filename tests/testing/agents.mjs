// What the AI SDK makes of the streams of a gateway, one for each model m-0, m-1, …: `agents.py` starts it.
//
//     node tests/testing/agents.mjs DIALECT URL TOOLS    (the names of the tools of each stream, as JSON)

import { load } from '../conformance/readers/body.mjs';

const ai = await load('ai/dist/index.js');
const { createAnthropic } = await load('@ai-sdk/anthropic/dist/index.js');
const { createOpenAI } = await load('@ai-sdk/openai/dist/index.js');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible/dist/index.js');

globalThis.AI_SDK_LOG_WARNINGS = false;

const [dialect, url, names] = process.argv.slice(2);
const options = { name: 'gateway', apiKey: 'none', baseURL: `${url}/v1` };
const model = {
  chat: (id) => createOpenAICompatible(options)(id),
  responses: (id) => createOpenAI(options).responses(id),
  anthropic: (id) => createAnthropic(options)(id),
}[dialect];
const tool = ai.dynamicTool({ description: 'any', inputSchema: ai.jsonSchema({ type: 'object' }) });

async function read(id, tools) {
  const held = { text: '', calls: [], success: false, error: null };
  try {
    const result = ai.streamText({ model: model(id), prompt: 'hi', tools, maxRetries: 0, onError: () => undefined });
    for await (const part of result.fullStream) {
      if (part.type === 'text-delta') {
        held.text += part.text;
      } else if (part.type === 'tool-call' && !part.invalid) {
        held.calls.push([part.toolName, part.input]);
      } else if (part.type === 'finish') {
        held.success = ['stop', 'tool-calls'].includes(part.finishReason?.unified ?? part.finishReason);
      } else if (part.type === 'error') {
        held.error = String(part.error?.name ?? part.error);
      }
    }
  } catch (error) {
    held.error = String(error?.name ?? error);
  }
  return held.error === null ? held : { ...held, success: false };
}

const found = [];
for (const [number, given] of JSON.parse(names).entries()) {
  found.push(await read(`m-${number}`, Object.fromEntries(given.map((name) => [name, tool]))));
}
console.log(JSON.stringify(found));
