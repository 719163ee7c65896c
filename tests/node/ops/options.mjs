// What the AI SDK's providers make of call options: the request that the real client would have sent.
// It knows the providers' smallest valid answers, and nothing of what a request should hold.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';

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
};

/** The body of the one request that `doGenerate` sends with these options, and the provider's warnings. */
export async function request({ provider, options }) {
  const { model, says } = PROVIDERS[provider];
  const sent = [];
  const fetch = async (_url, init) => {
    sent.push(JSON.parse(init.body));
    return Response.json(says);
  };
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }];
  const { warnings } = await model(fetch).doGenerate({ ...options, prompt });
  return { body: sent[0], warnings };
}

/** The same for many options: a list of `{body, warnings}` or `{error}`. */
export async function requests({ provider, many }) {
  const done = [];
  for (const options of many) {
    try {
      done.push(await request({ provider, options }));
    } catch (error) {
      done.push({ error: { name: error.name, message: error.message } });
    }
  }
  return done;
}
