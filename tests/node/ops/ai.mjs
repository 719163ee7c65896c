// What the AI SDK holds at the end of a stream: streamText over its providers, its gateway and a model that is nothing
// but parts; useChat's reducer and readUIMessageStream over UI chunks. The record is that of sdk.mjs, with `input`
// (a value) for `arguments`; `ran` has the ids of the calls that streamText itself ran. It compares nothing.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenResponses } from '@ai-sdk/open-responses';
import {
  AbstractChat,
  createGateway,
  DefaultChatTransport,
  dynamicTool,
  jsonSchema,
  parseJsonEventStream,
  readUIMessageStream,
  streamText,
  uiMessageChunkSchema,
} from 'ai';
import { failed } from './sdk.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

/** A provider whose parts come as they are: what `doStream` yields is the body of the answer. */
function parts(url) {
  return {
    specificationVersion: 'v4',
    provider: 'parts',
    modelId: 'm',
    supportedUrls: {},
    async doStream() {
      const answer = await fetch(url, { method: 'POST', body: '{}' });
      const schema = jsonSchema({});
      const stream = parseJsonEventStream({ stream: answer.body, schema }).pipeThrough(
        new TransformStream({
          transform(found, controller) {
            if (!found.success) {
              controller.error(found.error);
              return;
            }
            const part = found.value;
            const timed = typeof part.timestamp === 'string' ? { timestamp: new Date(part.timestamp) } : {};
            controller.enqueue({ ...part, ...timed });
          },
        })
      );
      return { stream };
    },
  };
}

const MODELS = {
  '@ai-sdk/openai chat': (url) => createOpenAI({ apiKey: 'none', baseURL: url }).chat('gpt-4.1'),
  '@ai-sdk/openai-compatible': (url) =>
    createOpenAICompatible({ name: 'c', apiKey: 'none', baseURL: url, includeUsage: true })('m'),
  '@ai-sdk/openai responses': (url) => createOpenAI({ apiKey: 'none', baseURL: url }).responses('gpt-5'),
  '@ai-sdk/open-responses': (url) => createOpenResponses({ name: 'o', apiKey: 'none', url })('m'),
  '@ai-sdk/anthropic': (url) => createAnthropic({ apiKey: 'none', baseURL: url })('claude-sonnet-4-5'),
  '@ai-sdk/google': (url) => createGoogleGenerativeAI({ apiKey: 'none', baseURL: url })('gemini-2.5-pro'),
  '@ai-sdk/gateway': (url) => createGateway({ apiKey: 'none', baseURL: url })('m/m'),
  'streamText over our parts': parts,
};

/** Tools of these names, which take anything, and note the ids of the calls for which they are run. */
function toolsOf(names, ran) {
  const any = {
    description: 'any',
    inputSchema: jsonSchema({ type: 'object' }),
    execute: async (_input, { toolCallId }) => {
      ran.push(toolCallId);
      return 'ok';
    },
  };
  return Object.fromEntries(names.map((name) => [name, dynamicTool(any)]));
}

async function streamed(model, names) {
  const held = { error: null, text: '', reasoning: '', calls: [], ran: [], sources: [], finish: null, usage: null };
  try {
    const result = streamText({
      model,
      prompt: 'hi',
      tools: toolsOf(names, held.ran),
      maxRetries: 0,
      onError: () => undefined,
    });
    for await (const part of result.fullStream) {
      if (part.type === 'text-delta') {
        held.text += part.text;
      } else if (part.type === 'reasoning-delta') {
        held.reasoning += part.text;
      } else if (part.type === 'source') {
        held.sources.push(part.url ?? part.title);
      } else if (part.type === 'tool-call') {
        held.calls.push({
          id: part.toolCallId,
          name: part.toolName,
          input: part.input,
          invalid: part.invalid ?? false,
          server: part.providerExecuted ?? false,
        });
      } else if (part.type === 'error') {
        held.error ??= failed(part.error);
      } else if (part.type === 'finish') {
        held.finish = part.finishReason;
        held.usage = part.totalUsage;
      }
    }
  } catch (thrown) {
    held.error ??= failed(thrown);
  }
  return held;
}

class State {
  status = 'ready';
  error = undefined;
  messages = [];
  pushMessage = (message) => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = this.messages.with(index, message);
  };
  snapshot = (thing) => structuredClone(thing);
}

class Chat extends AbstractChat {}

function uiMessage(message) {
  const all = message?.parts ?? [];
  const said = (type) =>
    all
      .filter((part) => part.type === type)
      .map((part) => part.text)
      .join('');
  return {
    text: said('text'),
    reasoning: said('reasoning'),
    sources: all.filter((part) => part.type.startsWith('source-')).map((part) => part.url ?? part.title),
    calls: all
      .filter((part) => part.type.startsWith('tool-') || part.type === 'dynamic-tool')
      .map((part) => ({
        id: part.toolCallId,
        name: part.toolName ?? part.type.slice('tool-'.length),
        input: part.input,
        raw: part.rawInput,
        state: part.state,
        output: part.output,
        server: part.providerExecuted ?? false,
      })),
    usage: message?.metadata?.usage ?? null,
  };
}

/** What useChat ends with, by the class under it. */
async function useChat(url) {
  let ended = {};
  let error = null;
  const chat = new Chat({
    state: new State(),
    transport: new DefaultChatTransport({ api: url }),
    onError: (thrown) => {
      error ??= failed(thrown);
    },
    onFinish: (outcome) => {
      ended = outcome;
    },
  });
  await chat.sendMessage({ text: 'hi' });
  if (ended.isError || ended.isDisconnect || chat.status !== 'ready') {
    error ??= failed(chat.error ?? new Error(chat.status));
  }
  const last = chat.lastMessage;
  return {
    error,
    finish: ended.finishReason ?? null,
    ...uiMessage(last?.role === 'assistant' ? last : undefined),
  };
}

async function readMessages(url) {
  let error = null;
  let finish = null;
  let last;
  try {
    const answer = await fetch(url, { method: 'POST', body: '{}' });
    const stream = parseJsonEventStream({ stream: answer.body, schema: uiMessageChunkSchema }).pipeThrough(
      new TransformStream({
        transform(found, controller) {
          if (!found.success) {
            throw found.error;
          }
          if (found.value.type === 'finish') {
            finish = found.value.finishReason ?? null;
          }
          controller.enqueue(found.value);
        },
      })
    );
    for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
      last = message;
    }
  } catch (thrown) {
    error = failed(thrown);
  }
  return { error, finish, ...uiMessage(last) };
}

const READERS = { useChat, readUIMessageStream: readMessages };

/** What each of these clients holds of the body at `url`; `tools`: the names that its application declares. */
export async function read({ url, clients, tools }) {
  const one = (name) => (name in READERS ? READERS[name](url) : streamed(MODELS[name](url), tools));
  return Object.fromEntries(await Promise.all(clients.map(async (name) => [name, await one(name)])));
}
