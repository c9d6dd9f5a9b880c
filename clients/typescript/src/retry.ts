import { setTimeout as pause } from "node:timers/promises";
import type { TurnlineError } from "./errors.js";

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

/** Waits before the next try; false if there is to be none. */
export async function again(
  retry: Retry,
  tries: number,
  failed: TurnlineError,
  patience: Patience,
): Promise<boolean> {
  if (!failed.retryable || tries >= retry.maxTries || patience.signal.aborted) return false;
  const backoff = Math.min(retry.backoffMs * 2 ** (tries - 1), MAX_BACKOFF_MS);
  const delay = Math.max(backoff * (0.5 + Math.random() / 2), failed.retryAfterMs);
  if (performance.now() + delay >= patience.endsAt) return false;
  try {
    await pause(delay, undefined, { signal: patience.signal });
  } catch {
    return false; // the caller gave up
  }
  return true;
}
