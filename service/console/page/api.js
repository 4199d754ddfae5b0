// What pandod is asked for.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answerOf(response) {
  const answer = await response.json();
  if (!response.ok) throw new ApiError(response.status, answer.error);
  return answer;
}

export async function get(what, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  return answerOf(await fetch(`api/${what}${query && `?${query}`}`));
}

export async function explain(request) {
  const response = await fetch("api/explain", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request),
  });
  return answerOf(response);
}
