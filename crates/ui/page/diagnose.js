// A worker reads the file that was dropped or chosen, or the text that was pasted. The page's policy forbids all connections.
// `drawGraphs` is the script of `sweetspot diagnose --html`.

const $ = (id) => document.getElementById(id);
const wasm = $("wasm").textContent;
const source = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
let worker = null;

/** Diagnoses a file; stops reading any previous one. */
function diagnose(file, name) {
  worker?.terminate();
  worker = new Worker(source);
  worker.onmessage = ({ data: { progress, answer } }) => (answer ? show(name, answer) : showProgress(name, progress));
  worker.onerror = (event) => show(name, { error: event.message || "the worker ended" });
  delete document.body.dataset.settled;
  for (const id of ["remarks", "result"]) $(id).replaceChildren();
  showProgress(name, 0);
  worker.postMessage({ wasm, file, name });
}

/** If progress is null, the length is unknown because the file is compressed. */
function showProgress(name, progress) {
  $("status").textContent = `Reading ${name}.`;
  $("progress").hidden = false;
  if (progress === null) $("progress").removeAttribute("value");
  else $("progress").value = progress;
}

/** Keeps numbers and their units on one line. */
const unbroken = (text) => text.replace(/(\d) (?=(?:%|[µm]?s|[kMGT]?B|[kMG]?bit\/s)(?!\w))/g, "$1\u00a0");

/** Shows the answer about the file `name`. */
function show(name, { error, title, body, data, remarks = [] }) {
  worker?.terminate();
  worker = null;
  $("progress").hidden = true;
  $("status").textContent = error ? `${name}: ${error}` : "";
  if (!error) {
    $("title").textContent = unbroken(title);
    $("remarks").replaceChildren(...remarks.map((remark) => Object.assign(document.createElement("li"), { textContent: unbroken(remark) })));
    $("result").innerHTML = unbroken(body);
    drawGraphs(JSON.parse(data));
  }
  document.body.dataset.settled = error ? "error" : "yes";
}

function diagnosePaste() {
  const text = $("paste").value;
  if (text.trim() === "") {
    $("status").textContent = "There is no text yet: paste the output of ss -ti, iperf3 --json or NDT7 above.";
    return;
  }
  diagnose(new Blob([text]), "paste");
}

$("file").addEventListener("change", () => {
  const [file] = $("file").files;
  if (file) diagnose(file, file.name);
});
// Not a form submission, which a sandboxed page may not make.
$("read").addEventListener("click", diagnosePaste);
$("paste").addEventListener("input", (event) => {
  if (event.inputType === "insertFromPaste") diagnosePaste();
});
function acceptDrops() {
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("over");
  });
  document.addEventListener("dragleave", () => document.body.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) diagnose(file, file.name);
  });
}

if (wasm === "") {
  $("input").hidden = true;
  $("status").textContent = "This build of Sweetspot has no WebAssembly, which this page needs. Run sweetspot diagnose FILE instead.";
} else {
  acceptDrops();
}
document.body.dataset.settled = "ready";
