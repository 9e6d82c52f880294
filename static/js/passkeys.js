/* Forms with data-passkey: the browser makes or uses a passkey, and the form sends its answer.
   "create" fetches a challenge first; "get" has one in data-options. */
(() => {
  "use strict";
  const bytesOf = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const textOf = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  const withBytes = (options) => {
    const ready = { ...options, challenge: bytesOf(options.challenge) };
    if (options.user) ready.user = { ...options.user, id: bytesOf(options.user.id) };
    for (const name of ["excludeCredentials", "allowCredentials"]) {
      if (options[name]) ready[name] = options[name].map((one) => ({ ...one, id: bytesOf(one.id) }));
    }
    return ready;
  };
  const asJson = (credential) => {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = textOf(credential.response[name]);
    }
    return JSON.stringify({
      id: credential.id,
      rawId: textOf(credential.rawId),
      type: credential.type,
      response,
      clientExtensionResults: {},
    });
  };
  const fetchOptions = async (form) => {
    const answer = await fetch(form.dataset.begin, {
      method: "POST",
      headers: { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value },
    });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return answer.json();
  };
  const explain = (error) => {
    if (error.name === "NotAllowedError") return "Nothing was confirmed. Try again, or choose another way.";
    if (error.name === "InvalidStateError") return "This device has a passkey here already.";
    if (error.name === "SecurityError") return "Passkeys need HTTPS and a host name, not an IP address.";
    return "This browser could not use a passkey here.";
  };

  document.querySelectorAll("form[data-passkey]").forEach((form) => {
    const note = form.querySelector("[data-passkey-note]");
    if (!window.PublicKeyCredential) {
      note.textContent = "This browser has no passkeys here. They need HTTPS.";
      return;
    }
    form.addEventListener("submit", async (event) => {
      if (form.elements.passkey.value) return;
      event.preventDefault();
      note.textContent = "";
      try {
        const isNew = form.dataset.passkey === "create";
        const options = isNew ? await fetchOptions(form) : JSON.parse(form.dataset.options);
        const request = { publicKey: withBytes(options) };
        const credential = await (isNew
          ? navigator.credentials.create(request)
          : navigator.credentials.get(request));
        form.elements.passkey.value = asJson(credential);
        form.requestSubmit();
      } catch (error) {
        note.textContent = explain(error);
      }
    });
  });
})();
