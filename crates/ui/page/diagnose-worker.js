// Reads a file in pieces and passes it to the diagnosis, compiled to WebAssembly. A worker, so that the page does not freeze.

const PIECE = 4 << 20;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

async function isGzip(file) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return first === 0x1f && second === 0x8b;
}

async function* pieces(file, gzip) {
  if (gzip) {
    const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) yield value;
  } else {
    for (let at = 0; at < file.size; at += PIECE) yield new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer());
  }
}

function write(wasm, bytes) {
  const at = wasm.question(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
}

/** One pass over the file. Returns the length of the answer, or 0 if another pass is needed. */
async function pass(wasm, file, begun) {
  const gzip = await isGzip(file);
  let read = 0;
  for await (const piece of pieces(file, gzip)) {
    write(wasm, piece);
    if (!wasm.diagnosis_take()) break;
    read += piece.length;
    postMessage({ progress: gzip ? null : begun + read / file.size / 2 });
  }
  return wasm.diagnosis_end();
}

async function diagnosis({ wasm: module, file, name }) {
  const packed = new Blob([Uint8Array.from(atob(module), (character) => character.charCodeAt(0))]);
  const bytes = await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const { instance: { exports: wasm } } = await WebAssembly.instantiate(bytes);
  write(wasm, encoder.encode(name));
  wasm.diagnosis_begin();
  const length = (await pass(wasm, file, 0)) || (await pass(wasm, file, 0.5));
  return JSON.parse(decoder.decode(new Uint8Array(wasm.memory.buffer, wasm.text(), length)));
}

onmessage = async ({ data }) => {
  try {
    postMessage({ answer: await diagnosis(data) });
  } catch (error) {
    postMessage({ answer: { error: `it could not be read: ${error.message}` } });
  }
};
