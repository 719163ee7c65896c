// anthropic-sdk-typescript: `messages.stream()`.

import { answering, failed, load, QUIET, reader as named } from './body.mjs';

const { default: Anthropic } = await load('@anthropic-ai/sdk/index.mjs');

export const reader = named('@anthropic-ai/sdk', 'anthropic-ts');

export async function read(one, reads) {
  if (one.dialect !== 'anthropic') {
    return null;
  }
  const client = new Anthropic({ ...QUIET, fetch: answering(reads) });
  try {
    const stream = client.messages.stream({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
    const { content } = await stream.finalMessage();
    const said = (type, member) =>
      content
        .filter((block) => block.type === type)
        .map((block) => block[member])
        .join('');
    const calls = content
      .filter((block) => block.type === 'tool_use')
      .map((block) => ({ id: block.id, name: block.name, arguments: block.input }));
    return { error: null, calls, text: said('text', 'text'), reasoning: said('thinking', 'thinking') };
  } catch (error) {
    return { error: failed(error), calls: [], text: '' };
  }
}
