// What changed between two answers of api/stats, per second.

const CACHE_SERVICES = ["pando.v1.PrefixCache", "pando.v1.PagePool"];

export function ratesBetween(before, now) {
  const seconds = now.time_s - before.time_s;
  const grown = (field) => now[field] - before[field];
  const calls = callTimes(before, now);
  return {
    time: now.time_s,
    hitRate: grown("query_tokens") > 0
      ? grown("hit_tokens") / grown("query_tokens") : null,
    evicted: Object.fromEntries(
      Object.entries(now.evicted_pages).map(([reason, pages]) =>
        [reason, (pages - before.evicted_pages[reason]) / seconds])),
    matches: grown("matches") / seconds,
    inserts: grown("inserts") / seconds,
    p50: quantile(now.rpc.bounds_s, calls, 0.5),
    p99: quantile(now.rpc.bounds_s, calls, 0.99),
  };
}

// Calls of the cache's own services, by bucket of time.
function callTimes(before, now) {
  const times = new Array(now.rpc.bounds_s.length + 1).fill(0);
  const add = (stats, sign) => {
    for (const method of stats.rpc.methods) {
      if (!CACHE_SERVICES.includes(method.service)) continue;
      method.counts.forEach((calls, i) => { times[i] += sign * calls; });
    }
  };
  add(now, 1);
  add(before, -1);
  return times;
}

// The value that a share of all is below, as if each bucket were filled evenly;
// null when there is nothing.
export function quantile(bounds, counts, share) {
  const total = d3.sum(counts);
  if (total === 0) return null;
  let left = share * total;
  const bucket = counts.findIndex((calls) => (left -= calls) <= 0);
  if (bucket === bounds.length) return bounds[bounds.length - 1];
  const from = bucket === 0 ? 0 : bounds[bucket - 1];
  return from + (bounds[bucket] - from) * (1 + left / counts[bucket]);
}
