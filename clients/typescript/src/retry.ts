import { setTimeout } from "node:timers/promises";
import { TurnlineError } from "./errors.js";

const MAX_BACKOFF_MS = 5_000;

/** When to try again. */
export interface Retry {
  maxTries: number;
  backoffMs: number;
}

/** How long a caller waits: to a time (`performance.now()`), and until it gives up. */
export interface Patience {
  endsAt: number;
  signal: AbortSignal;
}

/** Waits before the next try; throws, `failed` or what comes instead, if there is to be none. */
export async function again(
  retry: Retry,
  tries: number,
  failed: TurnlineError,
  patience: Patience,
): Promise<void> {
  if (!failed.retryable) throw failed;
  if (patience.signal.aborted) throw gaveUp(failed.requestId, failed);
  if (tries >= retry.maxTries) throw failed;
  const grown = Math.min(retry.backoffMs * 2 ** (tries - 1), MAX_BACKOFF_MS);
  const asked = failed.retryAfterMs;
  // Callers who were refused together must not come back together.
  const delay = asked > 0 ? asked + shortened(Math.min(grown, asked / 2)) : shortened(grown);
  if (performance.now() + delay >= patience.endsAt) throw failed;
  await pause(delay, patience, failed.requestId);
}

/** Takes up to half of a time away, by chance. */
function shortened(whole: number): number {
  return whole * (1 - Math.random() / 2);
}

/** Waits; throws where the caller leaves or the client is closed meanwhile. */
export async function pause(ms: number, { signal }: Patience, requestId: string): Promise<void> {
  try {
    await setTimeout(ms, undefined, { signal });
  } catch (cause) {
    throw gaveUp(requestId, cause);
  }
}

function gaveUp(requestId: string, cause: unknown): TurnlineError {
  const message = "the call was given up";
  return new TurnlineError({ code: "cancelled", message, requestId, cause });
}
