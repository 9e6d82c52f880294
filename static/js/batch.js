/* Sends a file of rows to the team's area, straight to the object store, and puts its address into the form. */
import { Stopped, api } from "./upload/api.js";
import { hasPartDigests } from "./upload/digests.js";
import { Progress } from "./upload/progress.js";
import { Transfer } from "./upload/transfer.js";

const card = document.querySelector("#rows-upload");
const chosen = card.querySelector("input[type=file]");
const bar = card.querySelector("progress");
const cancel = card.querySelector("[data-cancel]");
const progress = new Progress({ bar, text: card.querySelector("[data-progress]"), status: card.querySelector("[role=status]") });
const request = card.closest("form").querySelector("[data-request]");
let transfer = null;

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
    transfer = new Transfer(upload, [{ path: upload.path, file }], () => progress.show(transfer.sentBytes), "batch-uploads");
    const done = await transfer.run();
    document.querySelector("#id_input").value = done.input;
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
card.hidden = false;
