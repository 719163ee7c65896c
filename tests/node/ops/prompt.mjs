// What the AI SDK's providers make of ModelMessages: the request that the real client would have sent.
// It knows the providers' smallest valid answers, and nothing of what a request should hold.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, modelMessageSchema } from 'ai';

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  output: [
    {
      type: 'message',
      role: 'assistant',
      id: 'msg_1',
      status: 'completed',
      content: [{ type: 'output_text', text: 'ok', annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 1 },
};

const PROVIDERS = {
  'openai-chat': {
    model: (fetch) => createOpenAI({ apiKey: 'none', fetch }).chat('gpt-4.1'),
    says: {
      id: 'c',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
    },
  },
  'openai-responses': {
    model: (fetch) => createOpenAI({ apiKey: 'none', fetch }).responses('gpt-5'),
    says: RESPONSE,
  },
  'open-responses': {
    model: (fetch) =>
      createOpenResponses({ name: 'open', url: 'http://127.0.0.1:9/v1/responses', apiKey: 'none', fetch })('m'),
    says: RESPONSE,
  },
  anthropic: {
    model: (fetch) => createAnthropic({ apiKey: 'none', fetch })('claude-sonnet-4-5'),
    says: {
      type: 'message',
      id: 'msg_1',
      model: 'm',
      content: [{ type: 'text', text: 'ok' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  },
  google: {
    model: (fetch) => createGoogleGenerativeAI({ apiKey: 'none', fetch })('gemini-2.5-pro'),
    says: { candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] },
  },
};

// What is a warning for a developer is in the answer; AI SDK would print it, too.
globalThis.AI_SDK_LOG_WARNINGS = false;

/** The body of the one request that `generateText` sends for these messages, and the provider's warnings.
 *  The messages keep the AI SDK's own schema for them, which it publishes and does not ask itself. */
export async function request({ provider, messages, options }) {
  for (const message of messages) {
    modelMessageSchema.parse(message);
  }
  const { model, says } = PROVIDERS[provider];
  const sent = [];
  const fetch = async (_url, init) => {
    sent.push(JSON.parse(init.body));
    return Response.json(says);
  };
  const { warnings } = await generateText({
    model: model(fetch),
    messages,
    allowSystemInMessages: true,
    maxRetries: 0,
    providerOptions: options,
  });
  if (sent.length !== 1) {
    throw new Error(`${sent.length} requests`);
  }
  return { body: sent[0], warnings: warnings ?? [] };
}

/** The same for many histories: a list of `{body, warnings}` or `{error}`. */
export async function requests({ provider, histories, options }) {
  const done = [];
  for (const messages of histories) {
    try {
      done.push(await request({ provider, messages, options }));
    } catch (error) {
      done.push({ error: { name: error.name, message: error.message } });
    }
  }
  return done;
}
