// A worker that answers questions in JSON: with the simulator compiled to WebAssembly or, if the
// program serving this page was built without it, with the server's own.

const decoder = new TextDecoder();
const encoder = new TextEncoder();

async function load() {
  const response = await fetch("sweetspot.wasm");
  if (!response.ok) return null;
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer());
  return instance.exports;
}

let simulator = load().catch(() => null);

function askHere(wasm, question) {
  const bytes = encoder.encode(question);
  const at = wasm.question(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  const length = wasm.answer();
  return decoder.decode(new Uint8Array(wasm.memory.buffer, wasm.text(), length));
}

async function askServer(question) {
  const response = await fetch("ask", { method: "POST", body: question });
  const text = await response.text();
  return response.ok ? text : JSON.stringify({ error: text });
}

async function answer(question) {
  const wasm = await simulator;
  if (!wasm) return [await askServer(question), false];
  try {
    return [askHere(wasm, question), true];
  } catch (error) {
    // After a trap, the instance can no longer be trusted.
    simulator = load().catch(() => null);
    return [JSON.stringify({ error: `the simulator stopped: ${error.message}` }), true];
  }
}

onmessage = async ({ data: { id, question } }) => {
  try {
    const [text, here] = await answer(JSON.stringify(question));
    postMessage({ id, here, told: JSON.parse(text) });
  } catch (error) {
    const why = `${error.message}; is sweetspot ui still running?`;
    postMessage({ id, here: false, told: { error: why } });
  }
};
