// What pandod is asked for.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Longer than any answer takes: who is silent for so long has stopped.
const PATIENCE_MS = 5000;

const ask = (url, options = {}) =>
  fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS), ...options });

async function answerOf(response) {
  const answer = await response.json();
  if (!response.ok) throw new ApiError(response.status, answer.error);
  return answer;
}

export async function get(what, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  return answerOf(await ask(`api/${what}${query && `?${query}`}`));
}

export async function explain(request) {
  const response = await ask("api/explain", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request),
  });
  return answerOf(response);
}
