/* Sends a file of rows to the team's area, straight to the object store, and puts its address into the form. Settings
   of queues are there while the address is one of a queue. */
import { Stopped, api } from "./upload/api.js";
import { hasPartDigests } from "./upload/digests.js";
import { Progress } from "./upload/progress.js";
import { nameOfFile } from "./upload/text.js";
import { Transfer } from "./upload/transfer.js";

const card = document.querySelector("#rows-upload");
const chosen = card.querySelector("input[type=file]");
const bar = card.querySelector("progress");
const cancel = card.querySelector("[data-cancel]");
const progress = new Progress({ bar, text: card.querySelector("[data-progress]"), status: card.querySelector("[role=status]") });
const request = card.closest("form").querySelector("[data-request]");
const address = document.querySelector("#id_input");
const queue = document.querySelector("#queue-settings");
let transfer = null;

const showQueue = (isShown) => {
  queue.classList.toggle("shown", isShown);
  queue.querySelectorAll("input, select").forEach((input) => { input.disabled = !isShown; });
};
const isQueue = () => address.value.includes("://") && !address.value.trim().toLowerCase().startsWith("s3://");

const suggestName = (file) => {
  const input = document.querySelector("#id_name");
  input.value ||= nameOfFile(file.name);
};

const show = (isSending) => {
  // A job that is requested now would read an address that has no rows yet.
  request.disabled = isSending;
  bar.hidden = !isSending;
  cancel.hidden = !isSending;
  chosen.disabled = isSending;
};

const send = async (file) => {
  show(true);
  progress.begin(file.size);
  progress.announce("Sending… The job can be requested when the rows are uploaded.");
  try {
    const upload = await api("POST", "batch-uploads", {
      team: card.dataset.team, filename: file.name, size_bytes: file.size, part_checksums: hasPartDigests,
    });
    transfer = new Transfer(upload, [{ path: upload.path, file }], () => progress.show(transfer.sentBytes), { root: "batch-uploads" });
    const done = await transfer.run();
    address.value = done.input;
    showQueue(false);
    suggestName(file);
    progress.announce(`${file.name} is uploaded and is the input of the job.`);
  } catch (error) {
    progress.announce(error instanceof Stopped ? "Canceled." : error.message);
    chosen.value = "";
  } finally {
    transfer = null;
    show(false);
  }
};

chosen.addEventListener("change", (event) => {
  // No part of the form: its estimate does not change by it.
  event.stopPropagation();
  if (chosen.files.length) send(chosen.files[0]);
});
cancel.addEventListener("click", () => transfer?.stop());
address.addEventListener("input", () => showQueue(isQueue()));
showQueue(queue.classList.contains("shown"));
