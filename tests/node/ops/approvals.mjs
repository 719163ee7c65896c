// Which tools generateText runs for a history of ModelMessages whose calls wait for approval.

import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, tool } from 'ai';

const ANSWER = {
  id: 'c',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
};

/** `{ran}`: the inputs of the calls that ran, and `{sent}`: the messages of the request that followed; or `{error}`. */
export async function run({ messages, toolName }) {
  const ran = [];
  const sent = [];
  const fetch = async (_url, init) => {
    sent.push(...JSON.parse(init.body).messages);
    return Response.json(ANSWER);
  };
  const pay = tool({
    inputSchema: jsonSchema({ type: 'object' }),
    needsApproval: true,
    execute: async (input) => {
      ran.push(input);
      return 'done';
    },
  });
  try {
    await generateText({
      model: createOpenAI({ apiKey: 'none', fetch }).chat('gpt-4.1'),
      tools: { [toolName]: pay },
      messages,
      maxRetries: 0,
    });
  } catch (error) {
    return { ran, sent, error: { name: error.name, message: error.message } };
  }
  return { ran, sent };
}
