package turnline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	turnlinev1 "turnline.dev/client/turnline/v1"
)

// CodeStreamGap is the code of a stream whose next chunks are no longer kept; Reply has the whole text.
const CodeStreamGap = "stream_gap"

// Error is why there is no answer.
type Error struct {
	// Code is stable: the server's (`session_queue_full`), CodeStreamGap, or of a call that brought no
	// word of the server its gRPC status in lower case (`unavailable`, `deadline_exceeded`).
	Code string
	// Message is one sentence for a person; it may change between releases.
	Message string
	// Field is the dotted name of the request's field at fault; empty when none is.
	Field string
	// StatusCode is the failure's HTTP status; 0 when the server named none.
	StatusCode int
	// Retryable says whether the same request may work later.
	Retryable bool
	// RetryAfter is how long to wait before that; 0 when no time is known.
	RetryAfter time.Duration
	// RequestID names the turn, to come back for it.
	RequestID string

	cause error
}

// Error says the code and the message.
func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("turnline: %s: %s (%s)", e.Code, e.Message, e.Field)
	}
	return fmt.Sprintf("turnline: %s: %s", e.Code, e.Message)
}

// Unwrap gives the context's error where that ended the call, else the gRPC one.
func (e *Error) Unwrap() error {
	return e.cause
}

func ofError(ctx context.Context, err error, requestID string) *Error {
	if made, is := errors.AsType[*Error](err); is {
		return made
	}
	answered, _ := status.FromError(err)
	made := &Error{
		Code:      strings.ToLower(code.Code(answered.Code()).String()),
		Message:   answered.Message(),
		Retryable: answered.Code() == codes.Unavailable || answered.Code() == codes.Aborted,
		RequestID: requestID,
		cause:     err,
	}
	for _, detail := range answered.Details() {
		if failure, is := detail.(*turnlinev1.Failure); is {
			made.read(failure)
			return made
		}
	}
	if ended := ctx.Err(); ended != nil {
		made.Retryable, made.cause = false, ended
	}
	return made
}

// ofFailure makes the error of a turn that failed; statusCode is what it ended with, if anything.
func ofFailure(failure *turnlinev1.Failure, statusCode uint32, requestID string) *Error {
	made := &Error{RequestID: requestID}
	made.read(failure)
	if statusCode != 0 {
		made.StatusCode = int(statusCode)
	}
	return made
}

func (e *Error) read(failure *turnlinev1.Failure) {
	e.Code, e.Message, e.Field = failure.GetCode(), failure.GetMessage(), failure.GetField()
	e.StatusCode = int(failure.GetStatusCode())
	hint := failure.GetRetry()
	e.Retryable = hint == turnlinev1.RetryHint_RETRY_HINT_NOW || hint == turnlinev1.RetryHint_RETRY_HINT_AFTER
	e.RetryAfter = failure.GetRetryAfter().AsDuration()
}

// again waits before the next try; if there is to be none, it gives the error to end with.
func (c *Client) again(ctx context.Context, tries int, failed *Error) *Error {
	if failed.Retryable && c.closed.Err() != nil {
		return gaveUp(c.closed, failed.RequestID)
	}
	if !failed.Retryable || tries >= c.options.MaxTries {
		return failed
	}
	grown := min(c.options.Backoff<<min(tries-1, 16), maxBackoff)
	pause := shortened(grown)
	if asked := failed.RetryAfter; asked > 0 {
		// Callers who were refused together must not come back together.
		pause = asked + shortened(min(grown, asked/2))
	}
	if endsWithin(ctx, pause) {
		return failed
	}
	return c.pause(ctx, pause, failed.RequestID)
}

// shortened takes up to half of a time away, by chance.
func shortened(whole time.Duration) time.Duration {
	return whole - rand.N(whole/2+1)
}

// pause waits; an error where the caller leaves or the client is closed meanwhile.
func (c *Client) pause(ctx context.Context, length time.Duration, requestID string) *Error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return gaveUp(ctx, requestID)
	case <-c.closed.Done():
		return gaveUp(c.closed, requestID)
	}
}

func gaveUp(ended context.Context, requestID string) *Error {
	return ofError(ended, status.FromContextError(ended.Err()).Err(), requestID)
}

// endsWithin says whether a deadline comes before a time is over.
func endsWithin(ctx context.Context, length time.Duration) bool {
	deadline, is := ctx.Deadline()
	return is && time.Until(deadline) <= length
}
