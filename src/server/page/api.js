// Requests to the server that sent this page.
const api = (() => {
  const {byId} = shared;

  function headers() {
    const key = byId("key").value.trim();
    return key === "" ? {} : {Authorization: `Bearer ${key}`};
  }

  async function problemOf(response) {
    const text = await response.text();
    try {
      return JSON.parse(text).error.message;
    } catch {
      return `${response.status} ${response.statusText}`;
    }
  }

  // The error has the HTTP status.
  async function checked(response) {
    if (response.ok) return response;
    throw Object.assign(new Error(await problemOf(response)), {status: response.status});
  }

  const get = async (path) => (await checked(await fetch(path, {headers: headers()}))).json();

  // The objects of the server-sent events until [DONE].
  async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
        if (data === "[DONE]") return;
        if (data !== "") yield JSON.parse(data);
      }
    }
  }

  // The chunks of a streamed answer. The signal ends the request.
  async function chat(body, signal) {
    const response = await fetch("v1/chat/completions", {
      method: "POST", signal, headers: {"Content-Type": "application/json", ...headers()}, body: JSON.stringify(body)});
    return events(await checked(response));
  }

  return {get, chat};
})();
