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

// CodeGap is the code of a stream whose next chunks are no longer kept; Reply has the whole text.
const CodeGap = "stream_gap"

// Error is why there is no answer.
type Error struct {
	// Code is stable: the server's (`session_queue_full`), CodeGap, or of a call that brought no
	// word of the server its gRPC status in lower case (`unavailable`, `deadline_exceeded`).
	Code string
	// Message is one sentence for a person; it may change between releases.
	Message string
	// Field is the dotted name of the request's field at fault; empty when none is.
	Field string
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

func ofFailure(failure *turnlinev1.Failure, requestID string) *Error {
	made := &Error{RequestID: requestID}
	made.read(failure)
	return made
}

func (e *Error) read(failure *turnlinev1.Failure) {
	e.Code, e.Message, e.Field = failure.GetCode(), failure.GetMessage(), failure.GetField()
	hint := failure.GetRetry()
	e.Retryable = hint == turnlinev1.RetryHint_RETRY_HINT_NOW || hint == turnlinev1.RetryHint_RETRY_HINT_AFTER
	e.RetryAfter = failure.GetRetryAfter().AsDuration()
}

// again waits before the next try; false if there is to be none.
func (c *Client) again(ctx context.Context, tries int, failed *Error) bool {
	if !failed.Retryable || tries >= c.options.MaxTries {
		return false
	}
	pause := min(c.options.Backoff<<min(tries-1, 16), maxBackoff)
	pause = max(pause/2+rand.N(pause/2+1), failed.RetryAfter)
	if deadline, is := ctx.Deadline(); is && time.Until(deadline) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
