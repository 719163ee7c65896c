// What the vendors' own JavaScript clients hold at the end of a stream: openai, @anthropic-ai/sdk.
// A record: {error, text, reasoning, refusal, calls: [{id, name, arguments}], finish, usage}; a member that a client has
// no place for is left out, `usage` is the client's own. It compares nothing.

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const QUIET = { apiKey: 'none', maxRetries: 0, logLevel: 'off' };
const ASKED = [{ role: 'user', content: 'hi' }];

const openai = (url) => new OpenAI({ ...QUIET, baseURL: url });

export const failed = (error) => ({ name: error?.name ?? 'Error', message: String(error?.message ?? error) });

function chatMessage(choice) {
  return {
    text: choice?.message.content ?? '',
    refusal: choice?.message.refusal ?? '',
    annotations: choice?.message.annotations ?? [],
    calls: (choice?.message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
    })),
    finish: choice?.finish_reason ?? null,
  };
}

async function openaiChat(url) {
  const stream = openai(url).chat.completions.stream({
    model: 'm',
    messages: ASKED,
    stream_options: { include_usage: true },
  });
  let error = null;
  let reasoning = '';
  let held;
  try {
    for await (const chunk of stream) {
      for (const { index, delta } of chunk.choices) {
        reasoning += (index === 0 && delta.reasoning_content) || '';
      }
      held = stream.currentChatCompletionSnapshot ?? held;
    }
    held = await stream.finalChatCompletion();
  } catch (thrown) {
    error = failed(thrown);
  }
  return { error, reasoning, ...chatMessage(held?.choices[0]), usage: held?.usage ?? null };
}

export function responsesMessage(response) {
  const parts = (response?.output ?? []).flatMap((item) => (item.type === 'message' ? item.content : []));
  const said = (type, member) =>
    parts
      .filter((part) => part.type === type)
      .map((part) => part[member])
      .join('');
  return {
    text: said('output_text', 'text'),
    refusal: said('refusal', 'refusal'),
    reasoning: (response?.output ?? [])
      .filter((item) => item.type === 'reasoning')
      .flatMap((item) => [...(item.summary ?? []), ...(item.content ?? [])])
      .map((part) => part.text)
      .join(''),
    calls: (response?.output ?? [])
      .filter((item) => ['function_call', 'custom_tool_call'].includes(item.type))
      .map((item) => ({
        id: item.call_id,
        name: item.name,
        arguments: item.arguments ?? item.input,
        custom: item.type === 'custom_tool_call',
        status: item.status,
      })),
    finish: response === undefined ? null : (response.incomplete_details?.reason ?? response.status),
    usage: response?.usage ?? null,
  };
}

async function openaiResponses(url) {
  const stream = openai(url).responses.stream({ model: 'm', input: 'hi' });
  let error = null;
  let held;
  try {
    held = await stream.finalResponse();
  } catch (thrown) {
    error = failed(thrown);
  }
  return { error, ...responsesMessage(held) };
}

async function anthropicMessages(url) {
  const stream = new Anthropic({ ...QUIET, baseURL: url }).messages.stream({
    model: 'm',
    max_tokens: 10,
    messages: ASKED,
  });
  let error = null;
  let held;
  const jsons = new Map();
  try {
    stream.on('streamEvent', (event) => {
      if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
        jsons.set(event.index, (jsons.get(event.index) ?? '') + event.delta.partial_json);
      }
    });
    held = await stream.finalMessage();
  } catch (thrown) {
    error = failed(thrown);
    held = stream.currentMessage;
  }
  const blocks = held?.content ?? [];
  const said = (type, member) =>
    blocks
      .filter((block) => block.type === type)
      .map((block) => block[member])
      .join('');
  const calls = [];
  for (const [index, block] of blocks.entries()) {
    if (block.type === 'tool_use') {
      const call = { id: block.id, name: block.name, arguments: jsons.get(index) ?? '{}' };
      try {
        call.input = block.input; // read when it is asked for: what is no JSON is thrown here
      } catch (thrown) {
        error ??= failed(thrown);
      }
      calls.push(call);
    }
  }
  return {
    error,
    text: said('text', 'text'),
    reasoning: said('thinking', 'thinking'),
    calls,
    finish: held?.stop_reason ?? null,
    usage: held?.usage ?? null,
  };
}

const CLIENTS = {
  'openai-node chat.completions.stream': openaiChat,
  'openai-node responses.stream': openaiResponses,
  '@anthropic-ai/sdk messages.stream': anthropicMessages,
};

/** What each of these clients holds of the body at `url`: client -> record. */
export async function read({ url, clients }) {
  return Object.fromEntries(await Promise.all(clients.map(async (name) => [name, await CLIENTS[name](url)])));
}
