// Numbers and names as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", {
  notation: "compact",
  maximumSignificantDigits: 3,
});

export const count = (number) => whole.format(number);
export const compact = (number) => short.format(number);

export const percent = (share) =>
  share === null ? "–" : `${(100 * share).toFixed(1)} %`;

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    ++unit;
  }
  return `${number.toFixed(unit && number < 100 ? 1 : 0)} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds < 1e-3) return `${short.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${short.format(seconds * 1e3)} ms`;
  return age(seconds);
}

export function age(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function namespaceName(namespace) {
  const name = namespace.extra_key === null ? "default"
    : namespace.extra_key === "" ? '""' : namespace.extra_key;
  const traits = [
    namespace.is_salted && "salted",
    namespace.is_bigram && "bigram",
  ].filter(Boolean);
  return traits.length ? `${name} (${traits.join(", ")})` : name;
}

export function branchName(branch) {
  if (branch.node) return `Node ${branch.node.number}`;
  return branch.namespace ? namespaceName(branch.namespace) : "Everything";
}
