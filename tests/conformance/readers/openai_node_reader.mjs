// openai-node: `chat.completions.stream()` and `responses.stream()`, which assemble an answer.

import { answering, failed, load, QUIET, reader as named } from './body.mjs';

const { default: OpenAI } = await load('openai/index.mjs');

export const reader = named('openai', 'openai-node');

export async function read(one, reads) {
  const client = new OpenAI({ ...QUIET, fetch: answering(reads) });
  if (one.dialect === 'chat') {
    return chat(client);
  }
  return one.dialect === 'responses' ? responses(client) : null;
}

async function chat(client) {
  try {
    const stream = client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
    const { message } = (await stream.finalChatCompletion()).choices[0];
    const calls = (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
    }));
    return { error: null, calls, text: message.content ?? '', refusal: message.refusal ?? '' };
  } catch (error) {
    return { error: failed(error), calls: [], text: '' };
  }
}

async function responses(client) {
  try {
    const response = await client.responses.stream({ model: 'm', input: 'hi' }).finalResponse();
    const output = response.output ?? [];
    const calls = output
      .filter((item) => ['function_call', 'custom_tool_call'].includes(item.type))
      .map((item) => ({ id: item.call_id, name: item.name, arguments: item.arguments ?? item.input }));
    const texts = output
      .flatMap((item) => (item.type === 'message' ? item.content : []))
      .filter((part) => part.type === 'output_text');
    const error = response.status === 'failed' ? String(response.error?.message) : null;
    return { error, calls, text: texts.map((part) => part.text).join('') };
  } catch (error) {
    return { error: failed(error), calls: [], text: '' };
  }
}
