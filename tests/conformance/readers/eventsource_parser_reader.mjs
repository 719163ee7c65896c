// eventsource-parser: events alone, over a TextDecoder, as its documentation shows.

import { failed, load, reader as named } from './body.mjs';

const { createParser } = await load('eventsource-parser/dist/index.js');

export const reader = named('eventsource-parser');

export async function read(one, reads) {
  if (one.category !== 'sse') {
    return null;
  }
  const events = [];
  let lastId = '';
  const parser = createParser({
    onEvent: ({ event, data, id }) => {
      lastId = id ?? lastId;
      events.push([event || 'message', data, lastId]);
    },
  });
  const decoder = new TextDecoder();
  try {
    for (const piece of reads) {
      parser.feed(decoder.decode(piece, { stream: true }));
    }
    return { error: null, events };
  } catch (error) {
    return { error: failed(error), events };
  }
}
