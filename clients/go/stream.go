package turnline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/protobuf/proto"

	turnlinev1 "turnline.dev/client/turnline/v1"
)

// Event is one thing a stream brings: Admitted, Chunk, Restart or End.
type Event interface{ event() }

// Admitted says that the turn is on its way; first, once.
type Admitted struct{ *turnlinev1.SubmitResponse }

// Chunk is a piece of the answer.
type Chunk struct{ *turnlinev1.Chunk }

// Restart says that what was streamed before is void: a new attempt begins.
type Restart struct{ *turnlinev1.Restart }

// End is the answer, last, once.
type End struct{ *turnlinev1.TurnEnd }

func (Admitted) event() {}
func (Chunk) event()    {}
func (Restart) event()  {}
func (End) event()      {}

// Text is what the chunk adds to the text of the answer; empty for other events.
func (c Chunk) Text() string {
	if c.GetEvent().GetType() != turnlinev1.EventType_EVENT_TYPE_TEXT_DELTA {
		return ""
	}
	return c.GetEvent().GetContent()
}

// Position is the place to resume a stream from behind this chunk.
func (c Chunk) Position() *turnlinev1.Position {
	return &turnlinev1.Position{Attempt: c.GetAttempt(), Index: int32(c.GetIndex())}
}

// Stream runs a turn and gives its events as they come.
//
// A connection that is cut is made anew and resumes behind the last event seen; an event comes
// once.  The error that ends a stream comes last: a turn that failed, chunks that are no longer
// kept (CodeStreamGap), or no connection in MaxTries tries.  A reader who leaves does not end the turn.
func (c *Client) Stream(ctx context.Context, turn Turn) iter.Seq2[Event, error] {
	return c.read(ctx, &turnlinev1.StreamChatRequest{
		SessionId: turn.SessionID, RequestId: named(turn), Request: turn.Request,
	})
}

// Resume gives the events of a turn that was admitted before, from behind a place; nil means all.
func (c *Client) Resume(
	ctx context.Context, requestID string, after *turnlinev1.Position,
) iter.Seq2[Event, error] {
	return c.read(ctx, &turnlinev1.StreamChatRequest{RequestId: requestID, After: after})
}

func (c *Client) read(
	ctx context.Context, request *turnlinev1.StreamChatRequest,
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, leave := c.bounded(ctx)
		defer leave()
		reading := reading{client: c, request: proto.CloneOf(request)}
		for tries := 1; ; tries++ {
			err := reading.connect(ctx, yield)
			if err == nil {
				return
			}
			failed := ofError(ctx, err, request.GetRequestId())
			// A server that has nothing to say for long sends its readers away, to come back.
			if reading.moved || failed.Code == "reply_not_ready" {
				tries = 1
			}
			if !reading.ended {
				failed = c.again(ctx, tries, failed)
			}
			if failed != nil {
				yield(nil, failed)
				return
			}
		}
	}
}

// reading is one reader's place in a turn's stream.
type reading struct {
	client *Client
	// request asks for what comes behind the last event seen.
	request  *turnlinev1.StreamChatRequest
	admitted bool
	// moved says whether the connection brought something new.
	moved bool
	// ended says whether the turn itself has failed, which no reading on changes.
	ended bool
}

// connect reads until the stream ends or its reader leaves; else the error says why it broke off.
func (r *reading) connect(ctx context.Context, yield func(Event, error) bool) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	r.moved = false
	signed, err := r.client.signed(ctx)
	if err != nil {
		return err
	}
	stream, err := r.client.service.StreamChat(signed, r.request)
	if err != nil {
		return err
	}
	for {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return &Error{
				Code: "unavailable", Message: "the stream broke off", Retryable: true,
				RequestID: r.request.GetRequestId(), cause: io.ErrUnexpectedEOF,
			}
		}
		if err != nil {
			return err
		}
		event, err := r.take(item)
		if err != nil {
			return err
		}
		if event != nil && !yield(event, nil) {
			return nil
		}
		if _, is := event.(End); is {
			return nil
		}
	}
}

// take moves on behind an item; nil for one that was seen before, or is of a kind not known here.
func (r *reading) take(item *turnlinev1.StreamChatResponse) (Event, error) {
	switch item := item.GetItem().(type) {
	case *turnlinev1.StreamChatResponse_Admitted:
		if r.admitted {
			return nil, nil
		}
		r.admitted, r.moved = true, true
		// From here on the turn is only attached to: it must not be run anew.
		r.request.Request, r.request.SessionId = nil, ""
		return Admitted{item.Admitted}, nil
	case *turnlinev1.StreamChatResponse_Chunk:
		chunk := Chunk{item.Chunk}
		r.request.After, r.moved = chunk.Position(), true
		return chunk, nil
	case *turnlinev1.StreamChatResponse_Restart:
		r.request.After = &turnlinev1.Position{Attempt: item.Restart.GetAttempt(), Index: -1}
		r.moved = true
		return Restart{item.Restart}, nil
	case *turnlinev1.StreamChatResponse_Gap:
		gap := item.Gap
		return nil, &Error{
			Code: CodeStreamGap,
			Message: fmt.Sprintf(
				"chunks %d to %d of attempt %d are no longer kept",
				gap.GetFirst(), gap.GetLast(), gap.GetAttempt(),
			),
			RequestID: r.request.GetRequestId(),
		}
	case *turnlinev1.StreamChatResponse_End:
		if failure := item.End.GetFailure(); failure != nil {
			r.ended = true
			return nil, ofFailure(failure, item.End.GetStatusCode(), r.request.GetRequestId())
		}
		return End{item.End}, nil
	}
	return nil, nil
}
