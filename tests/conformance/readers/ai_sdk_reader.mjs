// AI SDK: `streamText` over its providers and over stream parts, and `readUIMessageStream` over UI message chunks. The names
// of a case's calls are the tools that the request declares.

import { answering, failed, load, reader as named } from './body.mjs';

const ai = await load('ai/dist/index.js');
const { createAnthropic } = await load('@ai-sdk/anthropic/dist/index.js');
const { createGoogleGenerativeAI } = await load('@ai-sdk/google/dist/index.js');
const { createOpenAI } = await load('@ai-sdk/openai/dist/index.js');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible/dist/index.js');

globalThis.AI_SDK_LOG_WARNINGS = false;
export const reader = named('ai', 'AI SDK');

const asked = (fetch) => ({ name: 'c', apiKey: 'none', baseURL: 'http://case', fetch });

/** A model whose parts are the body. */
const parts = (fetch) => ({
  specificationVersion: 'v4',
  provider: 'parts',
  modelId: 'm',
  supportedUrls: {},
  async doStream() {
    const stream = ai.parseJsonEventStream({ stream: (await fetch()).body, schema: ai.jsonSchema({}) });
    const values = new TransformStream({
      transform(found, controller) {
        if (found.success) {
          controller.enqueue(found.value);
        } else {
          controller.error(found.error);
        }
      },
    });
    return { stream: stream.pipeThrough(values) };
  },
});

const MODELS = {
  chat: (fetch) => createOpenAICompatible(asked(fetch))('m'),
  responses: (fetch) => createOpenAI(asked(fetch)).responses('gpt-5'),
  anthropic: (fetch) => createAnthropic(asked(fetch))('claude-sonnet-4-5'),
  gemini: (fetch) => createGoogleGenerativeAI(asked(fetch))('gemini-2.5-pro'),
  'ai-sdk-parts': parts,
};

export async function read(one, reads) {
  const fetch = answering(reads);
  if (one.dialect === 'ai-sdk-ui') {
    return ui(fetch);
  }
  const model = MODELS[one.dialect];
  return model ? text(model(fetch), one) : null;
}

async function text(model, one) {
  const names = (one.expect.calls ?? []).map((call) => call.name).filter(Boolean);
  const tool = ai.dynamicTool({ description: 'any', inputSchema: ai.jsonSchema({ type: 'object' }) });
  const tools = Object.fromEntries(names.map((name) => [name, tool]));
  const held = { error: null, calls: [], text: '', reasoning: '' };
  try {
    const result = ai.streamText({ model, prompt: 'hi', tools, maxRetries: 0, onError: () => undefined });
    for await (const part of result.fullStream) {
      if (part.type === 'text-delta') {
        held.text += part.text;
      } else if (part.type === 'reasoning-delta') {
        held.reasoning += part.text;
      } else if (part.type === 'tool-call' && !part.invalid && !part.providerExecuted) {
        held.calls.push({ id: part.toolCallId, name: part.toolName, arguments: part.input });
      } else if (part.type === 'error') {
        held.error ??= failed(part.error);
      }
    }
  } catch (error) {
    held.error ??= failed(error);
  }
  return held.error === null ? held : { ...held, calls: [] };
}

async function ui(fetch) {
  let error = null;
  let last;
  try {
    const chunks = ai
      .parseJsonEventStream({ stream: (await fetch()).body, schema: ai.uiMessageChunkSchema })
      .pipeThrough(
        new TransformStream({
          transform(found, controller) {
            if (!found.success) {
              throw found.error;
            }
            if (found.value.type === 'error') {
              error ??= found.value.errorText;
            }
            controller.enqueue(found.value);
          },
        })
      );
    const onError = (thrown) => {
      error ??= failed(thrown);
    };
    for await (const message of ai.readUIMessageStream({ stream: chunks, onError, terminateOnError: true })) {
      last = message;
    }
  } catch (thrown) {
    error ??= failed(thrown);
  }
  const all = last?.parts ?? [];
  const said = (type) => all.filter((part) => part.type === type).map((part) => part.text);
  const calls = all
    .filter((part) => part.type.startsWith('tool-') || part.type === 'dynamic-tool')
    .filter((part) => !part.providerExecuted && !['input-streaming', 'output-error'].includes(part.state))
    .map((part) => ({
      id: part.toolCallId,
      name: part.toolName ?? part.type.slice('tool-'.length),
      arguments: part.input,
    }));
  return { error, calls: error === null ? calls : [], text: said('text').join(''), reasoning: said('reasoning').join('') };
}
