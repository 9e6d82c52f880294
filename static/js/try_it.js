/* Makes the values of an input from a picture, as the note of its field says. Without this file values are typed. */
(() => {
  "use strict";

  const readPixels = async (file, width, height) => {
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
  const listValues = (pixels, largest, hasChannelsFirst) => {
    const count = pixels.length / 4;
    const values = new Array(3 * count);
    for (let pixel = 0; pixel < count; pixel += 1)
      for (let channel = 0; channel < 3; channel += 1) {
        const level = pixels[4 * pixel + channel];
        const place = hasChannelsFirst ? channel * count + pixel : 3 * pixel + channel;
        values[place] = largest === 1 ? Number((level / 255).toFixed(3)) : level;
      }
    return values.join(" ");
  };

  document.addEventListener("change", async ({ target }) => {
    const picture = target.closest("[data-picture]");
    if (!picture) return;
    const { width, height, largest } = picture.dataset;
    const note = picture.querySelector(".hint");
    const values = document.getElementById(picture.dataset.picture);
    note.dataset.before ||= note.textContent;
    const [file] = target.files;
    // So many values make a text area slow.
    const show = (text, message) => {
      values.value = text;
      values.closest(".input").hidden = text !== "";
      note.textContent = message;
    };
    if (!file) {
      show("", note.dataset.before);
      return;
    }
    try {
      const pixels = await readPixels(file, Number(width), Number(height));
      const text = listValues(pixels, Number(largest), "channelsFirst" in picture.dataset);
      show(text, `${file.name}: ${note.dataset.before}`);
    } catch {
      target.value = "";
      show("", `The browser cannot read ${file.name} as a picture. Choose a PNG or JPEG.`);
    }
  });
})();
