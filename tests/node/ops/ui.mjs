// The AI SDK's own reading of UIMessages. It knows no provider.

import { convertToModelMessages, validateUIMessages } from 'ai';

/** What `convertToModelMessages` makes of one history of UIMessages, after AI SDK's own validation of them. */
export async function model({ messages }) {
  await validateUIMessages({ messages });
  return convertToModelMessages(messages);
}

/** The same for many histories: a list of `{messages}` or `{error}`. */
export async function models({ histories }) {
  const done = [];
  for (const messages of histories) {
    try {
      done.push({ messages: await model({ messages }) });
    } catch (error) {
      done.push({ error: { name: error.name, message: error.message } });
    }
  }
  return done;
}
