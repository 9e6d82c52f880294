/* Makes the values of an input from a picture or a recording, as the note of its field says, and sends them as a file
   of numbers. Without this file values are typed. */
(() => {
  "use strict";

  // What was chosen, by the id of the field that sends the values: a form that comes back with errors keeps it.
  const chosen = new Map();

  const readPixels = async (file, { width, height }) => {
    const bitmap = await createImageBitmap(file);
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    // What is transparent is white.
    context.fillStyle = "#fff";
    context.fillRect(0, 0, width, height);
    context.drawImage(bitmap, 0, 0, width, height);
    bitmap.close();
    return context.getImageData(0, 0, width, height).data;
  };

  // Pixels are red, green, blue and opacity. Three decimals tell all 256 levels apart.
  const readPicture = async (file, layout) => {
    const pixels = await readPixels(file, layout);
    const count = pixels.length / 4;
    const values = layout.largest === 1 ? new Float32Array(3 * count) : new Uint8Array(3 * count);
    for (let pixel = 0; pixel < count; pixel += 1)
      for (let channel = 0; channel < 3; channel += 1) {
        const level = pixels[4 * pixel + channel];
        const place = layout.has_channels_first ? channel * count + pixel : 3 * pixel + channel;
        values[place] = layout.largest === 1 ? Math.round((level / 255) * 1000) / 1000 : level;
      }
    return { values, note: "" };
  };

  // The browser decodes, resamples and mixes.
  const readSound = async (file, { rate, channels, has_channels_first, samples, most_samples, largest }) => {
    const decoded = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer());
    const length = samples ?? Math.min(most_samples, decoded.length);
    const context = new OfflineAudioContext(channels, length, rate);
    const source = context.createBufferSource();
    source.buffer = decoded;
    source.connect(context.destination);
    source.start();
    const mixed = await context.startRendering();
    const values = largest === 1 ? new Float32Array(channels * length) : new Int16Array(channels * length);
    for (let channel = 0; channel < channels; channel += 1)
      mixed.getChannelData(channel).forEach((level, sample) => {
        const place = has_channels_first ? channel * length + sample : channels * sample + channel;
        const held = Math.max(-1, Math.min(1, level));
        values[place] = largest === 1 ? level : Math.round(held * largest);
      });
    const seconds = (count) => `${Number((count / rate).toPrecision(3))} s`;
    const note = decoded.length > length ? `The first ${seconds(length)} of ${seconds(decoded.length)}. ` : "";
    return { values, note };
  };

  // Typed arrays have the byte order of the machine; that of all browsers in use is the protocol's.
  const makeFile = (values) => new File([values], "values.bin", { type: "application/octet-stream" });

  // So many values make a text area slow, so those of a file are not written out.
  const show = (field, file, note) => {
    const content = document.getElementById(field.dataset.content);
    const transfer = new DataTransfer();
    if (file) transfer.items.add(file);
    content.files = transfer.files;
    [field.dataset.values, field.dataset.shape].filter(Boolean).forEach((id) => {
      document.getElementById(id).closest(".input").hidden = Boolean(file);
    });
    field.querySelector(".hint").textContent = note;
  };
  const forget = (field, note) => {
    chosen.delete(field.dataset.content);
    show(field, null, note);
  };

  const choose = async (field, input) => {
    const hint = field.querySelector(".hint");
    field.dataset.before ??= hint.textContent;
    const [file] = input.files;
    if (!file) return forget(field, field.dataset.before);
    const layout = JSON.parse(field.dataset.layout);
    const isPicture = "width" in layout;
    try {
      const { values, note } = await (isPicture ? readPicture : readSound)(file, layout);
      const text = `${file.name}: ${note}${field.dataset.before}`;
      chosen.set(field.dataset.content, { file: makeFile(values), text });
      show(field, chosen.get(field.dataset.content).file, text);
    } catch {
      input.value = "";
      const kinds = isPicture ? "a picture. Choose a PNG or JPEG." : "a recording. Choose a WAV, FLAC or MP3.";
      forget(field, `The browser cannot read ${file.name} as ${kinds}`);
    }
  };

  document.addEventListener("change", ({ target }) => {
    const field = target.closest("[data-layout]");
    if (field) choose(field, target);
  });
  // JSON that is sent brings its own values.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.requestConfig?.triggeringEvent?.submitter?.value === "json") chosen.clear();
  });
  document.addEventListener("htmx:afterSettle", () => {
    document.querySelectorAll("[data-layout]").forEach((field) => {
      const kept = chosen.get(field.dataset.content);
      if (!kept || document.getElementById(field.dataset.content).files.length) return;
      field.dataset.before ??= field.querySelector(".hint").textContent;
      show(field, kept.file, kept.text);
    });
  });

  // The request as it was sent: its JSON, then the values in the order of their inputs.
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-save-request]");
    if (!button) return;
    const names = JSON.parse(button.dataset.head).inputs.map((input) => "parameters" in input);
    const files = names.map((isBinary, index) => isBinary && chosen.get(`id_content-${index}`)?.file).filter(Boolean);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([button.dataset.head, ...files]));
    link.download = button.dataset.saveRequest;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  });
})();
