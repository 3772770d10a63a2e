/** Read server-sent events from the body of a response. The browser's EventSource cannot send POST requests. */

/** The connection to the server failed, or it could not be made. */
export class ConnectionError extends Error {}

/**
 * Return what a promise of the browser's fetch API resolves to. It rejects with TypeError if the connection fails, as a bug
 * of the page may; here that becomes ConnectionError.
 * @template Result
 * @param {Promise<Result>} promise
 * @returns {Promise<Result>}
 */
export async function overConnection(promise) {
  try {
    return await promise;
  } catch (error) {
    throw error instanceof TypeError ? new ConnectionError(error.message) : error;
  }
}

/** @typedef {{kind: string, data: any}} ServerEvent its name, and its data, which is JSON */

/**
 * Yield the events of a stream as they arrive. An event may come in several pieces, and an unfinished one at the end is
 * dropped, as the standard wants it.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<ServerEvent, void>}
 */
export async function* readEvents(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await overConnection(reader.read());
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Return the event of a block of lines, or null if it has no data: a comment, which keeps the connection open.
 * @param {string} block
 * @returns {ServerEvent | null}
 */
function parseEvent(block) {
  let kind = "message";
  /** @type {string[]} */
  const data = [];
  for (const line of block.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? ["", "", ""];
    if (field === "event") kind = value;
    if (field === "data") data.push(value);
  }
  return data.length ? { kind, data: JSON.parse(data.join("\n")) } : null;
}
