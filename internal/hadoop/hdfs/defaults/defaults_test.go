package defaults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// nameNode is asked for its defaults; while it is away, a call takes its context's time.
type nameNode struct {
	encrypt, away bool
	asked         int
}

func (n *nameNode) Call(ctx context.Context, _ string, _, resp pb.Message) error {
	n.asked++
	if n.away {
		<-ctx.Done()
		return ctx.Err()
	}
	resp.(*wire.GetServerDefaultsResponseProto).ServerDefaults = &wire.FsServerDefaultsProto{EncryptDataTransfer: pb.Bool(n.encrypt)}
	return nil
}

// TestAnOldAnswerStands: the NameNode is asked again after an hour. What it said stands while it
// is away, costs little time then, and gives way to a new answer soon after it is back.
func TestAnOldAnswerStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nn := &nameNode{}
		d := New(nn)
		for _, step := range []struct {
			name          string
			after         time.Duration
			away, encrypt bool // of the NameNode
			asked         int  // in all
			want          bool
		}{
			{"first", 0, false, false, 1, false},
			{"within the hour", 59 * time.Minute, false, true, 1, false},
			{"after it", 2 * time.Minute, false, true, 2, true},
			{"away", 2 * time.Hour, true, false, 3, true},
			{"away, at once again", 0, true, false, 3, true},
			{"away, later", 2 * time.Minute, true, false, 4, true},
			{"back", 2 * time.Minute, false, false, 5, false},
		} {
			time.Sleep(step.after)
			nn.away, nn.encrypt = step.away, step.encrypt
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // as to connect to a DataNode
			began := time.Now()
			got, err := d.Get(ctx)
			cancel()
			if err != nil || got.GetEncryptDataTransfer() != step.want || nn.asked != step.asked || time.Since(began) > 3*time.Second {
				t.Errorf("%s: data is encrypted %v, after %s and %d calls: %v", step.name, got.GetEncryptDataTransfer(), time.Since(began), nn.asked, err)
			}
		}
	})
}

// TestNoAnswer: whoever knows nothing waits for as long as the context allows.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if got, err := New(&nameNode{away: true}).Get(ctx); err == nil || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %s: %v", got, time.Since(began), err)
		}
	})
}
